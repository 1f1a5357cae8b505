"""RSPO: explore under the dense reward, swap, learn under the outcome.

Paper: Reward-Swap Policy Optimization for Multi-Turn LLM Agents, arXiv:2607.04713, Algorithm 1.
The paper's code and full text were not at hand; where its public review is silent the choice is
ours and the docstrings say so (docs/method.md lists every one).
"""

from dataclasses import dataclass, fields
from fractions import Fraction
from typing import Literal

from rewardswap.loops.budget import Budget
from rewardswap.loops.replay_credit import ReplayAdvantage
from rewardswap.models.learner import Snapshot
from rewardswap.replay import Order, ReplayBuffer, Unit
from rewardswap.rewards.base import RewardSource
from rewardswap.trainer import Trainer
from rewardswap.types import Group

REPLAYING = {
    "replay_by",
    "replay_unit",
    "replay_advantage",
    "replay_capacity",
    "harvest",
}
"""Settings that need replayed rows."""
EXPLORING = {
    "explorer_learning_rate",
    "explorer_minibatches",
    "explorer_optimizer",
    "explorer_critic",
    "harvest",
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
        self._refuse_idle()

    def _refuse_idle(self) -> None:
        """Raise ValueError for settings that would do nothing."""
        default = {field.name: field.default for field in fields(self)}
        changed = {name for name in default if getattr(self, name) != default[name]}
        reasons = {
            "explore_steps = 0": set() if self.explore_steps else EXPLORING,
            "alpha = 0": set() if self.alpha else REPLAYING,
        }
        for reason, idle in reasons.items():
            for name in sorted(changed & idle):
                raise ValueError(f"{name} does nothing at {reason}")

    def split(self, batch: Batch) -> tuple[int, int]:
        """Fresh tasks (1 - alpha) B and replayed trajectories alpha B N.

        Raises ValueError when these are not whole, naming the nearest sizes that are, or when the
        buffer is too small for one update.
        """
        exact = Fraction(self.alpha).limit_denominator(10_000)
        if self.alpha and not exact:
            raise ValueError(f"alpha = {self.alpha} is below 1/10000; set it to 0 for no replay")
        share = exact * batch.tasks
        if share.denominator != 1:
            below = batch.tasks // exact.denominator * exact.denominator
            near = [str(size) for size in (below, below + exact.denominator) if size > 0]
            raise ValueError(
                f"alpha = {exact} of {batch.tasks} tasks is {float(share):g}, not whole; the "
                f"nearest numbers of tasks that alpha divides: {', '.join(near)}"
            )
        count = int(share) * batch.group_size
        if count > self.replay_capacity:
            raise ValueError(
                f"replay_capacity {self.replay_capacity} is smaller than the {count} replayed "
                "trajectories of one update"
            )
        return batch.tasks - int(share), count


def rspo(
    trainer: Trainer,
    swap: RewardSwap,
    batch: Batch,
    *,
    budget: Budget,
    dense: RewardSource,
    outcome: RewardSource,
    buffer: ReplayBuffer,
) -> None:
    """Algorithm 1 until the budget is spent; the last loop may be shorter.

    A budget that ends while the explorer learns ends the run there, with the agent.
    """
    tasks, replay_count = swap.split(batch)
    size = batch.group_size
    start_critic = None
    if swap.explorer_critic == "fresh" and trainer.critic is not None:
        start_critic = trainer.critic.snapshot()
    while not budget.spent(trainer):
        if replay_count:
            agent = trainer.branch()  # pi_B <- pi_theta
            try:
                harvested = _explore(trainer, swap, batch, budget, dense, outcome, start_critic)
            finally:
                trainer.restore(agent)  # forget pi_B, keep what it saw
            if budget.spent(trainer):
                break
            buffer.add(harvested)
            _note_explorer(trainer, buffer, trainer.divergence(harvested))
        for _ in range(swap.learn_steps):
            if budget.spent(trainer):
                break
            fresh = trainer.collect("learn", tasks, size)  # D_on ~ pi_theta
            count = min(replay_count, len(buffer))
            trainer.note(missing_replay=float(replay_count - count))
            replayed = buffer.sample(count) if count else []  # D_off ~ pi_B, best outcome first
            trainer.update(fresh, outcome, "learn", replayed, swap.alpha)  # the swap
        buffer.clear()  # D <- empty
        trainer.loop += 1


def _explore(
    trainer: Trainer,
    swap: RewardSwap,
    batch: Batch,
    budget: Budget,
    dense: RewardSource,
    outcome: RewardSource,
    start_critic: Snapshot | None,
) -> list[Group]:
    """Phase 1: k updates under the dense reward; what was seen, labelled with the outcome."""
    trainer.become_explorer(
        fresh_optimizer=swap.explorer_optimizer == "fresh",
        learning_rate=swap.explorer_learning_rate,
        critic=start_critic,
    )
    tasks, size = swap.split(batch)[0], batch.group_size
    harvested: list[Group] = []
    for _ in range(swap.explore_steps):
        if budget.spent(trainer):
            return harvested
        seen = trainer.collect("explore", tasks, size)
        if swap.harvest != "final":
            harvested += trainer.harvest(seen, outcome)
        trainer.update(seen, dense, "explore")
    if (swap.harvest != "during" or not swap.explore_steps) and not budget.spent(trainer):
        harvested += trainer.harvest(trainer.collect("harvest", tasks, size), outcome)
    return harvested


def _note_explorer(trainer: Trainer, buffer: ReplayBuffer, divergence: float) -> None:
    trainer.note(
        explorer_kl=divergence,
        replay_success_share=buffer.success_share(),
        replay_size=float(len(buffer)),
    )
