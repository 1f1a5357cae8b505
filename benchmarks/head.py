"""Peak memory and time of the head in pieces against all logits at once.

    OMP_NUM_THREADS=1 python benchmarks/head.py [--tokens 2048] [--hidden 576]

One forward and backward pass at vocabulary 150,000, each way in processes of its own: alternately,
each twice, the quicker one counts. Memory is the peak of resident memory above what was there
before the pass (inputs and the head's weight), the weight's gradient included in both.
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

from rewardswap.models.head import HEAD_LOGITS, chosen_scores

VOCABULARY = 150_000
TOKENS, WIDTH = 2048, 576
WAYS = {"all logits at once": 2**62, "in pieces": HEAD_LOGITS}


def peak() -> float:
    """Most resident memory of this process so far, in MiB."""
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def measure(tokens: int, width: int, most_logits: int) -> dict[str, float]:
    """One pass: MiB above the start, seconds, and a digest of the numbers."""
    stream = torch.Generator().manual_seed(0)
    head = torch.nn.Linear(width, VOCABULARY, bias=False)
    with torch.no_grad():
        head.weight.normal_(std=width**-0.5, generator=stream)
    hidden = torch.randn(tokens, width, generator=stream, requires_grad=True)
    chosen = torch.randint(VOCABULARY, (tokens,), generator=stream)
    before, started = peak(), time.perf_counter()
    found = chosen_scores(head, hidden, chosen, 1.0, most_logits=most_logits)
    found.logprob.mean().backward()
    seconds = time.perf_counter() - started
    assert hidden.grad is not None
    return {
        "memory": peak() - before,
        "seconds": seconds,
        "logprob": float(found.logprob.mean()),
        "gradient": float(hidden.grad.double().square().sum()),
    }


def in_process(tokens: int, width: int, way: str) -> dict[str, float]:
    """`measure` in a process of its own: a peak never comes down again."""
    sizes = ["--tokens", str(tokens), "--hidden", str(width)]
    command = [sys.executable, __file__, *sizes, "--way", way]
    found = subprocess.run(command, capture_output=True, text=True, check=True)
    numbers: dict[str, float] = json.loads(found.stdout)
    return numbers


def compare(tokens: int = TOKENS, width: int = WIDTH) -> dict[str, dict[str, float]]:
    """The quicker of two passes each way."""
    runs: dict[str, list[dict[str, float]]] = {way: [] for way in WAYS}
    for _ in range(2):
        for way, found in runs.items():
            found.append(in_process(tokens, width, way))
    return {way: min(found, key=lambda r: r["seconds"]) for way, found in runs.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--tokens", type=int, default=TOKENS, help="action tokens")
    parser.add_argument("--hidden", type=int, default=WIDTH, help="width (SmolLM2: 576)")
    parser.add_argument("--way", choices=WAYS, help="measure this one, here, and print JSON")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    if arguments.way is not None:
        print(json.dumps(measure(arguments.tokens, arguments.hidden, WAYS[arguments.way])))
        return
    console = Console(highlight=False)
    console.print(circumstances())
    sizes = (arguments.tokens, arguments.hidden)
    console.print(table_of(compare(*sizes), *sizes))


def table_of(best: dict[str, dict[str, float]], tokens: int = TOKENS, width: int = WIDTH) -> Table:
    """The numbers of both ways, and their ratios."""
    full, pieces = best.values()
    less, slower = full["memory"] / pieces["memory"], pieces["seconds"] / full["seconds"]
    title = (
        f"head, {tokens} tokens x {VOCABULARY:,} words, width {width}: in pieces {less:.1f}x less "
        f"memory, {slower:.2f}x the time"
    )
    table = Table("way", "MiB", "seconds", "mean log-prob", "squared gradient", title=title)
    for way, r in best.items():
        numbers = (f"{r['logprob']:.6f}", f"{r['gradient']:.6e}")
        table.add_row(way, f"{r['memory']:,.0f}", f"{r['seconds']:.1f}", *numbers)
    return table


if __name__ == "__main__":
    main()
