"""The verbs of training: collect, update, harvest, branch, restore. No method has a name here."""

import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rewardswap.algorithm import Algorithm, effective_sample_size
from rewardswap.collection import Collected, episode_requests, grouped
from rewardswap.models.batching import Batch, collate, minibatches, uncollate
from rewardswap.models.critic import Critic
from rewardswap.models.learner import Metrics, Snapshot
from rewardswap.models.policy import Policy
from rewardswap.rewards.base import RewardSource
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.seams import CriticLoss
from rewardswap.task_stream import TaskStream, derived_seed
from rewardswap.types import EpisodeFailure, Group, Task

Phase = Literal["explore", "harvest", "learn"]
Play = Callable[[Sequence[EpisodeRequest], int, int, float | None], Played]
"""Plays episodes: (requests, seed, policy version, temperature or the run's own)."""


@dataclass(frozen=True)
class Agent:
    """The policy and its critic at the moment of the branch, to come back to."""

    policy: Snapshot
    critic: Snapshot | None
    tasks_cursor: int


MEANS = ("entropy", "kl_old")
"""Metrics of the loss that are weighted means over the rows that it reads, as all shares are."""


class RunStoppedError(RuntimeError):
    """A run cannot go on, for a reason that its user can remove."""


class TooManyFailuresError(RunStoppedError):
    """More episodes of one collection broke than the run allows."""


