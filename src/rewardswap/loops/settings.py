"""Settings of the reward swap: sizes of a batch, lengths of the phases, replay and explorer."""

from dataclasses import MISSING, Field, dataclass, field, fields
from fractions import Fraction
from typing import Any, Literal

from rewardswap.loops.adaptive_alpha import AdaptiveAlpha
from rewardswap.loops.k_schedule import PhaseLengths
from rewardswap.loops.replay_credit import ReplayAdvantage
from rewardswap.loops.temperature_ladder import TemperatureLadder
from rewardswap.replay import Order, Replay, ReplayBuffer, Unit
from rewardswap.replay_staleness import Staleness, StalenessReplay

REPLAYING = {
    "replay_by",
    "replay_unit",
    "replay_advantage",
    "replay_capacity",
    "harvest",
    "harvest_temperatures",
    "adaptive_alpha",
    "replay_ages",
}
"""Settings that need replayed rows."""
EXPLORING = {
    "explorer_learning_rate",
    "explorer_minibatches",
    "explorer_optimizer",
    "explorer_critic",
    "harvest",
    "reuse_first_batch",
    "on_hacking",
}
"""Settings that need an explorer that learns."""


@dataclass(frozen=True)
class Batch:
    """Sizes of one update: B tasks of N trajectories each."""

    tasks: int = 16
    """B, in tasks (that B counts tasks is our reading, the only one in which sizes add up)."""
    group_size: int = 16
    """N, in trajectories of one task (paper: 16)."""

    def __post_init__(self) -> None:
        if self.tasks < 1 or self.group_size < 1:
            raise ValueError(
                f"a batch needs at least 1 task and groups of at least 1 trajectory, got "
                f"{self.tasks} and {self.group_size}"
            )


