"""RSPO: explore under the dense reward, swap, learn under the outcome.

Paper: Reward-Swap Policy Optimization for Multi-Turn LLM Agents, arXiv:2607.04713, Algorithm 1.
The paper's code and full text were not at hand; where its public review is silent the choice is
ours and the docstrings say so (docs/method.md lists every one, docs/extensions.md what goes beyond
the paper).
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from rewardswap.collection import Collected
from rewardswap.diversity import diversity, turn_reward_spread
from rewardswap.loops.adaptive_alpha import ReplayWeight
from rewardswap.loops.budget import Budget
from rewardswap.loops.hacking_watch import HackingWatch
from rewardswap.loops.k_schedule import KSchedule
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.loops.temperature_ladder import TemperatureLadder
from rewardswap.models.learner import Snapshot
from rewardswap.replay import Replay
from rewardswap.rewards.base import RewardSource
from rewardswap.trainer import ReplayShare, Trainer
from rewardswap.types import Group

Watcher = Callable[[Sequence[Group]], None]


@dataclass
class Explored:
    """What phase 1 leaves to phase 2."""

    harvested: list[Group] = field(default_factory=list)
    """Labelled with the outcome, with the log-probs of the explorer that played them."""
    first: Collected | None = None
    """The first batch, drawn while the explorer still was the agent."""


class Rspo:
    """Algorithm 1 on a trainer, loop by loop."""

    def __init__(
        self,
        trainer: Trainer,
        swap: RewardSwap,
        batch: Batch,
        *,
        budget: Budget,
        dense: RewardSource,
        outcome: RewardSource,
        buffer: Replay,
        before_scoring: Watcher = lambda _: None,
        after_loop: Watcher = lambda _: None,
        watch: HackingWatch | None = None,
    ) -> None:
        """`before_scoring` sees each batch of the explorer, `after_loop` all groups of a loop,
        `watch` what the dense reward has scored."""
        self.trainer = trainer
        self.swap = swap
        self.size = batch.group_size
        self.tasks, self.replay_count = swap.split(batch)
        self.budget = budget
        self.dense = dense
        self.outcome = outcome
        self.buffer = buffer
        self.before_scoring = before_scoring
        self.after_loop = after_loop
        self.watch = watch
        self.lengths = KSchedule(swap.phases, swap.explore_steps, swap.learn_steps)
        self.weight = ReplayWeight(swap.adaptive, swap.alpha) if swap.adaptive_alpha else None
        self.start_critic: Snapshot | None = None
        if swap.explorer_critic == "fresh" and trainer.critic is not None:
            self.start_critic = trainer.critic.snapshot()
        self._seen: list[Group] = []

    def run(self) -> None:
        """Loop until the budget is spent; the last loop may be shorter.

        A budget that ends while the explorer learns ends the run there, with the agent.
        """
        trainer = self.trainer
        while not self.budget.spent(trainer):
            explored = Explored()
            if self.replay_count:
                agent = trainer.branch()  # pi_B <- pi_theta
                try:
                    explored = self._explore()
                finally:
                    trainer.restore(agent)  # forget pi_B, keep what it saw
                if self.budget.spent(trainer):
                    break
                self.buffer.add(explored.harvested)
                self._note_explorer(trainer.divergence(explored.harvested))
            self._learn(explored.first if self.swap.reuse_first_batch else None)
            self.buffer.clear()  # D <- empty
            trainer.loop += 1
            self.lengths.end_loop()
            self.after_loop(self._seen)
            self._seen = []

    def _explore(self) -> Explored:
        """Phase 1: k updates under the dense reward; what was seen, labelled with the outcome."""
        trainer, swap = self.trainer, self.swap
        trainer.become_explorer(
            fresh_optimizer=swap.explorer_optimizer == "fresh",
            learning_rate=swap.explorer_learning_rate,
            critic=self.start_critic,
        )
        explored = Explored()
        for step in range(self.lengths.explore_steps):
            if self.budget.spent(trainer):
                return explored
            seen = trainer.collect("explore", self.tasks, self.size)
            self._watch(seen.groups)
            reused = step == 0 and swap.reuse_first_batch
            if step == 0:
                explored.first = seen
            if swap.harvest != "final" and not reused:
                explored.harvested += trainer.harvest(seen, self.outcome)
            trainer.update(seen, self.dense, "explore", before_scoring=self._watch)
            if self._hacked(trainer.labelled):
                break
        if (swap.harvest != "during" or not explored.harvested) and not self.budget.spent(trainer):
            explored.harvested += self._harvest()
        elif trainer.labelled:  # the last batch of the explorer stands for its harvest
            trainer.note(**turn_reward_spread(trainer.labelled, self.dense.name))
        if self.watch is not None and self.watch.end_loop():
            self._shorten()
        return explored

    def _harvest(self) -> list[Group]:
        """One more rollout by the final explorer, at one temperature or at several."""
        shares: list[tuple[float | None, int]] = [(None, self.tasks)]
        if self.swap.harvest_temperatures:
            ladder = TemperatureLadder(self.swap.harvest_temperatures)
            shares = [*ladder.shares(self.tasks, self.trainer.loop)]
        watched = self.dense if self.swap.explore_steps else None
        harvested: list[Group] = []
        for temperature, tasks in shares:
            seen = self.trainer.collect("harvest", tasks, self.size, temperature)
            self._watch(seen.groups)
            harvested += self.trainer.harvest(seen, self.outcome, watched)
        if watched is not None:
            self.trainer.note(**turn_reward_spread(harvested, watched.name))
            self._hacked(harvested)
        return harvested

    def _hacked(self, groups: Sequence[Group]) -> bool:
        """Whether the detector gives an alarm that is to end phase 1."""
        return self.watch is not None and self.watch.see(groups) and self._shorten()

    def _shorten(self) -> bool:
        """Halve the phases after an alarm, where that is asked."""
        if self.swap.on_hacking != "shorten":
            return False
        self.lengths.alarm()
        return True

    def _learn(self, first: Collected | None) -> None:
        """Phase 2: updates of the agent under the outcome; `first` is its first fresh batch."""
        trainer = self.trainer
        for step in range(self.lengths.learn_steps):
            if self.budget.spent(trainer):
                break
            fresh = first if step == 0 else None  # D_on ~ pi_theta
            if fresh is None:
                fresh = trainer.collect("learn", self.tasks, self.size)
                self._seen += fresh.groups
            count = min(self.replay_count, len(self.buffer))
            trainer.note(missing_replay=float(self.replay_count - count))
            replayed = self.buffer.sample(count) if count else []  # D_off ~ pi_B, best first
            share = self._share(fresh)
            trainer.update(  # the swap
                fresh, self.outcome, "learn", replayed, share, self._seen.extend
            )

    def _share(self, fresh: Collected) -> ReplayShare:
        """Alpha, or what adapts it to the agent once it is known how much replayed rows say."""
        weight, buffer = self.weight, self.buffer
        if weight is None:
            return self.swap.alpha
        won = [t.success for group in fresh.groups for t in group.trajectories]
        weight.observe(sum(won), len(won))
        return lambda known: weight.weight(known.get("effective_sample_size"), buffer.successes())

    def _watch(self, groups: Sequence[Group]) -> None:
        self._seen += groups
        self.before_scoring(groups)

    def _note_explorer(self, divergence: float) -> None:
        stored = diversity(self.buffer.groups)
        self.trainer.note(
            explorer_kl=divergence,
            replay_success_share=self.buffer.success_share(),
            replay_size=float(len(self.buffer)),
            **{f"replay_{name}": value for name, value in stored.items()},
        )