class Trainer:
    """One policy, the world it acts in, and the numbers that every phase adds up."""

    def __init__(
        self,
        *,
        policy: Policy,
        play: Play,
        algorithm: Algorithm,
        training_tasks: Sequence[Task],
        seed: int,
        minibatches: int = 1,
        explorer_algorithm: Algorithm | None = None,
        explorer_minibatches: int | None = None,
        critic: Critic | None = None,
        reference: Policy | None = None,
        failure_limit: float = 0.5,
        learning_rate: Callable[[int], float] | None = None,
        report: Callable[[Metrics, Phase, Sequence[Group]], None] = lambda *_: None,
    ) -> None:
        self.policy = policy
        self.play = play
        self.algorithm = algorithm
        self.explorer_algorithm = explorer_algorithm or algorithm
        self.seed = seed
        self.minibatches = minibatches
        self.explorer_minibatches = explorer_minibatches or minibatches
        self.critic = critic
        self.reference = reference
        self.failure_limit = failure_limit
        self.learning_rate = learning_rate
        self.report = report
        self.agent_updates = 0
        self.loop = 0
        self.counters: Counter[str] = Counter()
        self._streams = {
            role: TaskStream(training_tasks, derived_seed(seed, role))
            for role in ("agent", "explorer")
        }
        self._start_rate = float(policy.optimizer.param_groups[0]["lr"])
        self._start_critic = None if critic is None else critic.snapshot()
        self._notes: Metrics = {}
        self._started = time.monotonic()
        if algorithm.needs_reference and reference is None:
            raise ValueError("the method has a divergence to a reference policy; give `reference`")
        if algorithm.critic is not None and critic is None:
            raise ValueError("the method learns with a critic; give `critic`")

    def note(self, **metrics: float) -> None:
        """Numbers that belong into the record of the next update."""
        self._notes.update(metrics)

    def collect(self, phase: Phase, tasks: int, group_size: int) -> Collected:
        """Play `group_size` episodes of each of the next `tasks` tasks of this phase's role.

        Explorer and agent draw tasks and tokens from streams of their own, so that the agent's
        are the same whether or not it was branched.
        """
        return self._collect(phase, tasks, group_size, Counter())

    def _collect(
        self, phase: Phase, tasks: int, group_size: int, before: Counter[str]
    ) -> Collected:
        started = time.monotonic()
        role = "agent" if phase == "learn" else "explorer"
        drawn = self._streams[role].draw(tasks)
        seed = derived_seed(self.seed, role, self.loop if role == "explorer" else 0)
        requests = episode_requests(drawn, group_size, before)
        played = self.play(requests, seed, self.policy.version, None)
        self._check_failures(played.failures, len(requests))
        groups = grouped(requests, group_size, played.trajectories)
        self.counters.update(
            environment_steps=int(played.counters["environment_steps"]),
            generated_tokens=int(played.counters["generated_tokens"]),
            failed_episodes=len(played.failures),
            dropped_groups=tasks - len(groups),
        )
        if not groups:
            raise RunStoppedError(f"none of {tasks} groups kept two of its {group_size} episodes")
        counters = {name: float(value) for name, value in played.counters.items()}
        counters["seconds"] = time.monotonic() - started
        asked = Counter(request.task.id for request in requests)
        return Collected(groups, counters, group_size, asked)

    def update(
        self,
        collected: Collected,
        source: RewardSource,
        phase: Phase,
        replayed: Sequence[Group] = (),
        replay_share: float = 0.0,
    ) -> Metrics:
        """One update of the policy under the rewards of `source`.

        `replayed` groups are labelled by the same source, weigh `replay_share` of every optimizer
        step, and keep the behavior log-probs that they were collected with.
        """
        if phase == "learn" and self.learning_rate is not None:
            self.policy.set_learning_rate(self.learning_rate(self.agent_updates))
        algorithm = self.algorithm if phase == "learn" else self.explorer_algorithm
        groups, kept, metrics = self._kept(collected, source, phase, algorithm)
        started = time.monotonic()
        fresh_groups = len(kept)
        kept += [label(group, source) for group in replayed]
        batch, read = self._annotated(kept, metrics, algorithm)
        metrics["fresh_groups"], metrics["replayed_groups"] = (
            float(fresh_groups),
            float(len(replayed)),
        )
        count = self.minibatches if phase == "learn" else self.explorer_minibatches
        _check_minibatches(batch, count)
        warming_up = False
        if algorithm.critic is not None and self.critic is not None:
            warming_up = self.critic.version < algorithm.critic.warmup_updates
            metrics.update(_fit_critic(self.critic, batch, algorithm.critic, count))
            metrics["critic_warmup"] = float(warming_up)
        if not warming_up:
            metrics.update(self._optimize(batch, read, replay_share, algorithm, count))
        self.policy.version += 1
        self.agent_updates += phase == "learn"
        self.counters["all_updates"] += 1
        self.counters["trained_tokens"] += int(batch.action_mask.sum())
        metrics["update_seconds"] = time.monotonic() - started
        self._finish(metrics, phase, groups)
        return metrics

    def _kept(
        self, collected: Collected, source: RewardSource, phase: Phase, algorithm: Algorithm
    ) -> tuple[list[Group], list[Group], Metrics]:
        """All labelled groups and those that the method keeps; it may ask for more of them."""
        groups = [label(group, source) for group in collected.groups]
        wanted = len(groups)
        kept = [group for group in groups if algorithm.keep(group)]
        collections = 1
        while len(kept) < wanted and collections < algorithm.collections:
            missing = wanted - len(kept)
            more = self._collect(phase, missing, collected.group_size, collected.episodes)
            found = [label(group, source) for group in more.groups]
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
            f"{source.name}_reward_mean": _mean(group.returns for group in groups),
            "collections": float(collections),
            "filtered_groups": float(len(groups) - len(kept)),
            "missing_groups": float(wanted - len(kept)),
        }
        return groups, kept, metrics

    def harvest(self, collected: Collected, source: RewardSource) -> list[Group]:
        """Label with `source` and store the log-probs of the policy that collected (pi_B).

        They cannot be computed once that policy is gone (arXiv:2607.04713, Eq. 4).
        """
        groups = [label(group, source) for group in collected.groups]
        if self.algorithm.behavior == "engine":
            scored = [group.sampled_logprob for group in groups]
        else:
            scored = uncollate(groups, self.policy.score(collate(groups)).logprob)
        groups = [
            group.with_column("behavior_logprob", logprob)
            for group, logprob in zip(groups, scored, strict=True)
        ]
        self._finish(collected.metrics(), "harvest", groups)
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
        return Agent(self.policy.snapshot(), critic, self._streams["agent"].cursor)

    def become_explorer(
        self, *, fresh_optimizer: bool, fresh_critic: bool, learning_rate: float | None
    ) -> None:
        """What the explorer starts with, after the branch; none: the policy's learning rate.

        With fresh optimizers the critic's is fresh too.
        """
        if learning_rate is None and self.learning_rate is not None:
            learning_rate = self._start_rate  # the agent's decays, the explorer's is constant
        if fresh_optimizer:
            self.policy.fresh_optimizer(learning_rate)
        elif learning_rate is not None:
            self.policy.set_learning_rate(learning_rate)
        if self.critic is not None:
            if fresh_critic and self._start_critic is not None:
                self.critic.restore(self._start_critic)
            elif fresh_optimizer:
                self.critic.fresh_optimizer()

    def restore(self, agent: Agent) -> None:
        """Throw the explorer away: parameters, optimizers and random streams come back bitwise."""
        if self.critic is not None and agent.critic is not None:
            self.critic.restore(agent.critic)
        self.policy.restore(agent.policy)
        self._streams["agent"].cursor = agent.tasks_cursor

    def _annotated(
        self, groups: list[Group], metrics: Metrics, algorithm: Algorithm
    ) -> tuple[Batch, Tensor]:
        """The batch with all columns, and which of its rows a loss must read.

        A row of zero advantage adds nothing to the policy loss, so without other terms it is
        neither scored nor run backwards; its tokens still count in the averages.
        """
        if algorithm.reward_divergence is not None:
            groups = self._with_reward_divergence(groups, algorithm)
            metrics["reward_divergence"] = _mean(
                g.columns["token_reward"][g.token_mask] for g in groups
            )
        if algorithm.critic is not None and self.critic is not None:
            groups = self.critic.annotate(groups)
            targets = algorithm.critic.target(groups)
            groups = [
                group.with_column("value_target", target)
                for group, target in zip(groups, targets, strict=True)
            ]
        try:
            advantages = algorithm.advantage(groups)
        except ValueError as error:
            raise RunStoppedError(f"the method cannot use these rewards: {error}") from error
        metrics["zero_advantage_groups"] = sum(not a.any() for a in advantages) / len(groups)
        batch = collate([_with_evidence(g, a) for g, a in zip(groups, advantages, strict=True)])
        read = (batch.column("advantage") != 0).any(dim=1)
        if algorithm.terms:
            read = torch.ones_like(read)
        elif algorithm.whole_trajectories:
            read = torch.isin(batch.trajectory, batch.trajectory[read])
        metrics["rows"], metrics["rows_without_gradient"] = float(len(read)), float((~read).sum())
        rows = torch.nonzero(read)[:, 0]
        sampled = batch.column("behavior_logprob")
        old = _scored(self.policy, batch, rows)
        fresh = ~batch.replayed[:, None]
        gap = (old - sampled).abs()[batch.action_mask & fresh & read[:, None]]
        if len(gap):
            metrics["engine_gap_mean"], metrics["engine_gap_max"] = (
                float(gap.mean()),
                float(gap.max()),
            )
        behavior = torch.where(fresh, old, sampled) if algorithm.behavior == "trainer" else sampled
        columns = {"old_logprob": old, "behavior_logprob": behavior}
        if self.reference is not None:
            columns["reference_logprob"] = _scored(self.reference, batch, rows)
        batch = batch.with_columns(columns)
        metrics.update(effective_sample_size(batch.take(rows)))
        return batch, read

    def _with_reward_divergence(self, groups: list[Group], algorithm: Algorithm) -> list[Group]:
        """The groups with the divergence to the reference in their rewards, token by token."""
        assert algorithm.reward_divergence is not None
        assert self.reference is not None
        whole = [replace(g, selected=(True,) * len(g.trajectories), columns={}) for g in groups]
        batch = collate(whole)
        old = uncollate(whole, self.policy.score(batch).logprob)
        reference = uncollate(whole, self.reference.score(batch).logprob)
        found = []
        for group, ours, theirs in zip(groups, old, reference, strict=True):
            penalty = algorithm.reward_divergence(ours, theirs)
            reward = group.reward_in_force + penalty.sum(dim=2)
            found.append(
                group.with_rewards(group.rewards, reward).with_column("token_reward", penalty)
            )
        return found

    def _optimize(
        self,
        batch: Batch,
        read: Bool[Tensor, "B"],
        replay_share: float,
        algorithm: Algorithm,
        count: int,
    ) -> Metrics:
        """One pass over the batch; metrics are means over its optimizer steps."""
        totals: Counter[str] = Counter()
        for rows in minibatches(batch, count):
            part = algorithm.weigh(batch.take(rows), replay_share)
            part = part.take(torch.nonzero(read[rows])[:, 0])
            share = float(part.weights["policy"].sum())
            metrics = self.policy.step(
                part,
                algorithm.loss,
                whole_trajectories=algorithm.whole_trajectories,
                entropy_gradient=algorithm.entropy_gradient,
            )
            totals.update({n: v / share if _is_mean(n) else v for n, v in metrics.items()})
        means = {name: value / count for name, value in totals.items()}
        return {**means, "skipped_steps": float(totals["skipped_steps"])}

    def _check_failures(self, failures: Sequence[EpisodeFailure], episodes: int) -> None:
        if failures and len(failures) > self.failure_limit * episodes:
            causes = Counter(f"{failure.owner}: {failure.cause}" for failure in failures)
            cause, _ = causes.most_common(1)[0]
            raise TooManyFailuresError(
                f"{len(failures)} of {episodes} episodes failed, most of them by {cause}; "
                "repair that, or raise `failure_limit`"
            )

    def _finish(self, metrics: Metrics, phase: Phase, groups: Sequence[Group]) -> None:
        metrics.update(self._notes)
        self._notes = {}
        metrics.update(
            update=float(self.agent_updates),
            learning_rate=float(self.policy.optimizer.param_groups[0]["lr"]),
            loop=float(self.loop),
            seconds=time.monotonic() - self._started,
            **{name: float(value) for name, value in self.counters.items()},
        )
        self.report(metrics, phase, groups)


