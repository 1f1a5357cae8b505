"""Files and folders that are written whole or not at all."""

import glob
import json
import os
import re
import shutil
import stat
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from uuid import uuid4

from safetensors import SafetensorError

from rewardswap.errors import UnwrittenError


def refuse_unwritable(folder: Path) -> None:
    """Raise ValueError where `folder` is a file, or nothing may be written into it."""
    if folder.exists() and not folder.is_dir():
        raise ValueError(f"{folder} is a file; give another --output")
    there = next(p for p in (folder, *folder.absolute().parents) if p.exists())
    if not there.is_dir() or not os.access(there, os.W_OK):
        what = "file" if there == folder else "folder"
        raise ValueError(f"{folder} cannot be written: {there} takes no {what}")


def refuse_taken(folder: Path) -> None:
    """Raise ValueError where `folder` cannot be made: it holds files, or none may be made there."""
    if folder.is_dir() and any(folder.iterdir()):
        raise ValueError(f"{folder} is not empty; give another --output, or move it away")
    refuse_unwritable(folder)


def refuse_no_file(path: Path) -> None:
    """Raise ValueError where no file can be written under the name `path`."""
    within = Path(os.path.realpath(path)).parent
    if path.is_dir() or not within.is_dir():
        raise ValueError(f"{path} is no file in a folder that exists")
    written = within if path.is_file() or not path.exists() else path  # a device or a pipe
    if not os.access(written, os.W_OK):
        raise ValueError(f"{path} cannot be written: {written} takes no file")


@contextmanager
def naming(path: Path) -> Iterator[None]:
    """Whatever the system refuses in here is an UnwrittenError that names `path`."""
    try:
        yield
    except OSError as error:
        raise UnwrittenError(error.errno, error.strerror or str(error), str(path)) from error
    except SafetensorError as error:
        found = re.search(r"os error (\d+)", str(error))
        if found is None:
            raise
        number = int(found[1])
        raise UnwrittenError(number, os.strerror(number), str(path)) from error


@contextmanager
def written_whole(folder: Path, over: str | None = None) -> Iterator[Path]:
    """A folder beside `folder` to write into; it takes that name when all of it is on disk.

    With `over` the folder may be there: files of the same names are replaced, others stay, and what
    killed writers left goes. The file `over` is taken away first and comes last: where it stands,
    all are of one writing. Raises ValueError where `folder` is a file, or holds files without
    `over`, and UnwrittenError.
    """
    refuse_taken(folder) if over is None else refuse_unwritable(folder)
    folder = Path(os.path.realpath(folder))
    lies_there = over is not None and folder.exists()
    with naming(folder):
        folder.parent.mkdir(parents=True, exist_ok=True)
        if over is not None:
            _clear_leftovers(folder)
        beside = _beside(folder, within=folder if lies_there else folder.parent)
        beside.mkdir()
        try:
            yield beside
            _bring_onto_disk(beside)
            if over is not None and lies_there:
                _lay_over(folder, beside, over)
            else:
                beside.replace(folder)
            _sync(folder.parent)
        finally:
            shutil.rmtree(beside, ignore_errors=True)


@contextmanager
def file_whole(path: Path) -> Iterator[Path]:
    """A file beside `path` to write; it takes that name when it is on disk.

    A device or a pipe is written as it is. Raises UnwrittenError.
    """
    with naming(path):
        if path.exists() and not path.is_file():
            yield path
            return
        target = Path(os.path.realpath(path))
        beside = _beside(target, within=target.parent)
        try:
            beside.touch()
            mode = stat.S_IMODE(beside.stat().st_mode)
            yield beside
            beside.chmod(mode)  # safetensors makes files that nobody else may read
            _sync(beside)
            beside.replace(target)
            _sync(target.parent)
        finally:
            beside.unlink(missing_ok=True)


def write_text(path: Path, text: str) -> None:
    """Write a file of text, UTF-8, whole or not at all; raises UnwrittenError."""
    with file_whole(path) as beside:
        beside.write_text(text, encoding="utf-8", newline="\n")


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a table as JSON that a person can read, whole or not; raises UnwrittenError."""
    write_text(path, json.dumps(content, indent=2) + "\n")


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


def _beside(path: Path, within: Path) -> Path:
    """A name that nothing has."""
    return within / f".{path.name}.{uuid4().hex[:8]}.part"


def _clear_leftovers(folder: Path) -> None:
    for within in (folder, folder.parent):
        for path in within.glob(f".{glob.escape(folder.name)}.????????.part"):
            shutil.rmtree(path)


def _bring_onto_disk(folder: Path) -> None:
    """Every file with the mode that the folder was made with."""
    mode = stat.S_IMODE(folder.stat().st_mode) & 0o666
    for path in (*folder.rglob("*"), folder):
        if path.is_file():
            path.chmod(mode)  # safetensors makes files that nobody else may read
        _sync(path)


def _lay_over(folder: Path, beside: Path, last: str) -> None:
    names = [path.relative_to(beside) for path in beside.rglob("*") if path.is_file()]
    (folder / last).unlink(missing_ok=True)
    for name in sorted(names, key=lambda name: (name == Path(last), name)):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (beside / name).replace(folder / name)
    _sync(folder)


def _sync(path: Path) -> None:
    number = os.open(path, os.O_RDONLY)
    try:
        os.fsync(number)
    finally:
        os.close(number)
