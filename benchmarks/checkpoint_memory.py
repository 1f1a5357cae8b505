"""What a checkpoint of a sharded model takes of rank 0's host memory while it is written.

    torchrun --nproc-per-node 2 benchmarks/checkpoint_memory.py parts
    torchrun --nproc-per-node 2 benchmarks/checkpoint_memory.py whole

A Llama of about 100M random weights in bfloat16 with float32 masters and moments, and the agent
that an explorer was branched from. `whole` is the way of before: rank 0 gathers every tensor.
"""

import argparse
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from torch import Tensor
from transformers import LlamaConfig, LlamaForCausalLM

from rewardswap.checkpoints.files import Checkpoints
from rewardswap.distributed.process_group import joined
from rewardswap.distributed.sharding import shard
from rewardswap.models.policy import Policy
from rewardswap.models.shards import gathered


def whole(value: Any) -> Any:
    """A nested state with every tensor gathered."""
    if isinstance(value, Tensor):
        return gathered(value)
    if isinstance(value, dict):
        return {name: whole(part) for name, part in value.items()}
    return [whole(part) for part in value] if isinstance(value, list | tuple) else value


def memory(name: str) -> float:
    """A field of this process's memory in MiB."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith(name)) / 1024


def main(way: str, hidden: int, layers: int) -> None:
    torch.manual_seed(0)
    config = LlamaConfig(
        vocab_size=16_000,
        hidden_size=hidden,
        intermediate_size=4 * hidden,
        num_hidden_layers=layers,
        num_attention_heads=hidden // 64,
    )
    model = LlamaForCausalLM(config).bfloat16()
    numbers = sum(weight.numel() for weight in model.parameters())
    with joined() as ranks, TemporaryDirectory() as folder:
        shard(model)
        policy = Policy(model, make_optimizer=lambda m: torch.optim.AdamW(m.parameters()))
        policy.masters.reset_gradients(zero=True)
        policy.optimizer.step()
        states = [policy.state(), policy.snapshot()]
        Path("/proc/self/clear_refs").write_text("5")
        before = memory("VmRSS")
        checkpoints = Checkpoints(Path(ranks.first(folder)), keep=1, ranks=ranks)
        if way == "whole":
            state = [whole([one.model, one.masters, one.optimizer]) for one in states]
            if ranks.rank:
                state = []
            checkpoints.write(1, state)
        else:
            checkpoints.write(1, states)
        peak = memory("VmHWM")
        for rank, (start, most) in enumerate(ranks.gather((before, peak))):
            if ranks.rank == 0:
                print(
                    f"{way}, {numbers / 1e6:.0f}M weights, rank {rank}: {start:,.0f} MiB before, "
                    f"{most - start:,.0f} MiB more at the peak"
                )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("way", choices=("parts", "whole"))
    parser.add_argument("--hidden", type=int, default=768)
    parser.add_argument("--layers", type=int, default=8)
    found = parser.parse_args()
    main(found.way, found.hidden, found.layers)
