"""What every rank of a test does with checkpoints: `python parts_program.py FOLDER DEED`."""

import errno
import os
import signal
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from torch.distributed.checkpoint import filesystem
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor import Shard, distribute_tensor

from rewardswap.checkpoints import files
from rewardswap.checkpoints.files import Checkpoints
from rewardswap.distributed import parts
from rewardswap.distributed.process_group import joined
from rewardswap.errors import RunStoppedError
from rewardswap.models.learner import Snapshot
from rewardswap.models.shards import gathered, is_part
from rewardswap.ranks import Ranks


def whole_tensors(number: int) -> dict[str, Tensor]:
    """Of more rows than ranks and of fewer, in two types; `single` is one rank's alone."""
    return {
        "wide": torch.arange(35.0).reshape(7, 5) + number,
        "single": torch.full((1, 3), 0.1 + number),
        "rounded": torch.arange(4).to(torch.bfloat16) / 3 + number,
        "nothing": torch.zeros(0, 2),
    }


def state(number: int, kept: Any = lambda tensor: tensor) -> dict[str, Any]:
    """A run's state as the codec meets it: a snapshot twice, one tensor under two names."""
    found = {name: kept(value) for name, value in whole_tensors(number).items()}
    moments = {"state": {0: {"exp_avg": kept(torch.ones(7, 5) / 3), "step": torch.tensor(2.0)}}}
    snapshot = Snapshot(found, [found["wide"]], moments, number, 0, torch.get_rng_state())
    return {"number": number, "loop": {"agent": snapshot}, "learners": [snapshot, None]}


def tensors(value: Any) -> list[Tensor]:
    """All tensors of a state, in its order."""
    if isinstance(value, Tensor):
        return [value]
    if isinstance(value, Snapshot):
        return tensors([value.model, value.masters, value.optimizer])
    if isinstance(value, dict):
        value = [*value.values()]
    return [one for part in value for one in tensors(part)] if isinstance(value, list) else []


def write(checkpoints: Checkpoints, number: int) -> None:
    mesh = init_device_mesh("cpu", (checkpoints.ranks.size,))
    checkpoints.write(number, state(number, lambda t: distribute_tensor(t, mesh, [Shard(0)])))


def refused(checkpoints: Checkpoints, number: int) -> None:
    with pytest.raises(RunStoppedError) as stopped:
        write(checkpoints, number)
    print(stopped.value)


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


BREAKABLE: dict[str, tuple[Any, str]] = {
    "parts": (filesystem, "_write_item"),
    "sums": (parts.hashlib, "file_digest"),
    "tree": (files, "save_file"),
}


def same(checkpoints: Checkpoints, number: int) -> None:
    """What is read is what was written, to the bit, and of what is in parts a part."""
    found = checkpoints.newest()
    assert found is not None
    assert found.number == number
    print(*found.passed_over)
    expected = tensors(state(number))
    read = tensors(found.state)
    held = sum(is_part(one) for one in read)
    assert held == (12 if checkpoints.ranks.size > 1 else 0)
    for one, wanted in zip(read, expected, strict=True):
        whole = gathered(one)
        assert whole.dtype == wanted.dtype
        assert torch.equal(whole, wanted)
        if is_part(one) and len(wanted):
            local: Any = one
            assert len(local.to_local()) <= -(-len(wanted) // checkpoints.ranks.size)


def do(deed: str, folder: Path, ranks: Ranks) -> None:
    checkpoints = Checkpoints(folder, keep=2, parts=("number", "learners"), ranks=ranks)
    match deed.split(":"):
        case ["write", *numbers]:
            for number in map(int, numbers):
                write(checkpoints, number)
        case ["same", number]:
            same(checkpoints, int(number))
        case ["refused", number, *broken]:
            with pytest.MonkeyPatch.context() as patch:
                if broken[1:] == [str(ranks.rank)]:
                    patch.setattr(*BREAKABLE[broken[0]], full)
                refused(checkpoints, int(number))
        case ["killed", number]:
            if ranks.rank == ranks.size - 1:
                filesystem._write_item = lambda *_: os.kill(os.getpid(), signal.SIGKILL)
            write(checkpoints, int(number))
        case ["go_on", number]:
            checkpoints.go_on_from(int(number))
        case ["clear"]:
            checkpoints.clear()
        case ["unseen"]:
            with pytest.MonkeyPatch.context() as patch:
                if ranks.rank == 1:
                    patch.setattr(Path, "read_text", full)
                with pytest.raises(ValueError, match=r"rank 1 does not see .*all ranks share"):
                    parts.refuse_unseen(folder, ranks)
            parts.refuse_unseen(folder, ranks)


def main(folder: Path, deeds: list[str]) -> None:
    torch.set_num_threads(1)
    with joined() as ranks:
        for deed in deeds:
            do(deed, folder, ranks)


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
