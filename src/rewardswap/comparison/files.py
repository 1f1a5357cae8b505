"""Files of a finished run folder; one that is missing or cut is a ValueError that names it."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from rewardswap.report.shape import ANY, Each, misfit

Json = dict[str, Any]


TABLE = Each(ANY)
CONFIG = {
    "recipe": str,
    "budget": float,
    "budget_unit": str,
    "method": {"name": str},
    "env": {"name": str},
}


def read_config(folder: Path) -> Json:
    """The settings of config.toml."""
    path = folder / "config.toml"
    try:
        config = tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}; give a run folder") from error
    return _fitting(config, CONFIG, str(path))


def read_document(folder: Path, name: str, shape: Any = TABLE) -> Json:
    """A JSON file of this shape, by its name without ending."""
    path = folder / f"{name}.json"
    if not path.is_file():
        raise ValueError(f"{path} is missing: the run did not finish; run it again")
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (ValueError, RecursionError) as error:
        raise ValueError(f"{path} is cut or not JSON ({error}); run it again") from error
    return _fitting(document, shape, str(path))


def read_lines(path: Path, shape: Any = TABLE) -> Iterator[Json]:
    """The objects of a file of lines, all of this shape."""
    if not path.is_file():
        raise ValueError(f"{path} is missing; run it again")
    with path.open("rb") as file:
        for count, line in enumerate(file, 1):
            try:
                row = json.loads(line)
            except (ValueError, RecursionError) as error:
                raise ValueError(
                    f"{path}, line {count} is cut or not JSON ({error}); run it again"
                ) from error
            yield _fitting(row, shape, f"{path}, line {count}")


def _fitting(content: Any, shape: Any, where: str) -> Json:
    strange = misfit(content, shape)
    if strange is not None:
        raise ValueError(f"{where} has no usable {strange}; run it again")
    return dict(content)
