"""Tensors in parts on disk: every rank writes and reads its own, nobody holds one whole.

`torch.distributed.checkpoint` does it, in its format of safetensors files: none of them, and
nothing beside them, is a pickle (ours: its other formats have one).
"""

import hashlib
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar
from uuid import uuid4
from warnings import catch_warnings, filterwarnings

import torch
from safetensors import SafetensorError
from torch import Tensor
from torch.distributed.checkpoint.api import CheckpointException
from torch.distributed.checkpoint.hf_storage import (
    HuggingFaceStorageReader,
    HuggingFaceStorageWriter,
)
from torch.distributed.checkpoint.state_dict_loader import load
from torch.distributed.checkpoint.state_dict_saver import save
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard
from torch.distributed.tensor import empty as empty_in_parts

from rewardswap.ranks import Ranks, by_first

T = TypeVar("T")

FILE_BYTES = 2**28
"""A rank's tensors go into files of about so many bytes: each is put together in memory."""


class _Writer(HuggingFaceStorageWriter):
    """Sums up its rank's files; where one cannot be read again, no rank has written."""

    def __init__(self, folder: Path, files: dict[str, int]) -> None:
        super().__init__(str(folder), files, save_distributed=True)
        self.sums: dict[str, str] = {}

    def write_data(self, plan: Any, planner: Any) -> Any:
        written = super().write_data(plan, planner)
        for name in {result.storage_data.relative_path for result in written.value()}:
            with (Path(self.path) / name).open("rb") as file:
                self.sums[name] = hashlib.file_digest(file, "sha256").hexdigest()
        return written


def write_parts(folder: Path, parts: Mapping[str, Tensor], ranks: Ranks) -> dict[str, str]:
    """Write every rank's parts into `folder`, which all see; the sha256 of each file by its name.

    Raises ValueError on all ranks where one cannot.
    """
    files, size = {}, 0
    for name, tensor in parts.items():
        files[name] = 1 + size // FILE_BYTES
        size += tensor.nbytes // ranks.size
    writer = _Writer(folder, files)
    _by_all(lambda: save(dict(parts), storage_writer=writer))
    return {name: value for own in ranks.gather(writer.sums) for name, value in own.items()}


def read_parts(folder: Path, ranks: Ranks) -> dict[str, Tensor]:
    """What was written, by any number of ranks: in parts in CPU memory, or whole in one process.

    Raises ValueError on all ranks where one cannot read.
    """
    found: dict[str, Tensor] = {}
    mesh = init_device_mesh("cpu", (ranks.size,)) if ranks.size > 1 else None
    for name, (shape, kind) in by_first(ranks, lambda: _shapes(folder)).items():
        if mesh is None:
            found[name] = torch.empty(shape, dtype=kind)
        else:
            found[name] = empty_in_parts(shape, dtype=kind, device_mesh=mesh, placements=[Shard(0)])
    reader = HuggingFaceStorageReader(str(folder))
    with catch_warnings():  # that one process alone reads is meant
        filterwarnings("ignore", message="torch.distributed is disabled", category=UserWarning)
        _by_all(lambda: load(found, storage_reader=reader, no_dist=mesh is None))
    return found


def _shapes(folder: Path) -> dict[str, tuple[torch.Size, torch.dtype]]:
    try:
        found = HuggingFaceStorageReader(str(folder)).read_metadata().state_dict_metadata
    except (KeyError, OSError, SafetensorError, TypeError) as error:
        raise ValueError(f"{folder} holds no tensors in parts: {error!r}") from error
    return {name: (one.size, one.properties.dtype) for name, one in found.items()}  # type: ignore[union-attr]


def _by_all(run: Callable[[], T]) -> T:
    try:
        return run()
    except CheckpointException as error:  # it is none of Exception
        rank, (reason, _) = min(error.failures.items(), key=lambda failure: failure[0])
        raise ValueError(f"rank {rank}: {reason}") from error


def refuse_unseen(folder: Path, ranks: Ranks) -> None:
    """Raise ValueError on every rank where one does not see what rank 0 writes into `folder`."""
    path = folder / ".seen-by-all-ranks"
    word = uuid4().hex

    def write() -> tuple[Path, str]:
        try:
            path.write_text(word, encoding="utf-8")
        except OSError as error:
            raise ValueError(f"{path} cannot be written: {error.strerror}") from error
        return path, word

    there, said = by_first(ranks, write)
    seen = False
    with suppress(OSError):
        seen = there.read_text(encoding="utf-8") == said
    blind = [rank for rank, sees in enumerate(ranks.gather(seen)) if not sees]
    if ranks.rank == 0:
        path.unlink()
    if blind:
        raise ValueError(
            f"rank {blind[0]} does not see {there.parent}, into which every rank writes its parts "
            "of a checkpoint; give an --output on a file system that all ranks share, or "
            "--checkpoint.every 0"
        )