def label(group: Group, source: RewardSource) -> Group:
    """The group with the rewards of `source` in force: the reward swap is this assignment."""
    reward = source.score(group)
    return group.with_rewards({**group.rewards, source.name: reward}, reward)


def _fit_critic(critic: Critic, batch: Batch, loss: CriticLoss, count: int) -> Metrics:
    """One pass of the critic over the batch; means over its optimizer steps, and the fit before."""
    weighed = loss.weigh(batch)
    places = weighed.weights["value"] > 0
    value, target = weighed.column("value")[places], weighed.column("value_target")[places]
    spread = float(target.double().var(correction=0))
    error = float((target - value).double().var(correction=0))
    totals: Counter[str] = Counter()
    for rows in minibatches(batch, count):
        totals.update(critic.step(loss.weigh(batch.take(rows)), loss.loss))
    critic.version += 1
    return {
        "value_loss": totals["value_loss"] / count,
        "value_clip_share": totals["value_clip_share"] / count,
        "critic_gradient_norm": totals["gradient_norm"] / count,
        "critic_gradient_clipped": totals["gradient_clipped"] / count,
        "value_mean": float(value.mean()),
        "explained_variance": 1 - error / spread if spread > 0 else 0.0,
        "critic_skipped_steps": float(totals["skipped_steps"]),
    }


