"""Time and peak memory of one optimizer step with packed rows against padded ones.

    OMP_NUM_THREADS=1 python benchmarks/packing.py [--tokens 4096]

The same rows through a policy of 7M parameters, each way in a process of its own. Seconds are
those of the processor, on one thread, so that other programs count little. Memory is the peak of
resident memory above what was there before the step. Two kinds of rows: of one length within a
quarter, and from 32 to 2,048 tokens.
"""

import argparse
import json
import resource
import subprocess
import sys
import time

import torch
from circumstances import circumstances
from rich.console import Console
from rich.table import Table
from transformers import LlamaConfig, LlamaForCausalLM

from rewardswap.models.batching import Batch, microbatches
from rewardswap.models.policy import Policy

ROWS = {"alike": (384, 480), "ragged": (32, 2048)}
"""Shortest and longest row, in tokens; lengths are drawn evenly on a scale of logarithms."""
WAYS = {"padded": False, "packed": True}
VOCABULARY = 8192


def batch_of(kind: str, total: int = 8_000) -> Batch:
    """Rows of `total` tokens or a little more; every eighth token is an action's."""
    stream = torch.Generator().manual_seed(0)
    shortest, longest = ROWS[kind]
    lengths: list[int] = []
    while sum(lengths) < total:
        share = float(torch.rand((), generator=stream))
        lengths.append(round(shortest * (longest / shortest) ** share))
    count, width = len(lengths), max(lengths)
    places = torch.arange(width).expand(count, width)
    mask = (places % 8 == 7) & (places < torch.tensor(lengths)[:, None])
    return Batch(
        tokens=torch.randint(VOCABULARY, (count, width), generator=stream),
        lengths=torch.tensor(lengths),
        action_mask=mask,
        turn=torch.where(mask, 0, -1),
        trajectory=torch.arange(count),
        group=torch.zeros(count, dtype=torch.int64),
        replayed=torch.zeros(count, dtype=torch.bool),
    )


def measure(kind: str, way: str, tokens: int) -> dict[str, float]:
    """One step: MiB above the start, seconds, passes, and the loss as a digest of the numbers."""
    torch.manual_seed(0)
    sizes = {"hidden_size": 256, "intermediate_size": 768, "num_hidden_layers": 4}
    heads = {"num_attention_heads": 4, "num_key_value_heads": 2, "max_position_embeddings": 2048}
    model = LlamaForCausalLM(LlamaConfig(vocab_size=VOCABULARY, **sizes, **heads))
    policy = Policy(
        model,
        make_optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=1e-3),
        tokens_per_microbatch=tokens,
        packing=WAYS[way],
    )
    batch = batch_of(kind)
    before, started = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss, time.process_time()
    found = policy.step(batch, lambda scores, _: (-scores.logprob.sum() / 1000, {}))
    seconds = time.process_time() - started
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    passes = len(list(microbatches(batch, tokens, packing=WAYS[way])))
    memory = (after - before) / 1024
    return {"memory": memory, "seconds": seconds, "passes": passes, "loss": found["loss"]}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=4096, help="of a micro-batch")
    parser.add_argument("--one", nargs=2, metavar=("ROWS", "WAY"), help="measure this, print JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.one is not None:
        print(json.dumps(measure(*arguments.one, arguments.tokens)))
        return
    console = Console(highlight=False)
    console.print(circumstances())
    table = Table("rows", "way", "passes", "MiB", "seconds", "loss")
    for kind in ROWS:
        found: dict[str, dict[str, float]] = {}
        for way in WAYS:
            words = ["--tokens", str(arguments.tokens), "--one", kind, way]
            command = [sys.executable, __file__, *words]
            said = subprocess.run(command, capture_output=True, text=True, check=True)
            found[way] = r = json.loads(said.stdout)
            numbers = (f"{r['memory']:,.0f}", f"{r['seconds']:.1f}", f"{r['loss']:.5f}")
            table.add_row(kind, way, f"{r['passes']:.0f}", *numbers)
        padded, packed = found["padded"], found["packed"]
        console.print(
            f"{kind}: packed takes {packed['seconds'] / padded['seconds']:.2f}x the time and "
            f"{packed['memory'] / padded['memory']:.2f}x the memory of padded"
        )
    console.print(table)


if __name__ == "__main__":
    main()
