"""Checkpoints in a run folder: each written whole or not at all, the last ones kept."""

import hashlib
import json
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from rewardswap.checkpoints.codec import Encoded, decode, encode
from rewardswap.errors import RunStoppedError
from rewardswap.whole import read_json, write_json, written_whole

FORMAT = 1
TREE = "state.json"
TENSORS = "tensors.safetensors"
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
    """The checkpoints of one run, by the number of pieces of work that are done."""

    def __init__(self, folder: Path, keep: int, parts: Sequence[str] = ()) -> None:
        """`folder` need not exist; the newest `keep` stay in it. A state has the `parts`."""
        self.parts = parts
        self.folder = folder
        self.keep = keep

    def write(self, number: int, state: Any) -> None:
        """Write a checkpoint; older ones than the newest `keep` go once it is on disk.

        Raises RunStoppedError where it cannot be written: what was there before is untouched.
        """
        target = self.folder / f"{number:08}"
        if number in self.numbers():
            return
        encoded = encode(state)
        try:
            with written_whole(target) as beside:
                tree = {"tree": encoded.tree, "trajectories": encoded.trajectories}
                (beside / TREE).write_text(json.dumps(tree), encoding="utf-8")
                save_file(encoded.tensors, beside / TENSORS)
                sums = {name: _sum(beside / name) for name in (TREE, TENSORS)}
                write_json(beside / MANIFEST, {"format": FORMAT, "number": number, "sha256": sums})
        except (OSError, ValueError) as error:
            raise RunStoppedError(
                f"a checkpoint cannot be written: {error}; make room, then go on"
            ) from error
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
        if self.folder.exists() and not self.folder.is_dir():
            raise ValueError(f"{self.folder} is a file; move it away")
        passed_over: list[str] = []
        for number in reversed(self.numbers()):
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

    def go_on_from(self, number: int) -> None:
        """Remove what is newer than a checkpoint, and what killed writes and removals left."""
        for newer in (n for n in self.numbers() if n > number):
            self._remove(newer)
        self._remove_leftovers()

    def clear(self) -> None:
        """Remove all checkpoints, the newest one last, and the folder where nothing else is in it:
        the run has ended."""
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
        folder = self.folder / f"{number:08}"
        try:
            manifest = read_json(folder / MANIFEST)
        except ValueError as error:
            raise DamagedError(str(error)) from error
        if "format" not in manifest or manifest.get("number") != number:
            raise DamagedError(f"{folder / MANIFEST} is not of checkpoint {number}")
        if manifest["format"] != FORMAT:
            raise ValueError(
                f"checkpoint {folder} has format {manifest.get('format')!r}, this version reads "
                f"{FORMAT}; go on with the version that wrote it (environment.json names it)"
            )
        try:
            for name in (TREE, TENSORS):
                if _sum(folder / name) != manifest["sha256"][name]:
                    raise DamagedError(f"{folder / name} is cut or damaged")
            tree = json.loads((folder / TREE).read_text(encoding="utf-8"))
            tensors = load_file(folder / TENSORS)
            state = decode(Encoded(tree["tree"], tree["trajectories"], tensors))
        except DamagedError:
            raise
        except DAMAGED as error:
            raise DamagedError(f"{folder} is damaged: {error!r}") from error
        except ValueError as error:
            raise DamagedError(f"{folder} is damaged: {error}") from error
        lacking = [name for name in self.parts if not isinstance(state, dict) or name not in state]
        if lacking:
            raise DamagedError(f"{folder} lacks {lacking[0]!r}")
        return state


class DamagedError(ValueError):
    """A checkpoint that is not whole."""


def _sum(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