def _check_minibatches(batch: Batch, count: int) -> None:
    for kind in (batch.replayed, ~batch.replayed):
        trajectories = len(torch.unique(batch.trajectory[kind]))
        if 0 < trajectories < count:
            raise RunStoppedError(
                f"{trajectories} trajectories of one kind are left for {count} "
                "minibatches; set policy.minibatches lower"
            )


def _is_mean(name: str) -> bool:
    return name in MEANS or name.endswith("_share")


def _with_evidence(group: Group, advantage: Float[Tensor, "N ..."]) -> Group:
    """The group with what a loss reads: advantage, log-probs it was sampled with, and values."""
    columns = {
        name: group.columns[name] for name in ("value", "value_target") if name in group.columns
    }
    stored = group.columns.get("behavior_logprob", group.sampled_logprob)
    return replace(group, columns={**columns, "advantage": advantage, "behavior_logprob": stored})


def _scored(policy: Policy, batch: Batch, rows: Int[Tensor, "R"]) -> Float[Tensor, "B T"]:
    """log-probs of the action tokens of `rows`, 0 in other rows."""
    logprob = torch.zeros(batch.tokens.shape)
    scored = policy.score(batch.take(rows)).logprob
    logprob[rows, : scored.shape[1]] = scored
    return logprob


def _mean(values: Iterable[Float[Tensor, "M"]]) -> float:
    """Mean over all numbers of some vectors; 0 without any."""
    joined = [value.float() for value in values]
    return float(torch.cat(joined).mean()) if joined else 0.0
