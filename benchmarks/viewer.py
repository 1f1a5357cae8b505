"""How long 2,000 trajectories take to open in a real headless Chromium.

    python benchmarks/viewer.py [--trajectories 2000] [--turns 12] [--tokens 5]

A run folder with that many trajectories of training, each token with its numbers, is made up; its
page is written and opened three times. Counted is from the asking for the page to the moment when
the list is filled, the first trajectory drawn, and a frame has been painted.
"""

import argparse
import json
import sys
import tempfile
import time
from pathlib import Path
from random import Random

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

from circumstances import circumstances

from browser import CHROMIUM, Page, chromium
from rewardswap.report import write_report

FRAME = "new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)))"
COUNT = "document.querySelector('[data-part=count]').textContent"
TEXT = "go to take open the cabinet 1 fridge 2 mug from counter 3 and put it in"
WORDS = TEXT.split()


def trajectory(number: int, turns: int, tokens: int, random: Random) -> dict[str, object]:
    """One made-up trajectory, as large as those of the small agent or larger."""

    def turn() -> dict[str, object]:
        pieces = [f" {random.choice(WORDS)}" for _ in range(tokens)]
        numbers = [[round(random.gauss(0, 1), 5) for _ in range(tokens)] for _ in range(3)]
        names = ("behavior", "old", "advantage")
        seen = " ".join(random.choices(WORDS, k=20))
        told = {"observation": seen, "context": f"{seen} <act>", "action": "".join(pieces)}
        told |= {"pieces": pieces, **dict(zip(names, numbers, strict=True))}
        return {**told, "valid": True, "truncated": False, "reward": 0.0, "tokens": tokens}

    return {
        "task": f"task-{number}",
        "family": f"family {number % 6}",
        "index": 0,
        "outcome": 0.0,
        "success": number % 3 == 0,
        "stop": "turn_limit",
        "policy_version": number,
        "phase": "learn",
        "update": number,
        "replayed": number % 2 == 1,
        "turns": [turn() for _ in range(turns)],
        "final_observation": "the end",
        "process_reward": [round(random.uniform(-1, 1), 3) for _ in range(turns)],
    }


def seconds_of(page: Page, action: str) -> float:
    """Seconds until a frame shows what an action did."""
    started = time.perf_counter()
    page.run(f"(() => {{ {action} }})()")
    page.run(FRAME)
    return time.perf_counter() - started


def main() -> None:
    """Make the run, open its page, and print the times."""
    parser = argparse.ArgumentParser()
    for name, default in (("trajectories", 2000), ("turns", 12), ("tokens", 5)):
        parser.add_argument(f"--{name}", type=int, default=default)
    words = parser.parse_args()
    if CHROMIUM is None:
        raise SystemExit("there is no chromium on this machine")
    random = Random(0)
    print(circumstances())
    with tempfile.TemporaryDirectory() as temporary:
        run = Path(temporary) / "run"
        (run / "trajectories").mkdir(parents=True)
        with (run / "trajectories/train.jsonl").open("w") as file:
            for number in range(words.trajectories):
                row = trajectory(number, words.turns, words.tokens, random)
                file.write(json.dumps(row) + "\n")
        (run / "metrics.jsonl").write_text('{"phase": "learn", "update": 1, "success": 0.5}\n')
        started = time.perf_counter()
        page = write_report(run)
        print(f"written in {time.perf_counter() - started:.2f} s: {page.stat().st_size:,} bytes")
        with chromium(Path(temporary)) as browser:
            for _ in range(3):
                started = time.perf_counter()
                shown = browser.open(page.as_uri())
                shown.run(FRAME)
                opened = time.perf_counter() - started
                search = "const f = document.querySelector('[data-part=search]');"
                search += "f.value = 'mug from'; f.dispatchEvent(new Event('input'))"
                print(
                    f"opened in {opened:.2f} s ({shown.run(COUNT)}); "
                    f"searched in {seconds_of(shown, search):.2f} s ({shown.run(COUNT)})"
                )


if __name__ == "__main__":
    main()
