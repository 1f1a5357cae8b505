"""Checkpoints in a run folder: each written whole or not at all, the last ones kept."""

import hashlib
import json
import re
import shutil
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any
from uuid import uuid4

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from rewardswap.checkpoints.codec import Encoded, decode, encode
from rewardswap.errors import RunStoppedError
from rewardswap.ranks import ALONE, Ranks, by_first, share
from rewardswap.whole import read_json, write_json, written_whole

FORMATS = {False: 1, True: 2}
"""By whether tensors are in parts: what reads 1 alone refuses 2, and says so."""
TREE = "state.json"
TENSORS = "tensors.safetensors"
IN_PARTS = "parts"
"""Folder of the tensors that ranks hold together, one file or more of each rank."""
PART = re.compile(rf"{IN_PARTS}/[\w.-]+")
MANIFEST = "manifest.json"
FILES = (TREE, TENSORS, MANIFEST)
"""What a checkpoint consists of; a folder without any of them is none."""
NAME = re.compile(r"\d{8}")
LEFT = re.compile(r"\.\d{8}\.(old|\w{8}|\w{8}\.part)")
"""Names that killed writes and removals leave."""

DAMAGED = (AttributeError, KeyError, OSError, RecursionError, SafetensorError, TypeError)
"""What reading a spoiled file raises, beside ValueError."""


@dataclass(frozen=True)
class Found:
    """The newest whole checkpoint, and why newer ones were passed over."""

    number: int
    state: Any
    passed_over: tuple[str, ...]


