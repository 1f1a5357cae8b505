"""Files of a finished run folder; one that is missing or cut is a ValueError that names it."""

import json
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

Json = dict[str, Any]


def read_config(folder: Path) -> Json:
    """The settings of config.toml."""
    path = folder / "config.toml"
    try:
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise ValueError(f"{path} cannot be read: {error}; give a run folder") from error


def read_document(folder: Path, name: str) -> Json:
    """A JSON file, by its name without ending."""
    path = folder / f"{name}.json"
    if not path.is_file():
        raise ValueError(f"{path} is missing: the run did not finish; run it again")
    try:
        document: Json = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise ValueError(f"{path} is cut or not JSON ({error}); run it again") from error
    return document


def read_lines(path: Path) -> Iterator[Json]:
    """The objects of a file of lines."""
    if not path.is_file():
        raise ValueError(f"{path} is missing; run it again")
    with path.open(encoding="utf-8") as file:
        for count, line in enumerate(file, 1):
            try:
                yield json.loads(line)
            except ValueError as error:
                raise ValueError(
                    f"{path}, line {count} is cut or not JSON ({error}); run it again"
                ) from error
