"""An experiment of one's own as a TOML file: arms as recipes with settings changed."""

import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from rewardswap.configuration import Run
from rewardswap.experiments.experiment import Arm, Experiment
from rewardswap.names import named, unknown
from rewardswap.options import UsageError
from rewardswap.recipes import RECIPES
from rewardswap.run_options import run_of

OWN = ("summary", "seeds", "arms")
"""Keys of the file beside its arms' own."""
OF_ARM = ("recipe", "seeds", "baseline", "needs", "block")
"""Keys of an arm that are no settings of its run."""


def read_experiment(path: Path) -> Experiment:
    """The experiment of a file; its name is the file's.

    `seeds` and `summary` stand at the top; a table [arms.NAME] holds `recipe`, and may hold
    `seeds`, `baseline`, `needs`, `block`, and any key of `rewardswap train RECIPE`, dotted or as
    tables; `method` and `env` may be a name alone, or a table with one.

    Raises ValueError naming file, arm and key for what is wrong.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read as an experiment: {error}") from error
    for key in content:
        if key not in OWN:
            raise ValueError(f"{path}: {unknown('key', key, OWN)}")
    arms = content.get("arms")
    if not isinstance(arms, Mapping) or not arms:
        raise ValueError(f"{path} has no arms; add a table [arms.NAME] for each")
    seeds = content.get("seeds", [0])
    try:
        made = tuple(_arm(str(name), table, seeds) for name, table in arms.items())
        return Experiment(path.stem, str(content.get("summary", "")), made)
    except ValueError as error:
        raise ValueError(f"{path}: {error}") from error


def _arm(name: str, table: Any, seeds: Any) -> Arm:
    if not isinstance(table, Mapping) or "recipe" not in table:
        raise ValueError(f"arm {name!r} needs a recipe: {', '.join(RECIPES)}")
    own = {key: table[key] for key in OF_ARM[1:] if key in table}
    seeds = own.pop("seeds", seeds)
    if not isinstance(seeds, list) or not all(type(seed) is int for seed in seeds):
        raise ValueError(f"seeds of arm {name!r} must be a list of whole numbers, got {seeds!r}")
    for key, value in own.items():
        if not isinstance(value, str):
            raise ValueError(f"{key} of arm {name!r} must be a word in quotes, got {value!r}")
    changed = {key: value for key, value in table.items() if key not in OF_ARM}
    try:
        run = _run(str(table["recipe"]), changed)
    except RecursionError as error:
        raise ValueError(f"arm {name!r} is nested too deeply for settings") from error
    except (ValueError, UsageError) as error:
        said = str(error).removeprefix("--")
        raise ValueError(f"arm {name!r}: {said}") from error
    return Arm(name, run, tuple(seeds), **own)


def _run(recipe: str, changed: Mapping[str, Any]) -> Run:
    """What `rewardswap train RECIPE --KEY VALUE ...` would run."""
    start = named("recipe", recipe, RECIPES)()
    words = [word for key, value in _flat(changed) for word in _option(key, value)]
    return run_of(start, words, f"rewardswap train {recipe}")


def _flat(settings: Mapping[str, Any], prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted keys and values; a table's `name` is the value of the table itself."""
    for key, value in settings.items():
        dotted = f"{prefix}{key}"
        if isinstance(value, Mapping):
            yield from _flat(value, f"{dotted}.")
        elif prefix in ("method.", "env.") and key == "name":
            yield prefix.removesuffix("."), value
        else:
            yield dotted, value


def _option(key: str, value: Any) -> list[str]:
    """The words that give a setting a value on the command line."""
    option = f"--{key.replace('_', '-')}"
    if isinstance(value, list):
        return [option, *map(str, value)]
    return [f"{option}={value}"]
