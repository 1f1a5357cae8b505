"""Ranks that torchrun has started, joined by torch.distributed."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import TypeVar

import torch
import torch.distributed as dist
from torch import Tensor

from rewardswap.ranks import ALONE, Ranks

T = TypeVar("T")

STARTED = "TORCHELASTIC_RUN_ID"
"""torchrun gives it to every process that it starts."""


class ProcessGroup:
    """The default group of torch.distributed: gloo on CPUs, and NCCL beside it on GPUs."""

    def __init__(self) -> None:
        self.rank = dist.get_rank()
        self.size = dist.get_world_size()

    def gather(self, value: T) -> list[T]:
        """The value of every rank, in order of ranks; it is pickled between our own processes."""
        found: list[T | None] = [None] * self.size
        dist.all_gather_object(found, value)
        return found  # type: ignore[return-value]

    def first(self, value: T) -> T:
        """The value that rank 0 has."""
        found = [value if self.rank == 0 else None]
        dist.broadcast_object_list(found, src=0)
        return found[0]  # type: ignore[return-value]

    def add(self, tensor: Tensor) -> None:
        """Replace `tensor` by the sum over all ranks, in place."""
        dist.all_reduce(tensor, dist.ReduceOp.SUM)


def started_by_torchrun() -> bool:
    """Whether this process is one of several that torchrun started."""
    return STARTED in os.environ and int(os.environ.get("WORLD_SIZE", "1")) > 1


@contextmanager
def joined(patience: timedelta = timedelta(minutes=30)) -> Iterator[Ranks]:
    """All ranks, joined for as long as this goes on; a process by itself is alone.

    `patience` is how long a rank waits for another: the slowest rollout, not the network, decides.
    """
    if not started_by_torchrun():
        yield ALONE
        return
    on_gpu = torch.cuda.is_available()
    if on_gpu:
        torch.cuda.set_device(int(os.environ["LOCAL_RANK"]))
    dist.init_process_group("cpu:gloo,cuda:nccl" if on_gpu else "gloo", timeout=patience)
    try:
        yield ProcessGroup()
    finally:
        dist.destroy_process_group()
