"""What a process reward model is fitted by: errors of single trajectories, and pairs of them.

Letters: N trajectories, K turns.
"""

from collections.abc import Callable

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.heads import prefix_values, totals

Error = Callable[[Tensor, Tensor], Tensor]
Cost = Callable[[Tensor], Tensor]


def fit_loss(
    output: Float[Tensor, "N K"],
    lengths: Int[Tensor, "N"],
    target: Float[Tensor, "N"],
    weight: Float[Tensor, "N"],
    task: Int[Tensor, "N"],
    config: ProcessRewardConfig,
) -> Float[Tensor, ""]:
    """The loss that the settings ask for; `task` numbers the tasks, equal for siblings.

    `output` is what the head says of each turn, 0 where a trajectory has none.
    """
    mask = torch.arange(output.shape[1])[None, :] < lengths[:, None]
    if config.loss_on == "total":
        value = totals(output, lengths, config.aggregation)
        if config.compares_pairs:
            return pair_loss(value, target, task, _cost(config))
        return total_loss(value, target, weight, ERRORS[config.loss])
    values = prefix_values(output, config.aggregation)
    if config.compares_pairs:
        return prefix_pair_loss(values, mask, target, task, _cost(config))
    return prefix_loss(values, mask, target, weight, ERRORS[config.loss])


def squared_error(value: Tensor, target: Tensor) -> Tensor:
    """(R_hat - R)^2 (Eq. 7)."""
    return (value - target).square()


def cross_entropy(value: Tensor, target: Tensor) -> Tensor:
    """-R log R_hat - (1 - R) log(1 - R_hat) (ours); what rounding puts outside [0, 1] is cut."""
    probability = value.clamp(0.0, 1.0)
    return functional.binary_cross_entropy(
        probability, target.expand_as(probability), reduction="none"
    )


ERRORS: dict[str, Error] = {"mse": squared_error, "bce": cross_entropy}
"""Losses of one trajectory by name."""


def total_loss(
    value: Float[Tensor, "N"],
    target: Float[Tensor, "N"],
    weight: Float[Tensor, "N"],
    error: Error = squared_error,
) -> Float[Tensor, ""]:
    """mean_i error(R_hat_i, R_i), weighted by trajectory (arXiv:2607.04713, Eq. 7)."""
    return (weight * error(value, target)).sum() / weight.sum()


def prefix_loss(
    values: Float[Tensor, "N K"],
    mask: Bool[Tensor, "N K"],
    target: Float[Tensor, "N"],
    weight: Float[Tensor, "N"],
    error: Error = squared_error,
) -> Float[Tensor, ""]:
    """mean over prefixes (i, t) of error(R_hat_{i,t}, R_i), weighted by trajectory (ours).

    Every prefix is one example, so R_hat of the turns so far learns the chance of success at that
    turn, and a turn's reward is how much the turn changed it.
    """
    share = weight[:, None] * mask
    return (share * error(values, target[:, None])).sum() / share.sum()


def pair_weights(target: Float[Tensor, "N"], task: Int[Tensor, "N"]) -> Float[Tensor, "N N"]:
    """How much the pair (better i, worse j) weighs; all sum to how many trajectories are compared.

    A task with unlike targets has its trajectories' number as weight, spread evenly over the pairs
    inside it. One with equal targets spreads its own over the pairs of its trajectories with any
    of the batch, and is not compared where there is none (ours).
    """
    better = target[:, None] > target[None, :]
    weights = torch.zeros(len(target), len(target))
    for number in torch.unique(task):
        member = task == number
        pairs = better & member[:, None] & member[None, :]
        if not pairs.any():
            pairs = better & (member[:, None] | member[None, :])
        if pairs.any():
            weights += pairs * (member.sum() / pairs.sum())
    return weights


def pair_loss(
    value: Float[Tensor, "N"], target: Float[Tensor, "N"], task: Int[Tensor, "N"], cost: Cost
) -> Float[Tensor, ""]:
    """Mean of cost(R_hat_i - R_hat_j) over pairs with R_i > R_j; 0 for no pair (ours)."""
    weights = pair_weights(target, task)
    return _compared(value, weights, cost) / weights.sum().clamp(min=1.0)


def prefix_pair_loss(
    values: Float[Tensor, "N K"],
    mask: Bool[Tensor, "N K"],
    target: Float[Tensor, "N"],
    task: Int[Tensor, "N"],
    cost: Cost,
) -> Float[Tensor, ""]:
    """The same over all turns t, of R_hat after t turns among trajectories with as many (ours).

    What is compared has the same number of turns, so counting turns is of no use.
    """
    loss, compared = torch.zeros(()), torch.zeros(())
    for turn in range(values.shape[1]):
        live = mask[:, turn]
        weights = pair_weights(target[live], task[live])
        loss = loss + _compared(values[live, turn], weights, cost)
        compared = compared + weights.sum()
    return loss / compared.clamp(min=1.0)


def _compared(value: Tensor, weights: Tensor, cost: Cost) -> Tensor:
    return (weights * cost(value[:, None] - value[None, :])).sum()


def _cost(config: ProcessRewardConfig) -> Cost:
    """What a lead d of the better one costs: max(0, margin - d), or log(1 + e^-d)."""
    if config.loss == "margin":
        return lambda lead: (config.margin - lead).clamp(min=0.0)
    return lambda lead: functional.softplus(-lead)
