"""The verbs of training: collect, update, harvest, branch, restore. No method has a name here."""

import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from rewardswap.accounting import Accounting
from rewardswap.algorithm import Algorithm
from rewardswap.annotation import annotated
from rewardswap.collection import Collected, mean_return
from rewardswap.collector import Begin, Collector, Phase, Play
from rewardswap.diversity import diversity
from rewardswap.errors import RunStoppedError
from rewardswap.models.batching import Batch, collate, uncollate
from rewardswap.models.critic import Critic
from rewardswap.models.learner import Metrics, Snapshot
from rewardswap.models.policy import Policy
from rewardswap.optimization import check_minibatches, fit_critic, fit_policy
from rewardswap.rewards.base import RewardSource
from rewardswap.rewards.checked import OnFailure, label, label_all
from rewardswap.types import Group, Task

ReplayShare = float | Callable[[Metrics], float]
"""Weight of replayed rows, or what decides it from what is known of them before the step."""


@dataclass(frozen=True)
class Agent:
    """The policy and its critic at the moment of the branch, to come back to."""

    policy: Snapshot
    critic: Snapshot | None
    tasks_cursor: int


class Trainer:
    """One policy, the world it acts in, and the numbers that every phase adds up."""

    def __init__(
        self,
        *,
        policy: Policy,
        play: Play,
        begin: Begin | None = None,
        algorithm: Algorithm,
        training_tasks: Sequence[Task],
        seed: int,
        minibatches: int = 1,
        explorer_algorithm: Algorithm | None = None,
        explorer_minibatches: int | None = None,
        critic: Critic | None = None,
        reference: Policy | None = None,
        failure_limit: float = 0.5,
        most_skipped: int = 10,
        on_failed_reward: OnFailure = "stop",
        learning_rate: Callable[[int], float] | None = None,
        report: Callable[[Metrics, Phase, Sequence[Group]], None] = lambda *_: None,
        learned: Callable[[Sequence[Group], Batch, Tensor], None] = lambda *_: None,
    ) -> None:
        """With `begin`, loops play a batch while the policy learns from the one before it.

        `report` hears of every update and harvest once it is over, `learned` of every update
        before its first step: its groups, their rows, and which of the rows a loss reads."""
        self.policy = policy
        self.algorithm = algorithm
        self.explorer_algorithm = explorer_algorithm or algorithm
        self.minibatches = minibatches
        self.explorer_minibatches = explorer_minibatches or minibatches
        self.critic = critic
        self.reference = reference
        self.on_failed_reward: OnFailure = on_failed_reward
        self.learning_rate = learning_rate
        self.report = report
        self.learned = learned
        self.agent_updates = 0
        self.loop = 0
        self.accounting = Accounting()
        self.labelled: list[Group] = []
        """The fresh groups of the last update, under its rewards."""
        self.changes = 0
        """How often something has begun to change what learns: passes over a batch, an explorer
        that starts, an agent that comes back."""
        for learner in (policy, critic):
            if learner is not None:
                learner.most_skipped = most_skipped
        self.most_skipped = most_skipped
        self.spoiling: Batch | None = None
        """The batch of the update with which `most_skipped` optimizer steps in a row were not
        finite, once there is one."""
        self.collector = Collector(
            play, training_tasks, seed, self.accounting, failure_limit, begin
        )
        self._begun: Counter[str] = Counter()
        """Episodes of each task that are played in the background."""
        self._start_rate = float(policy.optimizer.param_groups[0]["lr"])
        self._notes: Metrics = {}
        if algorithm.needs_reference and reference is None:
            raise ValueError("the method has a divergence to a reference policy; give `reference`")
        if algorithm.critic is not None and critic is None:
            raise ValueError("the method learns with a critic; give `critic`")

    @property
    def counters(self) -> Counter[str]:
        """Sums over all phases."""
        return self.accounting.total

    def note(self, **metrics: float) -> None:
        """Numbers that belong into the record of the next update."""
        self._notes.update(metrics)

    def collect(
        self,
        phase: Phase,
        tasks: int,
        group_size: int,
        temperature: float | None = None,
        before: Counter[str] | None = None,
    ) -> Collected:
        """Play `group_size` episodes of each of the next `tasks` tasks of this phase's role.

        Explorer and agent draw tasks and tokens from streams of their own, so that the agent's
        are the same whether or not it was branched. What was sampled at another temperature than
        the policy's own can be harvested, not learned from. `before` counts the episodes of each
        task that the same update has had already.
        """
        return self.collector.collect(
            phase,
            tasks,
            group_size,
            version=self.policy.version,
            loop=self.loop,
            temperature=temperature,
            before=before,
        )

    @property
    def one_step_off(self) -> bool:
        """Whether batches are played while the policy learns from the one before."""
        return self.collector.start is not None

    def begin(self, phase: Phase, tasks: int, seen: Collected) -> Callable[[], Collected]:
        """Begin the batch behind `seen` with the policy as it is; what is returned waits for it.

        It is to be learned from at the next update: by then it is one update old.
        """
        version = self.policy.version
        begun = self.collector.begin(
            phase,
            tasks,
            seen.group_size,
            version=version,
            loop=self.loop,
            before=seen.episodes if seen.version == version else Counter(),
        )
        self._begun = begun.episodes
        return begun.take

    def update(
        self,
        collected: Collected,
        source: RewardSource,
        phase: Phase,
        replayed: Sequence[Group] = (),
        replay_share: ReplayShare = 0.0,
        before_scoring: Callable[[Sequence[Group]], None] = lambda _: None,
    ) -> Metrics:
        """One update of the policy under the rewards of `source`.

        What an earlier version of the policy has sampled is corrected by the log-probs that it was
        sampled with. `replayed` groups are labelled by the same source, weigh `replay_share` of
        every optimizer step, and keep the behavior log-probs that they were collected with.
        `before_scoring` sees what the method has collected further. Raises ValueError for rows
        that were sampled at another temperature than the policy's.
        """
        if collected.temperature not in (None, self.policy.temperature):
            raise ValueError(
                f"these episodes were sampled at temperature {collected.temperature}, the policy "
                f"learns at {self.policy.temperature}; harvest them instead"
            )
        if phase == "learn" and self.learning_rate is not None:
            self.policy.set_learning_rate(self.learning_rate(self.agent_updates))
        algorithm = self.algorithm if phase == "learn" else self.explorer_algorithm
        groups, kept, metrics = self._kept(collected, source, phase, algorithm, before_scoring)
        started = time.monotonic()
        fresh_groups = len(kept)
        again, lost = label_all(replayed, source, self.on_failed_reward)
        kept += again
        self.counters["dropped_rewards"] += lost
        batch, read, said = annotated(kept, algorithm, self.policy, self.critic, self.reference)
        self.learned(kept, batch, read)
        metrics.update(said)
        metrics["fresh_groups"], metrics["replayed_groups"] = float(fresh_groups), float(len(again))
        share = replay_share(metrics) if callable(replay_share) else replay_share
        if again:
            metrics["replay_share"] = share
        count = self.minibatches if phase == "learn" else self.explorer_minibatches
        check_minibatches(batch, count)
        warming_up = False
        if algorithm.critic is not None and self.critic is not None:
            warming_up = self.critic.version < algorithm.critic.warmup_updates
            self.changes += 1
            metrics.update(fit_critic(self.critic, batch, algorithm.critic, count))
            metrics["critic_warmup"] = float(warming_up)
        if not warming_up:
            self.changes += 1
            metrics.update(fit_policy(self.policy, batch, read, share, algorithm, count))
        if self.policy.spoiled or (self.critic is not None and self.critic.spoiled):
            self.spoiling = batch
        self._begun = Counter()
        self.policy.version += 1
        self.agent_updates += phase == "learn"
        self.accounting.add(phase, all_updates=1, trained_tokens=int(batch.action_mask.sum()))
        metrics["update_seconds"] = time.monotonic() - started
        self.labelled = groups
        self._finish(metrics, phase, groups)
        return metrics

    def _kept(
        self,
        collected: Collected,
        source: RewardSource,
        phase: Phase,
        algorithm: Algorithm,
        before_scoring: Callable[[Sequence[Group]], None],
    ) -> tuple[list[Group], list[Group], Metrics]:
        """All labelled groups and those that the method keeps; it may ask for more of them."""
        wanted = len(collected.groups)
        groups = self._labelled(self._with_behavior(collected), source)
        kept = [group for group in groups if algorithm.keep(group)]
        collections = 1
        while len(kept) < wanted and collections < algorithm.collections:
            missing, size = wanted - len(kept), collected.group_size
            more = self.collect(phase, missing, size, before=collected.episodes + self._begun)
            before_scoring(more.groups)
            found = self._labelled(more.groups, source)
            groups += found
            kept += [group for group in found if algorithm.keep(group)]
            collected = collected.joined(more)
            collections += 1
        if not kept:
            raise RunStoppedError(
                f"none of {len(groups)} groups in {collections} collections was kept by the "
                "method's filter: there is nothing to learn from; make the tasks easier or the "
                "groups larger, or choose a method without a filter"
            )
        metrics = {
            **collected.metrics(),
            f"{source.name}_reward_mean": mean_return(groups),
            "collections": float(collections),
            "filtered_groups": float(len(groups) - len(kept)),
            "missing_groups": float(wanted - len(kept)),
            **diversity(groups),
        }
        return groups, kept, metrics

    def _with_behavior(self, collected: Collected) -> list[Group]:
        """The groups, with the log-probs of the policy that sampled them where that is gone."""
        if collected.version == self.policy.version:
            return collected.groups
        return [g.with_column("behavior_logprob", g.sampled_logprob) for g in collected.groups]

    def _labelled(self, groups: Sequence[Group], source: RewardSource) -> list[Group]:
        """Groups under the rewards of `source`; what it cannot score is left out and counted."""
        labelled, lost = label_all(groups, source, self.on_failed_reward)
        self.counters["dropped_rewards"] += lost
        if not labelled:
            raise RunStoppedError(
                f"the reward {source.name!r} failed for so many of {len(groups)} groups that none "
                "is left to learn from"
            )
        return labelled

    def harvest(
        self, collected: Collected, source: RewardSource, watched: RewardSource | None = None
    ) -> list[Group]:
        """Label with `source` and store the log-probs of the policy that collected (pi_B).

        They cannot be computed once that policy is gone (arXiv:2607.04713, Eq. 4): of what is one
        step off they are those that it was sampled with. `watched` scores the groups too, for the
        record alone.
        """
        metrics = collected.metrics()
        groups = collected.groups
        if watched is not None:
            groups = self._labelled(groups, watched)
            metrics[f"{watched.name}_reward_mean"] = mean_return(groups)
        groups = [label(group, source) for group in groups]
        if self.algorithm.behavior == "engine" or collected.version != self.policy.version:
            scored = [group.sampled_logprob for group in groups]
        else:
            scores = self.policy.score(collate(groups), collected.temperature)
            scored = uncollate(groups, scores.logprob)
        groups = [
            group.with_column("behavior_logprob", logprob)
            for group, logprob in zip(groups, scored, strict=True)
        ]
        self._finish({**metrics, **diversity(groups)}, "harvest", groups)
        return groups

    def divergence(self, groups: Sequence[Group]) -> float:
        """Mean over tokens of log pi_B - log pi_theta on pi_B's own tokens, in nats.

        It estimates KL(pi_B || pi_theta) without bias and says how far the explorer has moved.
        """
        batch = collate(groups)
        gap = batch.column("behavior_logprob") - self.policy.score(batch).logprob
        return float(gap[batch.action_mask].double().mean())

    def branch(self) -> Agent:
        """Remember the agent; what follows happens to the explorer (Agent B)."""
        critic = None if self.critic is None else self.critic.snapshot()
        return Agent(self.policy.snapshot(), critic, self.collector.streams["agent"].cursor)

    def become_explorer(
        self, *, fresh_optimizer: bool, learning_rate: float | None, critic: Snapshot | None = None
    ) -> None:
        """What the explorer starts with, after the branch; none: the policy's learning rate.

        With fresh optimizers the critic's is fresh too. `critic` is where the explorer's critic
        starts; none: where the agent's is.
        """
        self.changes += 1
        if learning_rate is None and self.learning_rate is not None:
            learning_rate = self._start_rate  # the agent's decays, the explorer's is constant
        if fresh_optimizer:
            self.policy.fresh_optimizer(learning_rate)
        elif learning_rate is not None:
            self.policy.set_learning_rate(learning_rate)
        if self.critic is not None:
            if critic is not None:
                self.critic.restore(critic)
            elif fresh_optimizer:
                self.critic.fresh_optimizer()

    def restore(self, agent: Agent) -> None:
        """Throw the explorer away: parameters, optimizers and random streams come back bitwise."""
        self.changes += 1
        if self.critic is not None and agent.critic is not None:
            self.critic.restore(agent.critic)
        self.policy.restore(agent.policy)
        self.collector.streams["agent"].cursor = agent.tasks_cursor

    def state(self) -> dict[str, Any]:
        """Counts, notes and places in the streams of tasks: all but what learns."""
        return {
            "agent_updates": self.agent_updates,
            "loop": self.loop,
            "notes": dict(self._notes),
            "accounting": self.accounting.state(),
            "methods": [m.state() for m in (self.algorithm, self.explorer_algorithm)],
            "streams": {role: s.cursor for role, s in self.collector.streams.items()},
        }

    def learners(self) -> dict[str, Snapshot | None]:
        """What learns, as it is now; see `Learner.state`."""
        return {
            "policy": self.policy.state(),
            "critic": None if self.critic is None else self.critic.state(),
        }

    def resume(self, state: Mapping[str, Any], learners: Mapping[str, Snapshot | None]) -> None:
        """Go on from a `state` and the `learners` of the same moment."""
        critic, policy = learners["critic"], learners["policy"]
        if self.critic is not None and critic is not None:
            self.critic.restore(critic)
        if policy is not None:
            self.policy.restore(policy)
        self.agent_updates, self.loop = state["agent_updates"], state["loop"]
        self._notes = dict(state["notes"])
        self.accounting.restore(state["accounting"])
        agents, explorers = state["methods"]
        self.algorithm.restore(agents)
        self.explorer_algorithm.restore(explorers)
        for role, cursor in state["streams"].items():
            self.collector.streams[role].cursor = cursor

    def _finish(self, metrics: Metrics, phase: Phase, groups: Sequence[Group]) -> None:
        metrics.update(self._notes)
        self._notes = {}
        metrics.update(
            update=float(self.agent_updates),
            learning_rate=float(self.policy.optimizer.param_groups[0]["lr"]),
            loop=float(self.loop),
            seconds=self.accounting.end(phase),
            **{name: float(value) for name, value in self.counters.items()},
        )
        self.report(metrics, phase, groups)
