"""What a run knows beside its trainer and its loop, and how it is brought back."""

import hashlib
import time
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from typing import Any

import tomli_w

from rewardswap.accounting import Accounting
from rewardswap.checkpoints.files import Checkpoints, Found
from rewardswap.configuration import Run
from rewardswap.dense import DenseReward
from rewardswap.errors import UnfitCheckpointError
from rewardswap.evaluation import Evaluation
from rewardswap.ranks import by_first
from rewardswap.run_folder import RunFolder
from rewardswap.settings import as_toml
from rewardswap.stage import Stage

PARTS = (
    "identity",
    "dense",
    "warned",
    "accounting",
    "seconds",
    "before",
    "sizes",
    "trainer",
    "loop",
    "learners",
)
"""What a checkpoint of a run has."""


@dataclass
class RunState:
    """Counts, the dense reward, and the evaluation of the start policy."""

    identity: Mapping[str, str]
    """What a run that goes on must find as it was."""
    dense: DenseReward
    accounting: Accounting = field(default_factory=Accounting)
    """What is played beside training: evaluations, and rollouts for the process reward."""
    warned: Counter[str] = field(default_factory=Counter)
    """How often each kind of warning was given."""
    before: Evaluation | None = None
    started: float = field(default_factory=time.monotonic)

    @property
    def seconds(self) -> float:
        """Seconds that the run has gone on, those before it was stopped included."""
        return time.monotonic() - self.started

    def state(self) -> dict[str, Any]:
        """All of it, ready for a checkpoint."""
        played = self.before
        return {
            "identity": dict(self.identity),
            "dense": self.dense.state(),
            "warned": dict(self.warned),
            "accounting": self.accounting.state(),
            "seconds": self.seconds,
            "before": None if played is None else [[*played.trajectories], [*played.failures]],
        }

    def restore(self, state: Mapping[str, Any], stage: Stage, temperature: float) -> None:
        """Go on from a `state`; `temperature` is that of evaluations."""
        self.dense.restore(state["dense"])
        self.warned.update(state["warned"])
        self.accounting.restore(state["accounting"])
        self.started = time.monotonic() - state["seconds"]
        played, failed = state["before"]
        sampling = replace(stage.sampling, temperature=temperature)
        self.before = Evaluation(stage.panel, sampling, tuple(played), tuple(failed))


def found_in(
    folder: RunFolder, checkpoints: Checkpoints, identity: Mapping[str, str]
) -> Found | None:
    """The checkpoint to go on from, none where the run had not come to one.

    Raises ValueError where the run has ended, or does not find what it was begun with.
    """

    def refuse_ended() -> None:
        if (folder.path / "summary.json").exists() and not checkpoints.numbers():
            raise ValueError(f"the run in {folder.path} has ended: there is nothing to go on with")

    ranks = checkpoints.ranks
    by_first(ranks, refuse_ended)
    found = checkpoints.newest()
    if found is None:
        return None
    by_first(ranks, lambda: _refuse_another(folder, found.state, identity))
    return found


def _refuse_another(
    folder: RunFolder, state: Mapping[str, Any], identity: Mapping[str, str]
) -> None:
    for name, was in state["identity"].items():
        now = str(identity.get(name))
        if now != was:
            raise ValueError(
                f"{folder.path} cannot go on: its {name.replace('_', ' ')} was {was[:16]}, and is "
                f"{now[:16]} now; bring back what was there, or start a new run"
            )
    folder.refuse_shorter(state["sizes"])


@contextmanager
def given_up(folder: RunFolder, stage: Stage) -> Iterator[None]:
    """Give folder and stage up where there is a reason not to go on."""
    try:
        yield
    except ValueError:
        folder.close()
        stage.close()
        raise


@contextmanager
def fitting(number: int) -> Iterator[None]:
    """Raise UnfitCheckpointError where the state of a checkpoint is not one of this run."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        raise UnfitCheckpointError(
            f"checkpoint {number} does not fit this run ({type(error).__name__}: {error}); nothing "
            "of the record was touched"
        ) from error


def settings_sha256(run: Run) -> str:
    """Of everything that decides the numbers of a run."""
    apart = ("output", "record", "track")
    settings = {n: part for n, part in as_toml(run).items() if n not in apart}
    return hashlib.sha256(tomli_w.dumps(settings).encode()).hexdigest()
