"""Rollouts and updates of a policy, each way against another one in the same run.

    OMP_NUM_THREADS=1 python benchmarks/rollouts.py [--model FOLDER] [--only merged cached]

merged: updates on merged rows against one row per turn; cached: rollouts with caches kept between
turns against `generate` from scratch; head: log-probs in pieces against all logits at once, at
vocabulary 150,000; trl: whole training steps against TRL's GRPO trainer, in the environment of
`make trl`; peak: the share of the machine's matrix products that an update reaches.
Times on a CPU are the processor's, of one thread, medians of interleaved repeats.
"""

import argparse
import json
import subprocess
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cached
import head
import merged
import peak_share
import torch
from circumstances import circumstances
from players import SHAPES, Place, name_of
from recorded import WORLDS
from rich.console import Console
from rich.table import Table

Rows = list[dict[str, Any]]
HERE = Path(__file__).parent
TRL_PYTHON = HERE.parent / ".venv-trl" / "bin" / "python"
PEAK_TURNS, CHECK_TURNS = 20, 10


def against(options: argparse.Namespace, compare: Callable[..., dict[str, Any]]) -> Rows:
    """One comparison in every world, at every number of turns."""
    place = place_of(options)
    return [
        compare(options.model, world, turns, place, options.repeats)
        for world in options.worlds
        for turns in options.turns
    ]


def place_of(options: argparse.Namespace) -> Place:
    return Place(options.device, options.dtype)


def merged_rows(options: argparse.Namespace) -> tuple[Table, Rows]:
    found = against(options, merged.compare)
    table = Table(
        "world", "turns", "trained", "tokens, merged", "per turn", "s, merged", "per turn",
        "ratio", "gradients apart",
        title="update: merged rows against one row per turn",
    )  # fmt: skip
    for r in found:
        tokens, taken = (f"{n:,}" for n in r["tokens"]), (f"{s:.2f}" for s in r["seconds"])
        apart = f"{r['gradient_gap']:.0e} of {r['largest_gradient']:.0e}"
        trained = f"{r['trained_tokens']:,}"
        begin = (r["world"], str(r["turns"]), trained)
        table.add_row(*begin, *tokens, *taken, f"{r['ratio']:.1f}x", apart)
    return table, found


def cached_rows(options: argparse.Namespace) -> tuple[Table, Rows]:
    found = against(options, cached.compare)
    table = Table(
        "world", "turns", "sampled", "told", "s, cached", "scratch",
        "tokens/s, cached", "scratch", "ratio",
        title="rollout: caches kept between turns against generate from scratch",
    )  # fmt: skip
    for r in found:
        said = (f"{r['sampled_tokens']:,}", f"{r['told_tokens']:,}")
        taken = (f"{s:.2f}" for s in r["seconds"])
        speed = (f"{n:,.0f}" for n in r["tokens_per_second"])
        table.add_row(r["world"], str(r["turns"]), *said, *taken, *speed, f"{r['ratio']:.1f}x")
    return table, found


def trl_rows(options: argparse.Namespace) -> tuple[Table, Rows]:
    found = []
    for world in options.worlds:
        sizes = ["--turns", str(options.trl_turns), "--repeats", str(options.repeats)]
        command = [str(options.trl_python), str(HERE / "against_trl.py"), "--world", world]
        done = subprocess.run(
            [*command, "--model", options.model, *sizes], capture_output=True, text=True
        )
        if done.returncode:
            reason = done.stderr.strip().splitlines()[-1]
            raise SystemExit(f"the comparison with TRL failed: {reason}")
        found.append(json.loads(done.stdout.strip().splitlines()[-1]))
    table = Table(
        "world", "turns", "", "tokens a step", "s, rollout", "s, update", "tokens/s", "ratio",
        title="training step, rollout and update: ours against TRL",
    )  # fmt: skip
    for r in found:
        ratio = r["ours"]["tokens_per_second"] / r["TRL"]["tokens_per_second"]
        for name in ("ours", "TRL"):
            side = r[name]
            numbers = (f"{side['tokens']:,.0f}", f"{side['rollout']:.2f}", f"{side['update']:.2f}")
            speed = f"{side['tokens_per_second']:,.0f}"
            own = f"{ratio:.1f}x" if name == "ours" else ""
            table.add_row(r["world"], str(r["turns"]), name, *numbers, speed, own)
    return table, found