class Checkpoints:
    """The checkpoints of one run, by the number of pieces of work that are done.

    Of several ranks each calls `write` and `newest`: rank 0 writes and reads, and where tensors are
    in parts each rank its own.
    """

    def __init__(
        self, folder: Path, keep: int, parts: Sequence[str] = (), ranks: Ranks = ALONE
    ) -> None:
        """`folder` is rank 0's, and need not exist; the newest `keep` stay in it. A state has the
        `parts`."""
        self.parts = parts
        self.folder = folder
        self.keep = keep
        self.ranks = ranks

    def write(self, number: int, state: Any) -> None:
        """Write a checkpoint; older ones than the newest `keep` go once it is on disk.

        Raises RunStoppedError, on every rank, where one cannot write: what was there before is
        untouched.
        """
        if self.ranks.first(number in self.numbers()):
            return
        encoded = encode(state)
        aside: Path | None = None
        sums: Mapping[str, str] = {}
        try:
            if encoded.parts:
                aside = by_first(self.ranks, lambda: self._made_aside(number))
                sums = self._write_parts(aside, encoded)
            by_first(self.ranks, lambda: self._write(number, encoded, aside, sums))
        finally:
            if aside is not None and self.ranks.rank == 0:
                shutil.rmtree(aside, ignore_errors=True)

    def _made_aside(self, number: int) -> Path:
        """A folder for the parts, which a kill leaves under a name that is cleared away."""
        aside = self.folder / f".{number:08}.{uuid4().hex[:8]}.part"
        with _unwritten():
            aside.mkdir(parents=True)
        return aside

    def _write_parts(self, aside: Path, encoded: Encoded) -> Mapping[str, str]:
        from rewardswap.distributed.parts import write_parts

        with _unwritten():
            return write_parts(aside, encoded.parts, self.ranks)

    def _write(
        self, number: int, encoded: Encoded, aside: Path | None, parts: Mapping[str, str]
    ) -> None:
        with _unwritten(), written_whole(self.folder / f"{number:08}") as beside:
            tree = {"tree": encoded.tree, "trajectories": encoded.trajectories}
            (beside / TREE).write_text(json.dumps(tree), encoding="utf-8")
            save_file(encoded.tensors, beside / TENSORS)
            sums = {name: _sum(beside / name) for name in (TREE, TENSORS)}
            if aside is not None:
                aside.replace(beside / IN_PARTS)
                sums |= {f"{IN_PARTS}/{name}": value for name, value in sorted(parts.items())}
            manifest = {"format": FORMATS[bool(parts)], "number": number, "sha256": sums}
            write_json(beside / MANIFEST, manifest)
        for old in self.numbers()[: -self.keep]:
            self._remove(old)

    def numbers(self) -> list[int]:
        """Numbers of the checkpoints, oldest first."""
        if not self.folder.is_dir():
            return []
        return sorted(
            int(path.name)
            for path in self.folder.iterdir()
            if NAME.fullmatch(path.name) and any((path / name).exists() for name in FILES)
        )

    def newest(self) -> Found | None:
        """The newest checkpoint that is whole; none where there is none at all.

        Raises ValueError for a checkpoint of another format, and where none of them is whole.
        """
        passed_over: list[str] = []
        for number in reversed(by_first(self.ranks, self._numbers_there)):
            try:
                return Found(number, self._read(number), tuple(passed_over))
            except DamagedError as error:
                passed_over.append(str(error))
        if passed_over:
            raise ValueError(
                f"none of the {len(passed_over)} checkpoints in {self.folder} is whole "
                f"({'; '.join(passed_over)}); put one back, or remove that folder to have the run "
                "begin again"
            )
        return None

    def _numbers_there(self) -> list[int]:
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; move it away")
        return self.numbers()

    def go_on_from(self, number: int) -> None:
        """Remove what is newer than a checkpoint, and what killed writes and removals left."""
        if self.ranks.rank:
            return
        for newer in (n for n in self.numbers() if n > number):
            self._remove(newer)
        self._remove_leftovers()

    def clear(self) -> None:
        """Remove all checkpoints, the newest one last, and the folder where nothing else is in it:
        the run has ended."""
        if self.ranks.rank:
            return
        for number in self.numbers():
            self._remove(number)
        self._remove_leftovers()
        with suppress(OSError):  # it is not there, or somebody has laid something into it
            self.folder.rmdir()

    def _remove_leftovers(self) -> None:
        for path in self.folder.glob(".*"):
            if path.is_dir() and LEFT.fullmatch(path.name):
                shutil.rmtree(path)

    def _remove(self, number: int) -> None:
        """Away under another name first: half of a checkpoint is never there under its own."""
        target = self.folder / f"{number:08}"
        going = target.with_name(f".{target.name}.old")
        if going.exists():
            shutil.rmtree(going)
        target.replace(going)
        shutil.rmtree(going)

    def _read(self, number: int) -> Any:
        encoded, sums = by_first(self.ranks, lambda: self._read_whole(number))
        folder = self.folder / f"{number:08}"
        names = sorted(sums.keys() - {TREE, TENSORS})
        cut = [name for name in share(names, self.ranks) if _is_cut(folder / name, sums[name])]
        for name in chain.from_iterable(self.ranks.gather(cut)):
            raise DamagedError(f"{folder / name} is cut or damaged")
        try:
            if names:
                from rewardswap.distributed.parts import read_parts

                encoded.parts = read_parts(folder / IN_PARTS, self.ranks)
            state = decode(encoded)
        except (RecursionError, ValueError) as error:
            raise DamagedError(f"{folder} is damaged: {error}") from error
        lacking = [name for name in self.parts if not isinstance(state, dict) or name not in state]
        if lacking:
            raise DamagedError(f"{folder} lacks {lacking[0]!r}")
        return state

    def _read_whole(self, number: int) -> tuple[Encoded, Mapping[str, str]]:
        """All but what is in parts, and the sums of all files."""
        folder = self.folder / f"{number:08}"
        try:
            manifest = read_json(folder / MANIFEST)
        except ValueError as error:
            raise DamagedError(str(error)) from error
        if "format" not in manifest or manifest.get("number") != number:
            raise DamagedError(f"{folder / MANIFEST} is not of checkpoint {number}")
        if manifest["format"] not in FORMATS.values():
            raise ValueError(
                f"checkpoint {folder} has format {manifest.get('format')!r}, this version reads "
                f"{', '.join(map(str, FORMATS.values()))}; go on with the version that wrote it "
                "(environment.json names it)"
            )
        try:
            sums = {name: str(value) for name, value in manifest["sha256"].items()}
            for name in sums.keys() - {TREE, TENSORS}:
                if not PART.fullmatch(name):
                    raise DamagedError(f"{folder / MANIFEST} names {name!r}, which is no part")
            for name in (TREE, TENSORS):
                if _sum(folder / name) != sums[name]:
                    raise DamagedError(f"{folder / name} is cut or damaged")
            tree = json.loads((folder / TREE).read_text(encoding="utf-8"))
            tensors = load_file(folder / TENSORS)
            return Encoded(tree["tree"], tree["trajectories"], tensors), sums
        except DamagedError:
            raise
        except DAMAGED as error:
            raise DamagedError(f"{folder} is damaged: {error!r}") from error
        except ValueError as error:
            raise DamagedError(f"{folder} is damaged: {error}") from error


class DamagedError(ValueError):
    """A checkpoint that is not whole."""


@contextmanager
def _unwritten() -> Iterator[None]:
    """Raise RunStoppedError for what the system refuses in here."""
    try:
        yield
    except (OSError, ValueError) as error:
        raise RunStoppedError(
            f"a checkpoint cannot be written: {error}; make room, then go on"
        ) from error


def _is_cut(path: Path, wanted: str) -> bool:
    try:
        return _sum(path) != wanted
    except OSError:  # it is gone
        return True


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
