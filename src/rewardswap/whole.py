"""Folders that are written whole or not at all."""

import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def refuse_taken(folder: Path) -> None:
    """Raise ValueError where `folder` cannot be made: it holds files, or none may be made there."""
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty; give another --output, or move it away")
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give another --output")
    above = next(parent for parent in folder.absolute().parents if parent.exists())
    if not above.is_dir() or not os.access(above, os.W_OK):
        raise ValueError(f"{folder} cannot be written: {above} takes no folder")


@contextmanager
def written_whole(folder: Path) -> Iterator[Path]:
    """A folder beside `folder` to write into; it takes that name when all of it is on disk.

    Raises ValueError where `folder` holds files already or cannot be written.
    """
    refuse_taken(folder)
    try:
        folder.parent.mkdir(parents=True, exist_ok=True)
        beside = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    except OSError as error:
        raise ValueError(f"{folder} cannot be written: {error.strerror}") from error
    try:
        yield beside
        for path in (*beside.rglob("*"), beside):
            _sync(path)
        beside.chmod(0o755)
        beside.replace(folder)
        _sync(folder.parent)
    except OSError as error:
        raise ValueError(f"{folder} cannot be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(beside, ignore_errors=True)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a table as JSON that a person can read."""
    path.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")


def read_json(path: Path) -> dict[str, Any]:
    """The table in a file of JSON; raises ValueError naming the file where there is none."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ValueError(f"there is no {path.name} in {path.parent}") from error
    except (
        OSError,
        ValueError,
        RecursionError,
    ) as error:  # bytes that are no UTF-8, text that is no JSON
        raise ValueError(f"{path} cannot be read: {error}") from error
    if not isinstance(content, dict):
        raise ValueError(f"{path} holds no table of names")
    return content