def peak_rows(options: argparse.Namespace) -> tuple[Table, Rows]:
    place, found = place_of(options), []
    for model in dict.fromkeys([*SHAPES, options.model]):
        found.append(peak_share.measure(model, PEAK_TURNS, place, options.repeats))
    checked = peak_share.check("1M", CHECK_TURNS)
    peak = peak_share.measured_peak(place) / 1e9
    table = Table(
        "model", "parameters", "tokens", "padding", "tokens/s", "GFLOP/s", "share of peak",
        title=f"update (one optimizer step): peak {peak:,.0f} GFLOP/s in {place.dtype}, "
        f"counted over torch's counter {checked:.3f}",
    )  # fmt: skip
    for r in found:
        sizes = (f"{r['parameters'] / 1e6:.1f}M", f"{r['tokens']:,}", f"{r['padding']:.0%}")
        speed = (f"{r['tokens_per_second']:,.0f}", f"{r['gigaflops']:,.0f}")
        table.add_row(name_of(r["model"]), *sizes, *speed, f"{r['share']:.0%}")
    return table, found


def head_rows(options: argparse.Namespace) -> tuple[Table, Rows]:
    found = head.compare()
    return head.table_of(found), [{"way": way, **numbers} for way, numbers in found.items()]


PARTS = {
    "merged": merged_rows,
    "cached": cached_rows,
    "head": head_rows,
    "trl": trl_rows,
    "peak": peak_rows,
}
ON_CPU = {"head": "on a CPU", "trl": "on a CPU in float32"}
"""Parts that are measured nowhere else."""


def options_of(words: Sequence[str] | None = None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument(
        "--only", nargs="+", choices=PARTS, help="none: all that can be measured there"
    )
    parser.add_argument("--model", default="10M", help=f"a folder, or one of {list(SHAPES)}")
    parser.add_argument("--worlds", nargs="+", choices=WORLDS, default=list(WORLDS))
    parser.add_argument("--turns", nargs="+", type=int, default=[10, 20, 40])
    parser.add_argument("--trl-turns", type=int, default=20)
    parser.add_argument("--trl-python", type=Path, default=TRL_PYTHON)
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--dtype", choices=["float32", "bfloat16"], default="float32")
    parser.add_argument("--json", type=Path, help="write all numbers there too")
    options = parser.parse_args(words)
    plain = (options.device, options.dtype) == ("cpu", "float32")
    options.only = options.only or [part for part in PARTS if plain or part not in ON_CPU]
    for part in options.only:
        if part in ON_CPU and not plain:
            parser.error(f"{part} is measured {ON_CPU[part]}; name other parts")
    if "trl" in options.only and not options.trl_python.is_file():
        parser.error(f"no {options.trl_python}: `make trl`, or name other parts with --only")
    return options


def main() -> None:
    options = options_of()
    torch.set_num_threads(1)
    console = Console(width=120, highlight=False)
    console.print(circumstances())
    console.print(f"model {name_of(options.model)}, {options.device}, {options.dtype}")
    numbers: dict[str, Any] = {"circumstances": circumstances(), "model": options.model}
    for name in options.only:
        table, numbers[name] = PARTS[name](options)
        console.print(table)
    if options.device != "cpu":
        console.print(f"most memory: {torch.cuda.max_memory_allocated() / 2**30:.2f} GiB")
    if options.json is not None:
        options.json.write_text(json.dumps(numbers, indent=1))


if __name__ == "__main__":
    main()
