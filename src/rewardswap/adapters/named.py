"""Environments by the name `module:attribute`."""

from collections.abc import Callable
from typing import Any

from rewardswap.adapters.seeded import SeededWorld, label
from rewardswap.envs.base import World
from rewardswap.outside import imported


def maker_of(what: str, name: str) -> Callable[[], Any]:
    """The callable that `module:attribute` names; a world that it names is given as it is.

    Raises ValueError where it cannot be imported, or is neither.
    """
    if ":" not in name:
        raise ValueError(f"{what} must be MODULE:NAME, got {name!r}")
    found = imported(what, name)
    if isinstance(found, World) and not isinstance(found, type):
        return lambda: found
    if not callable(found):
        raise ValueError(f"{what} {name!r} is {found!r}; name a class or a function that makes one")
    return found


def world_of(make: Callable[[], Any], **seeded: Any) -> World:
    """The world that `make` gives, or the one of the Gymnasium-style environments that it gives.

    `seeded` are settings of `SeededWorld`, which a world that is given has not. Raises ValueError
    as that does, and naming `make` where it raises.
    """
    try:
        made = make()
    except Exception as error:  # it may be anybody's code
        raise ValueError(f"{label(make)}() raised {type(error).__name__}: {error}") from error
    if isinstance(made, World):
        return made
    getattr(made, "close", lambda: None)()
    return SeededWorld(make, **seeded)
