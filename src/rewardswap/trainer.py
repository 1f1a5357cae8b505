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
from rewardswap.models.batching import Batch, collate, minibatches, uncollate
from rewardswap.models.policy import Metrics, Policy, Snapshot
from rewardswap.rewards.base import RewardSource
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.task_stream import TaskStream, derived_seed
from rewardswap.types import EpisodeFailure, Group, Task, Trajectory

Phase = Literal["explore", "harvest", "learn"]
Play = Callable[[Sequence[EpisodeRequest], int, int, float | None], Played]
"""Plays episodes: (requests, seed, policy version, temperature or the run's own)."""


@dataclass(frozen=True)
class Collected:
    """The groups of one collection and what can be counted about it."""

    groups: list[Group]
    metrics: Metrics


@dataclass(frozen=True)
class Agent:
    """The policy at the moment of the branch, to come back to."""

    policy: Snapshot
    tasks_cursor: int


MEANS = ("entropy", "kl_old", "clip_low_share", "clip_high_share")
"""Metrics of the loss that are weighted means over the rows that it reads."""


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
        reference: Policy | None = None,
        failure_limit: float = 0.5,
        learning_rate: Callable[[int], float] | None = None,
        report: Callable[[Metrics, Phase, Sequence[Group]], None] = lambda *_: None,
    ) -> None:
        self.policy = policy
        self.play = play
        self.algorithm = algorithm
        self.seed = seed
        self.minibatches = minibatches
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
        self._notes: Metrics = {}
        self._started = time.monotonic()
        needed = {name for term in algorithm.terms for name in term.columns}
        if "reference_logprob" in needed and reference is None:
            raise ValueError("the method has a divergence to a reference policy; give `reference`")

    def note(self, **metrics: float) -> None:
        """Numbers that belong into the record of the next update."""
        self._notes.update(metrics)

    def collect(self, phase: Phase, tasks: int, group_size: int) -> Collected:
        """Play `group_size` episodes of each of the next `tasks` tasks of this phase's role.

        Explorer and agent draw tasks and tokens from streams of their own, so that the agent's
        are the same whether or not it was branched.
        """
        started = time.monotonic()
        role = "agent" if phase == "learn" else "explorer"
        drawn = self._streams[role].draw(tasks)
        loop = self.loop if role == "explorer" else 0
        seed = derived_seed(self.seed, role, loop)
        played = self.play(episode_requests(drawn, group_size), seed, self.policy.version, None)
        self._check_failures(played.failures, tasks * group_size)
        groups = _grouped(drawn, group_size, played.trajectories)
        self.counters.update(
            environment_steps=int(played.counters["environment_steps"]),
            generated_tokens=int(played.counters["generated_tokens"]),
            failed_episodes=len(played.failures),
            dropped_groups=tasks - len(groups),
        )
        if not groups:
            raise RunStoppedError(f"none of {tasks} groups kept two of its {group_size} episodes")
        seconds = time.monotonic() - started
        metrics = {
            **_rollout_metrics(groups),
            **{f"rollout/{name}": float(value) for name, value in played.counters.items()},
            "rollout_seconds": seconds,
        }
        return Collected(groups, metrics)

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
        started = time.monotonic()
        if phase == "learn" and self.learning_rate is not None:
            self.policy.set_learning_rate(self.learning_rate(self.agent_updates))
        groups = [label(group, source) for group in collected.groups]
        kept = [group for group in groups if self.algorithm.keep(group)]
        metrics = {
            **collected.metrics,
            f"{source.name}_reward_mean": _mean(group.returns for group in groups),
            "filtered_groups": float(len(groups) - len(kept)),
        }
        kept += [label(group, source) for group in replayed]
        if not kept:
            raise RunStoppedError(
                "no group was kept: there is nothing to learn from in this update"
            )
        batch, read = self._annotated(kept, metrics)
        metrics["fresh_groups"], metrics["replayed_groups"] = (
            float(len(groups)),
            float(len(replayed)),
        )
        metrics.update(self._optimize(batch, read, replay_share))
        self.policy.version += 1
        self.agent_updates += phase == "learn"
        self.counters["trained_tokens"] += int(batch.action_mask.sum())
        metrics["update_seconds"] = time.monotonic() - started
        self._finish(metrics, phase, groups)
        return metrics

    def harvest(self, collected: Collected, source: RewardSource) -> list[Group]:
        """Label with `source` and store the log-probs of the policy that collected (pi_B).

        They cannot be computed once that policy is gone (arXiv:2607.04713, Eq. 4).
        """
        groups = [label(group, source) for group in collected.groups]
        scored = uncollate(groups, self.policy.score(collate(groups)).logprob)
        groups = [
            group.with_column("behavior_logprob", logprob)
            for group, logprob in zip(groups, scored, strict=True)
        ]
        self._finish(dict(collected.metrics), "harvest", groups)
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
        return Agent(self.policy.snapshot(), self._streams["agent"].cursor)

    def restore(self, agent: Agent) -> None:
        """Throw the explorer away: parameters, optimizer and random streams come back bitwise."""
        self.policy.restore(agent.policy)
        self._streams["agent"].cursor = agent.tasks_cursor

    def _annotated(self, groups: Sequence[Group], metrics: Metrics) -> tuple[Batch, Tensor]:
        """The batch with all columns, and which of its rows a loss must read.

        A row of zero advantage adds nothing to the policy loss, so without other terms it is
        neither scored nor run backwards; its tokens still count in the averages.
        """
        advantages = self.algorithm.advantage(groups)
        metrics["zero_advantage_groups"] = sum(not a.any() for a in advantages) / len(groups)
        batch = collate([_with_evidence(g, a) for g, a in zip(groups, advantages, strict=True)])
        read = (batch.column("advantage") != 0).any(dim=1)
        if self.algorithm.terms:
            read = torch.ones_like(read)
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
        columns = {"old_logprob": old, "behavior_logprob": torch.where(fresh, old, sampled)}
        if self.reference is not None:
            columns["reference_logprob"] = _scored(self.reference, batch, rows)
        batch = batch.with_columns(columns)
        metrics.update(effective_sample_size(batch.take(rows)))
        return batch, read

    def _optimize(self, batch: Batch, read: Bool[Tensor, "B"], replay_share: float) -> Metrics:
        """One pass over the batch; metrics are means over its optimizer steps."""
        totals: Counter[str] = Counter()
        for kind in (batch.replayed, ~batch.replayed):
            count = len(torch.unique(batch.trajectory[kind]))
            if 0 < count < self.minibatches:
                raise RunStoppedError(
                    f"{count} trajectories of one kind are left for {self.minibatches} "
                    "minibatches; set policy.minibatches lower"
                )
        for rows in minibatches(batch, self.minibatches):
            part = self.algorithm.weigh(batch.take(rows), replay_share)
            part = part.take(torch.nonzero(read[rows])[:, 0])
            share = float(part.weights["policy"].sum())
            metrics = self.policy.step(part, self.algorithm.loss)
            totals.update({n: v / share if n in MEANS else v for n, v in metrics.items()})
        means = {name: value / self.minibatches for name, value in totals.items()}
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


