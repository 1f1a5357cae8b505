"""RSPO: explore under the dense reward, swap, learn under the outcome.

Paper: Reward-Swap Policy Optimization for Multi-Turn LLM Agents, arXiv:2607.04713, Algorithm 1.
The paper's code and full text were not at hand; where its public review is silent the choice is
ours and the docstrings say so (docs/method.md lists every one, docs/extensions.md what goes beyond
the paper).
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from rewardswap.collection import Collected
from rewardswap.diversity import diversity, turn_reward_spread
from rewardswap.loops.adaptive_alpha import ReplayWeight
from rewardswap.loops.budget import Budget
from rewardswap.loops.hacking_watch import HackingWatch
from rewardswap.loops.k_schedule import KSchedule
from rewardswap.loops.loop import Loop
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.loops.temperature_ladder import TemperatureLadder
from rewardswap.models.learner import Snapshot
from rewardswap.replay import Replay
from rewardswap.rewards.base import RewardSource
from rewardswap.trainer import Agent, ReplayShare, Trainer
from rewardswap.types import Group

Watcher = Callable[[Sequence[Group]], None]


@dataclass
class Position:
    """Where in a loop the work is, and what the loop has until there."""

    phase: Literal["branch", "explore", "harvest", "learn"] = "branch"
    """What comes next."""
    updates: int = 0
    """Updates of the phase so far."""
    agent: Agent | None = None
    """What the explorer was branched from, while there is one."""
    harvested: list[Group] = field(default_factory=list)
    """Labelled with the outcome, with the log-probs of the explorer that played them."""
    first: Collected | None = None
    """The explorer's first batch, drawn while it still was the agent, where that is used again."""
    seen: list[Group] = field(default_factory=list)
    """Everything that was played in the loop, where somebody asks for it."""


