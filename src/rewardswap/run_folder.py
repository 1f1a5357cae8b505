"""The run folder: the record that reports read, and the only place that a run writes to."""

import errno
import json
import os
import platform
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from safetensors.torch import save_file
from torch import Tensor

from rewardswap.errors import RunStoppedError
from rewardswap.evaluation import Evaluation
from rewardswap.lock import LOCK, locked
from rewardswap.models.batching import Batch
from rewardswap.recording import trajectory_record
from rewardswap.redaction import without_secrets
from rewardswap.whole import file_whole

RECORDED_VERSIONS = ("rewardswap", "torch", "transformers", "numpy", "tokenizers", "safetensors")

TRAIN = "trajectories/train.jsonl"
UNWRITTEN = {errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EIO}
"""Errors of a disk that is full or may not be written."""
GROWING = ("metrics.jsonl", TRAIN, "warnings.jsonl", "prm-refits.jsonl")
"""Files of a run that get line after line while it trains."""


class RunFolder:
    """Files of one run: configuration, machine, metrics, trajectories, evaluations, summary."""

    def __init__(self, path: Path, *, resume: bool = False) -> None:
        """Create `path`, or open it again; it is this process's until it is closed.

        Raises ValueError if a new one holds files already, another process has it, or it cannot be
        written.
        """
        if not resume:
            _refuse_files(path)
        self.path = path
        self._closing = ExitStack()
        self._refused = False
        self._closing.enter_context(locked(path, "the run of process {}"))
        try:
            if not resume:
                _refuse_files(path)  # another run may have come first
            (path / "trajectories").mkdir(exist_ok=True)
            self._files = {name: self._open(name) for name in ("metrics.jsonl", TRAIN)}
        except OSError as error:
            self._closing.close()
            raise ValueError(f"run folder {path} cannot be written: {error.strerror}") from error
        except ValueError:
            self._closing.close()
            raise

    def _open(self, name: str) -> IO[str]:
        return self._closing.enter_context((self.path / name).open("a", encoding="utf-8"))

    def sizes(self) -> dict[str, int]:
        """Bytes of every file that only grows."""
        for file in self._files.values():
            file.flush()
        return {n: (self.path / n).stat().st_size for n in GROWING if (self.path / n).is_file()}

    def refuse_shorter(self, sizes: Mapping[str, int]) -> None:
        """Raise ValueError where a file is shorter than it was."""
        there = self.sizes()
        for name, size in sizes.items():
            if there.get(name, 0) < size:
                raise ValueError(
                    f"{self.path / name} has {there.get(name, 0)} bytes, its checkpoint says "
                    f"{size}: it was cut; put the whole file back, or start the run anew"
                )

    def cut(self, sizes: Mapping[str, int]) -> int:
        """Take what was written behind `sizes` away; how many bytes that were."""
        there = self.sizes()
        for name in there:
            os.truncate(self.path / name, min(there[name], sizes.get(name, 0)))
        return sum(there.values()) - sum(sizes.values())

    def write_environment(self) -> None:
        """Where and with what the run was made, so that it can be made again."""
        self.write(
            "environment.json",
            {
                **_made_where(),
                "command": without_secrets([Path(sys.argv[0]).name, *sys.argv[1:]]),
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        )

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file whole or not at all."""
        target = self.path / name
        beside = target.with_suffix(".part")
        beside.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        beside.replace(target)

    def add_metrics(self, metrics: Mapping[str, Any]) -> None:
        """One more line of metrics.jsonl, which the system has when this returns."""
        self._append("metrics.jsonl", metrics)
        self._flush("metrics.jsonl")

    def add_refit(self, accepted: bool, quality: Mapping[str, Any]) -> None:
        """One more line of prm-refits.jsonl: what came of a refit of the process reward model."""
        self._add("prm-refits.jsonl", {"accepted": accepted, "quality": quality})

    def add_warning(self, kind: str, words: str, update: float) -> None:
        """One more line of warnings.jsonl."""
        self._add("warnings.jsonl", {"kind": kind, "update": update, "words": words})

    def _add(self, name: str, row: Mapping[str, Any]) -> None:
        if name not in self._files:
            self._files[name] = self._open(name)
        self._append(name, row)
        self._flush(name)

    def add_trajectories(self, records: Sequence[Mapping[str, Any]]) -> None:
        """Further lines of trajectories/train.jsonl."""
        for record in records:
            self._append(TRAIN, record)
        self._flush(TRAIN)

    def add_resume(self, **facts: Any) -> None:
        """One more line of resumes.jsonl: when and where the run went on."""
        self._add("resumes.jsonl", {**facts, **_made_where()})

    def write_batch(self, batch: Batch) -> Path:
        """Keep a batch for inspection, each field and column a tensor; the path.

        Raises RunStoppedError where it cannot be written.
        """
        path = self.path / "not-finite.safetensors"
        parts = {name: value for name, value in vars(batch).items() if isinstance(value, Tensor)}
        parts |= {f"columns.{name}": value for name, value in batch.columns.items()}
        parts |= {f"weights.{name}": value for name, value in batch.weights.items()}
        with writing(path), file_whole(path) as beside:
            save_file({name: value.detach().cpu().clone() for name, value in parts.items()}, beside)
        return path

    def _append(self, name: str, row: Mapping[str, Any]) -> None:
        """Raises RunStoppedError where it cannot be written."""
        with self._writing(name):
            self._files[name].write(json.dumps(row) + "\n")

    def _flush(self, name: str) -> None:
        with self._writing(name):
            self._files[name].flush()

    @contextmanager
    def _writing(self, name: str) -> Iterator[None]:
        try:
            with writing(self.path / name):
                yield
        except RunStoppedError:
            self._refused = True
            raise

    def write_evaluation(
        self, name: str, evaluation: Evaluation, scores: Sequence[Sequence[float] | None] | None
    ) -> None:
        """The table of an evaluation and all of its trajectories."""
        self.write(f"evaluation-{name}.json", evaluation.as_dict())
        with (self.path / "trajectories" / f"{name}.jsonl").open("w", encoding="utf-8") as file:
            for n, trajectory in enumerate(evaluation.trajectories):
                scored = None if scores is None else scores[n]
                file.write(json.dumps(trajectory_record(trajectory, "evaluate", scored)) + "\n")

    def sync(self) -> None:
        """Bring every file that grows onto the disk."""
        for name, file in self._files.items():
            self._flush(name)
            with self._writing(name):
                os.fsync(file.fileno())

    def close(self) -> None:
        """Close the open files, and let go of the folder."""
        try:
            with writing(self.path):
                self._closing.close()
        except RunStoppedError:
            if not self._refused:  # what a file still held was said to be lost already
                raise


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise RunStoppedError where the system refuses to write, naming the file."""
    try:
        yield
    except OSError as error:
        if error.errno not in UNWRITTEN:
            raise
        name = error.filename or path
        raise RunStoppedError(f"{name} cannot be written: {error.strerror}") from error


def _refuse_files(path: Path) -> None:
    if not path.is_dir():
        return
    if any(not _is_a_beginning(path, part) for part in path.rglob("*")):
        raise ValueError(
            f"run folder {path} is not empty; give another with --output, or move it away"
        )


def _is_a_beginning(path: Path, part: Path) -> bool:
    """Whether a file or folder is what a run leaves that was killed as it began."""
    name = str(part.relative_to(path))
    empty = name in ("metrics.jsonl", TRAIN) and part.stat().st_size == 0
    return name in (LOCK, "trajectories", "config.part") or empty


def _made_where() -> dict[str, Any]:
    """The source, the packages and the machine."""
    return {
        "commit": commit(),
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in RECORDED_VERSIONS},
        },
        "machine": {
            "system": platform.platform(),
            "processor": platform.machine(),
            "cores": os.cpu_count(),
        },
    }


def commit() -> str | None:
    """The commit of the source tree, with a mark if it has changes; none outside a checkout."""
    here = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=here,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    return described.stdout.strip() or None
