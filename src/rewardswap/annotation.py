"""The columns that a loss reads: what each policy, the critic and the method say of every token."""

from collections.abc import Sequence
from dataclasses import replace

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rewardswap.algorithm import Algorithm, effective_sample_size
from rewardswap.choices import RewardDivergence
from rewardswap.errors import RunStoppedError
from rewardswap.models.batching import Batch, collate, uncollate
from rewardswap.models.critic import Critic
from rewardswap.models.learner import Metrics
from rewardswap.models.policy import Policy
from rewardswap.types import Group

KEPT = ("value", "value_target")
"""Columns of groups that a loss reads beside advantage and behavior_logprob."""


def annotated(
    groups: Sequence[Group],
    algorithm: Algorithm,
    policy: Policy,
    critic: Critic | None,
    reference: Policy | None,
) -> tuple[Batch, Bool[Tensor, "B"], Metrics]:
    """The batch with all columns, which of its rows a loss must read, and what can be said of it.

    A row of zero advantage adds nothing to the policy loss, so without other terms it is neither
    scored nor run backwards; its tokens still count in the averages. Raises RunStoppedError where
    the method cannot use the rewards.
    """
    metrics: Metrics = {}
    if algorithm.reward_divergence is not None and reference is not None:
        groups = _penalised(groups, algorithm.reward_divergence, policy, reference)
        penalties = torch.cat([group.columns["token_reward"][group.token_mask] for group in groups])
        metrics["reward_divergence"] = float(penalties.mean())
    if algorithm.critic is not None and critic is not None:
        groups = critic.annotate(groups)
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
    aged = torch.tensor(["behavior_logprob" in group.columns for group in groups])[batch.group]
    read = _read(batch, algorithm)
    metrics["rows"], metrics["rows_without_gradient"] = float(len(read)), float((~read).sum())
    rows = torch.nonzero(read)[:, 0]
    sampled = batch.column("behavior_logprob")
    old = _scored(policy, batch, rows)
    fresh = ~aged[:, None]
    gap = (old - sampled).abs()[batch.action_mask & fresh & read[:, None]]
    if len(gap):
        metrics["engine_gap_mean"], metrics["engine_gap_max"] = float(gap.mean()), float(gap.max())
    behavior = torch.where(fresh, old, sampled) if algorithm.behavior == "trainer" else sampled
    columns = {"old_logprob": old, "behavior_logprob": behavior}
    if reference is not None:
        columns["reference_logprob"] = _scored(reference, batch, rows)
    batch = batch.with_columns(columns)
    of_rows = batch.take(rows)
    metrics.update(effective_sample_size(of_rows, of_rows.replayed))
    aged &= ~batch.replayed
    metrics.update({f"aged_{n}": v for n, v in effective_sample_size(of_rows, aged[rows]).items()})
    return batch, read, metrics


def _penalised(
    groups: Sequence[Group], divergence: RewardDivergence, policy: Policy, reference: Policy
) -> list[Group]:
    """The groups with the divergence to the reference in their rewards, token by token."""
    whole = [replace(g, selected=(True,) * len(g.trajectories), columns={}) for g in groups]
    batch = collate(whole)
    old = uncollate(whole, policy.score(batch).logprob)
    start = uncollate(whole, reference.score(batch).logprob)
    found = []
    for group, ours, theirs in zip(groups, old, start, strict=True):
        penalty = divergence(ours, theirs)
        reward = group.reward_in_force + penalty.sum(dim=2)
        found.append(group.with_rewards(group.rewards, reward).with_column("token_reward", penalty))
    return found


def _with_evidence(group: Group, advantage: Float[Tensor, "N ..."]) -> Group:
    """The group with what a loss reads: advantage, log-probs it was sampled with, and values."""
    columns = {name: group.columns[name] for name in KEPT if name in group.columns}
    stored = group.columns.get("behavior_logprob", group.sampled_logprob)
    return replace(group, columns={**columns, "advantage": advantage, "behavior_logprob": stored})


def _read(batch: Batch, algorithm: Algorithm) -> Bool[Tensor, "B"]:
    """Rows that add to some term of the loss."""
    read = (batch.column("advantage") != 0).any(dim=1)
    if algorithm.terms:
        return torch.ones_like(read)
    if algorithm.whole_trajectories:
        return torch.isin(batch.trajectory, batch.trajectory[read])
    return read


def _scored(policy: Policy, batch: Batch, rows: Int[Tensor, "R"]) -> Float[Tensor, "B T"]:
    """log-probs of the action tokens of `rows`, 0 in other rows."""
    logprob = torch.zeros(batch.tokens.shape)
    scored = policy.score(batch.take(rows)).logprob
    logprob[rows, : scored.shape[1]] = scored
    return logprob