@dataclass(frozen=True)
class RewardSwap:
    """One loop: explore for some updates, swap, learn for some."""

    explore_steps: int = 3
    """Updates of the explorer in phase 1 (paper: k = 3); 0: replay only."""
    learn_steps: int = 3
    """Updates of the agent in phase 2 (paper: k = 3)."""
    alpha: float = 1 / 8
    """Share of replayed trajectories, and of their loss (paper: 1/8); 0: no replay."""
    explorer_learning_rate: float | None = None
    """Learning rate of the explorer; none: the policy's."""
    explorer_minibatches: int | None = None
    """Optimizer steps of one update of the explorer; none: the policy's."""
    explorer_optimizer: Literal["fresh", "copy"] = "fresh"
    """Whether the explorer starts without moments or with the agent's (ours: fresh, lest the
    agent's momentum outweigh k dense steps)."""
    explorer_critic: Literal["copy", "fresh"] = "copy"
    """Where the explorer's critic starts, in a method that has one (ours)."""
    harvest: Literal["final", "during", "both"] = "final"
    """What is stored: one more rollout by the final explorer (the literal reading), the rollouts
    that it learned from, each with its own pi_B, or both (ours)."""
    replay_by: Order = "highest_outcome"
    """Order of replay (paper: best outcome first; its ablation: the others)."""
    replay_unit: Unit = "trajectory"
    """Whether trajectories are drawn one by one or in whole groups (ours: one by one)."""
    replay_advantage: ReplayAdvantage = "collection_group"
    """Advantages of replayed rows: from the explorer's whole group, from the selected ones, or
    over the median of the agent's recent returns (ours: the first)."""
    replay_capacity: int = 512
    """Most trajectories in the buffer (ours; it lives for one loop)."""
    reuse_first_batch: bool = False
    """Whether phase 1's first batch, which the agent itself drew, is phase 2's first fresh one (an
    extension): one rollout less a loop. It is not stored for replay then."""
    harvest_temperatures: tuple[float, ...] = ()
    """Temperatures of the harvest in equal shares of its tasks, at least two (an extension: with
    explore_steps 0 an explorer without a reward); none: the policy's own."""
    adaptive_alpha: bool = False
    """Whether the weight of replay falls as the agent succeeds (an extension); sizes stay."""
    adaptive: AdaptiveAlpha = field(default_factory=AdaptiveAlpha)
    """Used with adaptive_alpha."""
    replay_ages: bool = False
    """Whether the buffer outlives the loop and what is in it ages (an extension)."""
    staleness: Staleness = field(default_factory=Staleness)
    """Used with replay_ages."""
    on_hacking: Literal["report", "shorten"] = "report"
    """What an alarm of the hacking detector does: it is reported, or it also ends phase 1 and
    halves the phases that follow (an extension)."""
    phases: PhaseLengths = field(default_factory=PhaseLengths)
    """Used with on_hacking shorten."""

    def __post_init__(self) -> None:
        if not 0 <= self.alpha <= 0.5:
            raise ValueError(
                f"alpha must be between 0 and 1/2, got {self.alpha}: a harvest of (1 - alpha) B "
                "tasks never fills a larger share"
            )
        if self.learn_steps < 1 or self.explore_steps < 0:
            raise ValueError(
                f"learn_steps must be at least 1 and explore_steps at least 0, "
                f"got {self.learn_steps} and {self.explore_steps}"
            )
        if self.explore_steps and not self.alpha:
            raise ValueError(
                f"{self.explore_steps} explore_steps do nothing at alpha = 0: nothing is replayed; "
                "set alpha above 0 or explore_steps to 0"
            )
        if self.explorer_learning_rate is not None and not self.explorer_learning_rate > 0:
            raise ValueError(
                f"explorer_learning_rate must be above 0, got {self.explorer_learning_rate}"
            )
        if self.explorer_minibatches is not None and self.explorer_minibatches < 1:
            raise ValueError(
                f"explorer_minibatches must be at least 1, got {self.explorer_minibatches}"
            )
        if self.harvest_temperatures:
            TemperatureLadder(self.harvest_temperatures)
            if self.explore_steps and self.harvest == "during":
                raise ValueError("harvest_temperatures does nothing at harvest during")
        if self.reuse_first_batch and self.harvest == "during" and self.explore_steps == 1:
            raise ValueError(
                "reuse_first_batch leaves nothing to replay at harvest during and explore_steps 1"
            )
        self._refuse_idle()

    def _refuse_idle(self) -> None:
        """Raise ValueError for settings that would do nothing."""
        changed = {f.name for f in fields(self) if getattr(self, f.name) != _default(f)}
        reasons = {
            "explore_steps = 0": set() if self.explore_steps else EXPLORING,
            "alpha = 0": set() if self.alpha else REPLAYING,
            "adaptive_alpha false": set() if self.adaptive_alpha else {"adaptive"},
            "replay_ages false": set() if self.replay_ages else {"staleness"},
            "replay_ages true": {"replay_by"} if self.replay_ages else set(),
            "on_hacking report": set() if self.on_hacking == "shorten" else {"phases"},
        }
        for reason, idle in reasons.items():
            for name in sorted(changed & idle):
                raise ValueError(f"{name} does nothing at {reason}")

    def split(self, batch: Batch) -> tuple[int, int]:
        """Fresh tasks (1 - alpha) B and replayed trajectories alpha B N.

        Raises ValueError when these are not whole, naming the nearest sizes that are, when the
        buffer is too small for one update, or the harvest for its temperatures.
        """
        exact = Fraction(self.alpha).limit_denominator(10_000)
        if self.alpha and not exact:
            raise ValueError(f"alpha = {self.alpha} is below 1/10000; set it to 0 for no replay")
        share = exact * batch.tasks
        if share.denominator != 1:
            below = batch.tasks // exact.denominator * exact.denominator
            near = [str(size) for size in (below, below + exact.denominator) if size > 0]
            shares = [Fraction(int(share) + n, batch.tasks) for n in (0, 1)]
            fit = [str(fraction) for fraction in shares if 0 < fraction <= Fraction(1, 2)]
            raise ValueError(
                f"alpha = {exact} of {batch.tasks} tasks is {float(share):g}, not whole; the "
                f"nearest numbers of tasks that alpha divides: {', '.join(near)}; the nearest "
                f"alpha of {batch.tasks} tasks: {', '.join(fit) or 0}"
            )
        if self.harvest_temperatures:
            TemperatureLadder(self.harvest_temperatures).shares(batch.tasks - int(share), loop=0)
        count = int(share) * batch.group_size
        if count > self.replay_capacity:
            raise ValueError(
                f"replay_capacity {self.replay_capacity} is smaller than the {count} replayed "
                "trajectories of one update"
            )
        return batch.tasks - int(share), count

    def buffer(self, seed: int) -> Replay:
        """The replay buffer of a run."""
        if self.replay_ages:
            return StalenessReplay(self.replay_capacity, seed, self.staleness, self.replay_unit)
        return ReplayBuffer(self.replay_capacity, seed, self.replay_by, self.replay_unit)


def _default(setting: Field[Any]) -> object:
    """The default of a setting."""
    made = setting.default_factory
    return setting.default if made is MISSING else made()
