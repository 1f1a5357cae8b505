"""verl-agent's own conventions (the code base of GiGPO), for comparison with published numbers.

Its samples are rows, one per turn, and its statistics run over rows: long trajectories weigh more
than short ones in a group's mean and std. The library's own methods do not do that; only the preset
`verl_agent_compat` uses this file. Letters: R rows, T response tokens.
"""

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rewardswap.core.returns import discounted_returns, generalised_advantage
from rewardswap.core.segments import (
    dense_ids,
    masked_fill_zero,
    masked_whiten,
    segment_size,
    segment_sum,
)


def row_returns(
    reward: Float[Tensor, "R"], trajectory: Int[Tensor, "R"], discount: float
) -> Float[Tensor, "R"]:
    """Discounted returns of turns that stand in rows, in row order within each trajectory."""
    segment = dense_ids(trajectory)
    own = torch.arange(len(segment_size(segment)))[:, None] == segment[None, :]
    return discounted_returns(reward.expand(own.shape), own, discount).sum(dim=0)


def row_advantage(
    score: Float[Tensor, "R"],
    group: Int[Tensor, "R"],
    counted: Bool[Tensor, "R"],
    *,
    divide_by_std: bool,
    epsilon: float = 1e-6,
) -> Float[Tensor, "R"]:
    """(s - mean) / (std + epsilon), statistics over the group's counted rows, unbiased std.

    A group with one counted row has mean 0 and std 1, so its rows keep their score. Raises
    ValueError for a group without a counted row.
    """
    advantage = torch.zeros_like(score)
    for name in sorted(set(group.tolist())):
        own = group == name
        values = score[own & counted]
        if len(values) == 0:
            raise ValueError(f"group {name} has no counted row, so it has no mean")
        alone = len(values) == 1
        centered = score[own] - (0.0 if alone else values.mean())
        std = values.std() if divide_by_std and not alone else torch.ones(())
        advantage[own] = centered / (std + epsilon) if divide_by_std else centered
    return advantage


def first_rows(trajectory: Int[Tensor, "R"]) -> Bool[Tensor, "R"]:
    """True at the first row of every trajectory: what counts without cross-step statistics."""
    same = trajectory[:, None] == trajectory[None, :]
    return ~same.tril(diagonal=-1).any(dim=1)


def row_leave_one_out(score: Float[Tensor, "R"], group: Int[Tensor, "R"]) -> Float[Tensor, "R"]:
    """(s - mean) · n/(n - 1) over the n rows of the group; a single row keeps its score."""
    centered = row_advantage(score, group, torch.ones_like(group).bool(), divide_by_std=False)
    size = _size(group)
    return centered * (size / (size - 1).clamp(min=1))


def row_optimal_baseline(
    score: Float[Tensor, "R"], lengths: Float[Tensor, "R"], group: Int[Tensor, "R"]
) -> Float[Tensor, "R"]:
    """OPO over the rows of the group (verl's); a single row keeps its score."""
    segment = dense_ids(group)
    baseline = segment_sum(score * lengths, segment) / segment_sum(lengths, segment)
    return torch.where(_size(group) == 1, score, score - baseline[segment])


def gigpo_row_advantage(
    episode_advantage: Float[Tensor, "R"],
    step_return: Float[Tensor, "R"],
    anchor: Int[Tensor, "R"],
    *,
    step_weight: float,
    divide_by_std: bool,
) -> Float[Tensor, "R"]:
    """Episode part + step_weight · step part; a state seen once has a step part of 0."""
    step = row_advantage(
        step_return, anchor, torch.ones_like(anchor).bool(), divide_by_std=divide_by_std
    )
    return episode_advantage + step_weight * masked_fill_zero(step, _size(anchor) > 1)


def whitened_token_returns(
    reward: Float[Tensor, "R T"], mask: Bool[Tensor, "R T"], discount: float
) -> tuple[Float[Tensor, "R T"], Float[Tensor, "R T"]]:
    """REINFORCE++: token returns, whitened over all tokens of the batch; also the returns."""
    returns = discounted_returns(reward, mask, discount)
    return masked_whiten(returns, mask), returns


def whitened_row_scores(
    score: Float[Tensor, "R"], group: Int[Tensor, "R"], mask: Bool[Tensor, "R T"]
) -> Float[Tensor, "R T"]:
    """REINFORCE++ with baseline: s - mean of the group's rows at every token, then whitened."""
    centered = row_advantage(score, group, torch.ones_like(group).bool(), divide_by_std=False)
    return masked_whiten(centered[:, None].expand(mask.shape), mask)


def whitened_turn_advantage(
    reward: Float[Tensor, "R T"],
    value: Float[Tensor, "R T"],
    mask: Bool[Tensor, "R T"],
    *,
    discount: float,
    trace: float,
) -> tuple[Float[Tensor, "R T"], Float[Tensor, "R T"]]:
    """GAE inside one turn's response, without a bootstrap, whitened; also the value targets.

    Places off the mask are whitened with the same statistics, not zeroed.
    """
    last = value.new_zeros(len(value))
    advantage, target = generalised_advantage(
        reward, value, mask, last, discount=discount, trace=trace
    )
    return masked_whiten(advantage, mask, outside="whitened"), target


def penalise_invalid_actions(
    score: Float[Tensor, "R T"],
    step_return: Float[Tensor, "R"],
    mask: Bool[Tensor, "R T"],
    valid: Bool[Tensor, "R"],
    coefficient: float = 0.1,
) -> tuple[Float[Tensor, "R T"], Float[Tensor, "R"]]:
    """Subtract the coefficient from the last token's score of invalid rows, and from their return.

    The returns are discounted already: the penalty does not reach earlier turns.
    """
    last = mask & (mask.flip(-1).cumsum(-1).flip(-1) == 1)
    penalty = coefficient * (~valid).to(score.dtype)
    at_last = masked_fill_zero(penalty[:, None].expand_as(score), last)
    return score - at_last, step_return - penalty


def dynamic_sampling_rows(
    episode_reward: Float[Tensor, "R"], group_size: int, *, last_try: bool
) -> Int[Tensor, "M"]:
    """Row numbers of the groups whose episode rewards are not all equal (DAPO's filter).

    Every `group_size` consecutive rows are a group; the last try keeps all of them. Raises
    ValueError for a number of rows that the group size does not divide.
    """
    if len(episode_reward) % group_size:
        raise ValueError(f"{len(episode_reward)} rows do not make groups of {group_size}")
    groups = episode_reward.view(-1, group_size)
    kept = (groups != groups[:, :1]).any(dim=1) | last_try
    return kept.repeat_interleave(group_size).nonzero().flatten()


def actor_loss(
    policy: Float[Tensor, ""],
    entropy: Float[Tensor, ""],
    divergence: Float[Tensor, ""],
    *,
    entropy_coefficient: float = 0.001,
    divergence_coefficient: float = 0.01,
) -> Float[Tensor, ""]:
    """policy - entropy_coefficient · entropy + divergence_coefficient · divergence."""
    return policy - entropy_coefficient * entropy + divergence_coefficient * divergence


def _size(group: Int[Tensor, "R"]) -> Int[Tensor, "R"]:
    segment = dense_ids(group)
    return segment_size(segment)[segment]