def episode_requests(tasks: Sequence[Task], group_size: int) -> list[EpisodeRequest]:
    """`group_size` episodes of each task; a task that is named twice gets further indices."""
    seen: Counter[str] = Counter()
    requests: list[EpisodeRequest] = []
    for task in tasks:
        first = seen[task.id]
        requests += [EpisodeRequest(task, first + n) for n in range(group_size)]
        seen[task.id] += group_size
    return requests


def _grouped(
    tasks: Sequence[Task], group_size: int, trajectories: Sequence[Trajectory]
) -> list[Group]:
    """Groups in the order of `tasks`; failed episodes are missing, groups of fewer than 2 go."""
    played = {(t.task.id, t.index): t for t in trajectories}
    groups: list[Group] = []
    seen: Counter[str] = Counter()
    for task in tasks:
        first = seen[task.id]
        seen[task.id] += group_size
        found = [played.get((task.id, first + n)) for n in range(group_size)]
        members = tuple(trajectory for trajectory in found if trajectory is not None)
        if len(members) >= min(2, group_size):
            groups.append(Group(task, members))
    return groups


def _rollout_metrics(groups: Sequence[Group]) -> Metrics:
    trajectories = [t for group in groups for t in group.trajectories]
    turns = [turn for t in trajectories for turn in t.turns]
    count, turn_count = max(1, len(trajectories)), max(1, len(turns))
    mixed = sum(len({t.outcome for t in g.trajectories}) > 1 for g in groups)
    return {
        "success": sum(t.success for t in trajectories) / count,
        "outcome_mean": sum(t.outcome for t in trajectories) / count,
        "turns_mean": len(turns) / count,
        "invalid_rate": sum(not turn.valid for turn in turns) / turn_count,
        "truncated_rate": sum(turn.truncated for turn in turns) / turn_count,
        "informative_groups": mixed / max(1, len(groups)),
    }


def _with_evidence(group: Group, advantage: Float[Tensor, "N ..."]) -> Group:
    """The group with its advantage and the log-probs that its tokens were sampled with."""
    stored = group.columns.get("behavior_logprob", group.sampled_logprob)
    return replace(group, columns={"advantage": advantage, "behavior_logprob": stored})


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
