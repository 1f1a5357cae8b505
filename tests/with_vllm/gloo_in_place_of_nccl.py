"""vLLM's weight transfer on CPUs: all is vLLM's but the wire, gloo in the place of NCCL.

A plugin of vLLM: the server loads it in each of its processes, the trainer's side calls it.
"""

from contextlib import nullcontext
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist


class GlooCommunicator:
    """What the transfer needs of vLLM's PyNcclCommunicator."""

    def __init__(self, group: Any, device: Any) -> None:
        store = dist.PrefixStore("weights", group.store)
        patience = timedelta(seconds=20)
        self._gloo = dist.ProcessGroupGloo(store, group.rank, group.world_size, patience)

    def broadcast(self, tensor: torch.Tensor, src: int, stream: Any = None) -> None:
        options = dist.BroadcastOptions()
        options.rootRank = src
        self._gloo.broadcast([tensor], options).wait()

    def destroy(self) -> None:
        self._gloo.abort()


class Stream:
    """A CUDA stream, without CUDA."""

    def synchronize(self) -> None:
        """Nothing is in progress."""


def install() -> None:
    """Put gloo in NCCL's place, in this process."""
    from vllm.distributed.device_communicators import pynccl
    from vllm.distributed.weight_transfer import packed_tensor

    put: Any = setattr
    put(pynccl, "PyNcclCommunicator", GlooCommunicator)
    put(packed_tensor, "_get_streams", lambda device, number: (Stream(),) * number)
    put(torch.cuda, "stream", nullcontext)
    put(torch.accelerator, "current_device_index", lambda: 0)
