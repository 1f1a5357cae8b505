"""The online process reward model: refitted as the policy moves, kept only if it is no worse."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, NamedTuple

import torch

from rewardswap.rewards.features import TurnFeatures
from rewardswap.rewards.quality import ProcessRewardQuality
from rewardswap.rewards.training import Split, fit_head, split_by_task
from rewardswap.types import Trajectory

if TYPE_CHECKING:
    from rewardswap.rewards.config import ProcessRewardConfig
    from rewardswap.rewards.process import ProcessRewardModel

Part = Literal["training", "validation", "held_out"]


class Refit(NamedTuple):
    """What came of a refit: both heads are judged on the same held-out trajectories."""

    accepted: bool
    before: ProcessRewardQuality
    after: ProcessRewardQuality


@dataclass(frozen=True)
class Collected:
    """Trajectories that a head was fitted on, and the part of every task, which never changes."""

    portions: tuple[tuple[Trajectory, ...], ...] = ()
    """Trajectories in the portions in which they came; each is read by the backbone on its own."""
    parts: Mapping[str, Part] = field(default_factory=dict)
    """The part of each task id."""

    @staticmethod
    def first(trajectories: Sequence[Trajectory], split: Split) -> "Collected":
        """What a first fit was made of."""
        return Collected((tuple(trajectories),), _parts(trajectories, split))

    @property
    def trajectories(self) -> list[Trajectory]:
        """All of them, oldest first."""
        return [trajectory for portion in self.portions for trajectory in portion]

    @property
    def split(self) -> Split:
        """Indices of `trajectories` in each part."""
        parts = [self.parts[trajectory.task.id] for trajectory in self.trajectories]
        members = {p: tuple(n for n, q in enumerate(parts) if p == q) for p in set(parts)}
        return Split(
            members.get("training", ()), members.get("validation", ()), members.get("held_out", ())
        )

    def joined_by(
        self, trajectories: Sequence[Trajectory], config: "ProcessRewardConfig"
    ) -> "Collected":
        """With a new portion; a known task stays in its part, a new one gets its own by its hash.

        So no head is judged on a task that it, or the head before it, was fitted on. Where nothing
        is known yet, the portion is split as a first fit would. Raises ValueError for no
        trajectories, or fewer than three tasks then.
        """
        if not trajectories:
            raise ValueError("no trajectories to refit a process reward model on")
        if not self.parts:
            return Collected.first(trajectories, split_by_task(trajectories, config))
        new = {t.task.id: _part_of(t.task.id, config) for t in trajectories}
        return Collected((*self.portions, tuple(trajectories)), {**new, **self.parts})


def refit(model: "ProcessRewardModel", trajectories: Sequence[Trajectory]) -> Refit:
    """Fit a new head on all trajectories so far; the model keeps it if it is no worse.

    No worse: neither AUC of R_hat nor Brier score on the held-out tasks, of old and new
    trajectories, is worse than the present head's on the same trajectories (spec; that an AUC
    which cannot be told refuses, ours). The trajectories are kept for later refits either way.
    Raises ValueError as `fit` does, and for a model without a head.
    """
    if model.head is None:
        raise ValueError("a process reward model without a head cannot be refitted; call `fit`")
    collected = model.collected.joined_by(trajectories, model.config)
    every, split = collected.trajectories, collected.split
    features = _joined([model.features(portion) for portion in collected.portions])
    head, history = fit_head(every, features, split, model.config)
    before = model.judged(model.head, every, features, split)
    after = model.judged(head, every, features, split)
    model.collected = collected
    accepted = no_worse(before, after)
    if accepted:
        model.head, model.history = head, history
        model.version += 1
    return Refit(accepted, before, after)


def no_worse(before: ProcessRewardQuality, after: ProcessRewardQuality) -> bool:
    """Whether neither AUC nor Brier score got worse; False where the AUC cannot be told."""
    if before.auc_total is None or after.auc_total is None:
        return False
    return after.auc_total >= before.auc_total and after.brier <= before.brier


def _parts(trajectories: Sequence[Trajectory], split: Split) -> dict[str, Part]:
    named: list[tuple[Part, tuple[int, ...]]] = [
        ("training", split.training),
        ("validation", split.validation),
        ("held_out", split.held_out),
    ]
    return {trajectories[n].task.id: part for part, members in named for n in members}


def _part_of(task: str, config: "ProcessRewardConfig") -> Part:
    """The part of a task by sha256 of seed and id alone, with the settings' shares in the mean."""
    digest = hashlib.sha256(f"{config.seed} {task}".encode()).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < config.held_out_share:
        return "held_out"
    return "validation" if place >= 1 - config.validation_share else "training"


def _joined(portions: Sequence[TurnFeatures]) -> TurnFeatures:
    return TurnFeatures(
        torch.cat([portion.values for portion in portions]),
        tuple(length for portion in portions for length in portion.lengths),
    )
