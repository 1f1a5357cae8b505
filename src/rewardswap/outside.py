"""What a user names as `module:attribute`, from outside the package."""

import importlib
import sys
from pathlib import Path
from typing import Any


def imported(what: str, name: str) -> object:
    """The attribute of a `module:attribute`; a module is looked for in the working directory too.

    Raises ValueError naming `what` and the name where it cannot be imported, whatever its module
    raises.
    """
    module, _, attribute = name.partition(":")
    if str(Path.cwd()) not in sys.path:
        sys.path.insert(0, str(Path.cwd()))
    try:
        found: object = getattr(importlib.import_module(module), attribute)
    except (Exception, SystemExit) as error:  # a module may be anybody's code
        raise ValueError(
            f"{what} {name!r} cannot be imported: {type(error).__name__}: {error}; modules are "
            f"looked for in {Path.cwd()} and among the installed packages"
        ) from error
    return found


def name_of(thing: Any) -> str:
    """`module:attribute` of a class or function, by which a run's record and a worker find it.

    Raises ValueError for what cannot be found by name.
    """
    module, name = getattr(thing, "__module__", None), getattr(thing, "__qualname__", None)
    found = getattr(sys.modules.get(str(module)), str(name), None)
    if found is not thing or module == "__main__":
        raise ValueError(
            f"{thing!r} cannot be found by name; define it by `def` or `class` at the top of a "
            "module of its own, beside the script that runs"
        )
    return f"{module}:{name}"