class Rspo(Loop):
    """Algorithm 1 on a trainer: a piece is the branch, an update, or the harvest.

    The last loop may be shorter. A budget that ends while the explorer learns ends the run there,
    with the agent.
    """

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
        after_loop: Watcher | None = None,
        watch: HackingWatch | None = None,
    ) -> None:
        """`before_scoring` sees each batch of the explorer, `after_loop` all groups of a loop,
        `watch` what the dense reward has scored."""
        super().__init__(trainer, budget)
        self.swap = swap
        self.size = batch.group_size
        self.tasks, self.replay_count = swap.split(batch)
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
        self.position = Position()

    def step(self) -> None:
        """The next piece of Algorithm 1."""
        match self.position.phase:
            case "branch":
                self._branch()
            case "explore":
                self._explore()
            case "harvest":
                self._take_harvest()
            case "learn":
                self._learn()

    def leave(self) -> None:
        """Bring the agent back where the explorer is at work."""
        self._restore()

    def state(self) -> dict[str, Any]:
        """The position in the loop, the buffer, and what schedules, weight and watch know."""
        position = self.position
        return {
            "position": {
                **vars(position),
                "harvested": [*position.harvested],
                "seen": [*position.seen],
            },
            "buffer": self.buffer.state(),
            "stored": self.buffer.stored(),
            "lengths": self.lengths.state(),
            "weight": None if self.weight is None else self.weight.state(),
            "watch": None if self.watch is None else self.watch.state(),
            "ahead": self.ahead,
            "start_critic": self.start_critic,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.position = Position(**state["position"])
        self.buffer.restore(state["buffer"], state["stored"])
        self.lengths.restore(state["lengths"])
        if self.weight is not None:
            self.weight.restore(state["weight"])
        if self.watch is not None:
            self.watch.restore(state["watch"])
        self.ahead = state.get("ahead")
        self.start_critic = state["start_critic"]

    def _branch(self) -> None:
        """pi_B <- pi_theta, where anything is to be replayed."""
        if not self.replay_count:
            self.position.phase = "learn"
            return
        self.position.agent = self.trainer.branch()
        self.trainer.become_explorer(
            fresh_optimizer=self.swap.explorer_optimizer == "fresh",
            learning_rate=self.swap.explorer_learning_rate,
            critic=self.start_critic,
        )
        self.position.phase = "explore" if self.lengths.explore_steps else "harvest"

    def _explore(self) -> None:
        """One of the k updates of phase 1, under the dense reward."""
        position, trainer, swap = self.position, self.trainer, self.swap
        seen = self.take("explore", self.tasks, self.size)
        k = self.lengths.explore_steps
        following = self.begin("explore", self.tasks, seen, more=position.updates + 1 < k)
        self._watch(seen.groups)
        reused = swap.reuse_first_batch and not position.updates
        if reused:
            position.first = seen
        if swap.harvest != "final" and not reused:
            position.harvested += trainer.harvest(seen, self.outcome)
        trainer.update(seen, self.dense, "explore", before_scoring=self._watch)
        self.ahead = following()
        position.updates += 1
        if not self._hacked(trainer.labelled) and position.updates < k:
            return
        if swap.harvest != "during" or not position.harvested:
            position.phase = "harvest"
            return
        # the last batch of the explorer stands for its harvest
        trainer.note(**turn_reward_spread(trainer.labelled, self.dense.name))
        self._swap()

    def _take_harvest(self) -> None:
        """The rollout of the final explorer."""
        self.position.harvested += self._harvest()
        self._swap()

    def _swap(self) -> None:
        """Forget pi_B and keep what it saw: that is labelled with the outcome."""
        if self.watch is not None and self.watch.end_loop():
            self._shorten()
        self._restore()
        position = self.position
        self.buffer.add(position.harvested)
        self._note_explorer(self.trainer.divergence(position.harvested))
        position.phase, position.updates, position.harvested = "learn", 0, []

    def _restore(self) -> None:
        if self.position.agent is not None:
            self.trainer.restore(self.position.agent)
            self.position.agent = None

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

    def _learn(self) -> None:
        """One of the updates of phase 2: of the agent, under the outcome."""
        position, trainer = self.position, self.trainer
        fresh, position.first = position.first, None  # D_on ~ pi_theta
        if fresh is None:
            fresh = self.take("learn", self.tasks, self.size)
            self._keep(fresh.groups)
        last = position.updates + 1 == self.lengths.learn_steps
        following = self.begin("learn", self.tasks, fresh, more=not last)
        count = min(self.replay_count, len(self.buffer))
        trainer.note(missing_replay=float(self.replay_count - count))
        replayed = self.buffer.sample(count) if count else []  # D_off ~ pi_B, best first
        share = self._share(fresh)
        trainer.update(fresh, self.outcome, "learn", replayed, share, self._keep)  # the swap
        self.ahead = following()
        position.updates += 1
        if position.updates == self.lengths.learn_steps or self.finished:
            self._end_loop()

    def _end_loop(self) -> None:
        self.buffer.clear()  # D <- empty
        self.trainer.loop += 1
        self.lengths.end_loop()
        if self.after_loop is not None:
            self.after_loop(self.position.seen)
        self.position = Position()

    def _share(self, fresh: Collected) -> ReplayShare:
        """Alpha, or what adapts it to the agent once it is known how much replayed rows say."""
        weight, buffer = self.weight, self.buffer
        if weight is None:
            return self.swap.alpha
        won = [t.success for group in fresh.groups for t in group.trajectories]
        weight.observe(sum(won), len(won))
        return lambda known: weight.weight(known.get("effective_sample_size"), buffer.successes())

    def _watch(self, groups: Sequence[Group]) -> None:
        self._keep(groups)
        self.before_scoring(groups)

    def _keep(self, groups: Sequence[Group]) -> None:
        if self.after_loop is not None:
            self.position.seen += groups

    def _note_explorer(self, divergence: float) -> None:
        stored = diversity(self.buffer.groups)
        self.trainer.note(
            explorer_kl=divergence,
            replay_success_share=self.buffer.success_share(),
            replay_size=float(len(self.buffer)),
            **{f"replay_{name}": value for name, value in stored.items()},
        )
