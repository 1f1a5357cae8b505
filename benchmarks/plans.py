"""Memory and work of the recipes of the paper's table on 1 to 16 devices, as Markdown.

Arithmetic of `rewardswap plan`, nothing is loaded: python benchmarks/plans.py [--memory 80]
"""

import argparse
from collections.abc import Iterator
from dataclasses import replace

from rewardswap.configuration import Run
from rewardswap.methods.ppo import PPO
from rewardswap.plan.command import make_plan
from rewardswap.plan.settings import PlanSettings
from rewardswap.plan.work import per_agent_update
from rewardswap.recipes import RECIPES
from rewardswap.run_options import run_of

DEVICES = (1, 2, 4, 8, 16)
PEAK = 989e12
"""FLOPs a second of one device in bfloat16 (an H100's data sheet)."""
SHARE = 0.4
"""Part of the peak that is reached in the mean: assumed, not measured."""
GIB = 2**30
CHANGES = (
    "",
    "--policy.sharded true",
    "--policy.lora-rank 32",
    "--policy.sharded true --rollout.slots 32",
    "--policy.lora-rank 32 --rollout.slots 32",
    "--policy.precision bfloat16 --policy.gradient-checkpointing true --rollout.slots 32",
)
"""What makes a run fit. From the fourth on only what fits on fewer devices than those before."""


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--memory", type=float, default=80.0, help="of one device, in GiB")
    memory = parser.parse_args().memory
    print(
        "| recipe | changed | "
        + " | ".join(f"{n} GPU" for n in DEVICES)
        + f" | TFLOPs an update | s on {', '.join(map(str, DEVICES))} |"
    )
    print("|---" * (len(DEVICES) + 4) + "|")
    for name, run in recipes():
        fewest = len(DEVICES)
        for number, change in enumerate(CHANGES):
            if isinstance(run.method, PPO) and "lora" in change:
                continue
            changed = run_of(run, change.split(), "plan")
            line, too_large = row(name, change or "as it is", changed, memory)
            if number < 3 or too_large < fewest:
                print(line, flush=True)
            fewest = min(fewest, too_large)


def recipes() -> Iterator[tuple[str, Run]]:
    """The recipes of models that do not ship, with the turns of the real worlds."""
    for name, make in RECIPES.items():
        run = make()
        if "rspo" not in name or "stable" in name or "gigpo" in name:  # GiGPO has GRPO's sizes
            continue
        if name.startswith("alfworld"):
            run = replace(run, env=replace(run.env, turn_limit=50))
        yield name, run


def row(name: str, change: str, run: Run, memory: float) -> tuple[str, int]:
    """One line: the largest of rollout, update and branch on each device, in GiB; and on how many
    of the numbers of devices that is too much."""
    sizing = make_plan(run, PlanSettings(device_memory=memory)).sizing
    work = per_agent_update(sizing).flops / 1e12
    cells = []
    for devices in DEVICES:
        peak = replace(sizing, devices=devices).memory().peak / GIB
        cells.append(f"{peak:.0f}" if peak <= memory else f"({peak:.0f})")
    seconds = ", ".join(f"{work * 1e12 / (n * PEAK * SHARE):.1f}" for n in DEVICES)
    line = f"| `{name}` | {change} | " + " | ".join(cells) + f" | {work:,.0f} | {seconds} |"
    return line, sum(cell.startswith("(") for cell in cells)


if __name__ == "__main__":
    main()
