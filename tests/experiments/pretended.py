"""Small experiments whose runs are pretended."""

import json
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path
from typing import Any

from rich.console import Console

from rewardswap.experiments.experiment import Arm, Experiment, Job
from rewardswap.experiments.places import Places
from rewardswap.experiments.process import Command
from rewardswap.experiments.progress import Board
from rewardswap.experiments.runner import Runner
from rewardswap.experiments.store import Results
from rewardswap.recipes import demo, demo_grpo

SCRIPT = Path(__file__).parent / "pretended_training.py"


def two_arms(**settings: Any) -> Experiment:
    """GRPO and RSPO with seeds 0 and 1; settings are RSPO's arm's."""
    arms = (Arm("grpo", demo_grpo(), (0, 1)), Arm("rspo", demo(), (0, 1), "grpo"))
    return Experiment("two", "two arms", (arms[0], replace(arms[1], **settings)))


def from_weak() -> Experiment:
    """An arm that starts from another's checkpoint, and an arm that does not."""
    weak = Arm("weak", demo_grpo(), (3, 4))
    grown = Arm("grown", demo(), (0, 1), needs="weak")
    return Experiment("grow", "one from another", (weak, grown, Arm("apart", demo(), (0,))))


def pretend(behaviours: dict[str, list[str]]) -> Command:
    """A command that pretends; see the script."""
    words = json.dumps(behaviours)
    return lambda config, folder: [sys.executable, str(SCRIPT), str(config), str(folder), words]


class Made:
    """A runner in a folder, and what it printed."""

    def __init__(
        self,
        folder: Path,
        experiment: Experiment,
        behaviours: dict[str, list[str]] | None = None,
        code: str = "here",
        mix: tuple[str, ...] = (),
        **settings: Any,
    ) -> None:
        self.folder = folder
        self.experiment = experiment
        self._printed = StringIO()
        self.places = Places(folder / "runs", experiment)
        folder.mkdir(exist_ok=True)
        self.results = Results(folder / "results.jsonl", experiment, code, mix)
        self.runner = Runner(
            experiment,
            self.results,
            self.places,
            Board(Console(file=self._printed, width=200)),
            command=pretend(behaviours or {}),
            pause=0.01,
            **settings,
        )

    def run(self, jobs: list[Job] | None = None) -> list[Job]:
        """The jobs that are left."""
        return self.runner.execute(self.experiment.jobs() if jobs is None else jobs)

    @property
    def lines(self) -> list[str]:
        return self._printed.getvalue().splitlines()

    @property
    def stored(self) -> list[tuple[str, int]]:
        """Arm and seed of the lines on disk."""
        text = (self.folder / "results.jsonl").read_text()
        return [(r["arm"], r["seed"]) for r in map(json.loads, text.splitlines())]
