"""From groups to advantages: what several methods share, written once."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from rewardswap.core.advantages import EQUAL_TOLERANCE
from rewardswap.core.returns import last_place_reward
from rewardswap.types import Group


@dataclass(frozen=True)
class PerGroup:
    """Every turn of trajectory i gets the advantage of its return among its siblings.

    All siblings count in the statistics, selected or not, each once.
    """

    estimate: Callable[[Float[Tensor, "N"]], Float[Tensor, "N"]]

    def __call__(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K"]]:
        found = []
        for group in groups:
            values = self.estimate(group.returns)
            if values.shape != group.returns.shape:
                raise ValueError(
                    f"an estimate of task {group.task.id!r} has shape {list(values.shape)}, wanted "
                    f"{list(group.returns.shape)}: one advantage per trajectory"
                )
            found.append(at_turns(values, group))
        return found


def at_turns(values: Float[Tensor, "N"], group: Group) -> Float[Tensor, "N K"]:
    """A number per trajectory at each of its turns, 0 where it has none."""
    return torch.where(group.turn_mask, values[:, None], torch.zeros(()))


def joined(
    groups: Sequence[Group], values: Callable[[Group], Float[Tensor, "N"]]
) -> tuple[Float[Tensor, "M"], Tensor]:
    """A number of every trajectory of all groups, and the number of its group."""
    return (
        torch.cat([values(group) for group in groups]),
        torch.cat([torch.full((len(g.trajectories),), n) for n, g in enumerate(groups)]),
    )


def parted(values: Float[Tensor, "M"], groups: Sequence[Group]) -> list[Float[Tensor, "N K"]]:
    """`joined` undone: the numbers of each group at the turns of its trajectories."""
    parts = torch.split(values, [len(group.trajectories) for group in groups])
    return [at_turns(part, group) for part, group in zip(parts, groups, strict=True)]


def token_rewards(group: Group) -> Float[Tensor, "N K L"]:
    """Rewards of single tokens, which sum to the rewards of the turns.

    A turn's reward stands on its last action token; the divergence as a reward, where a method
    has it, on the tokens that it is of.
    """
    if group.reward is None:
        raise ValueError(f"the group of task {group.task.id!r} has no reward in force yet")
    own = group.columns.get("token_reward", torch.zeros(group.token_mask.shape))
    return last_place_reward(group.reward - own.sum(dim=2), group.token_mask) + own


def whitened(
    values: Sequence[Tensor],
    groups: Sequence[Group],
    *,
    every_trajectory_once: bool,
    epsilon: float = 1e-8,
    least_std: float = 0.0,
) -> list[Tensor]:
    """(x - mean) / (std + epsilon) over all that is trained on, fresh and replayed; 0 off the mask.

    Values are [N K] or [N K L]. Siblings that replay did not select are judged by the statistics
    and do not count in them. Every place counts the same, or every trajectory, its places among
    themselves. Exactly 0 for values that are equal up to rounding; as they are where the std is
    below `least_std`. Computed in float64.
    """
    masks = [
        g.turn_mask if v.dim() == 2 else g.token_mask for v, g in zip(values, groups, strict=True)
    ]
    weights = [_weights(m, g, every_trajectory_once) for m, g in zip(masks, groups, strict=True)]
    flat = torch.cat([v[m].double() for v, m in zip(values, masks, strict=True)])
    weight = torch.cat([w[m] for w, m in zip(weights, masks, strict=True)])
    chosen = flat[weight > 0]
    if float(chosen.max() - chosen.min()) <= EQUAL_TOLERANCE * float(chosen.abs().max()):
        return [torch.zeros_like(v, dtype=torch.float32) for v in values]
    mean = (flat * weight).sum() / weight.sum()
    count = sum(sum(g.selected) for g in groups) if every_trajectory_once else len(chosen)
    variance = ((flat - mean).square() * weight).sum() / weight.sum() * count / max(count - 1, 1)
    std = variance.sqrt()
    if std < least_std:
        return [v.float() for v in values]
    parts = [((v.double() - mean) / (std + epsilon)).float() for v in values]
    return [torch.where(m, p, torch.zeros(())) for m, p in zip(masks, parts, strict=True)]


def _weights(mask: Tensor, group: Group, every_trajectory_once: bool) -> Float[Tensor, "..."]:
    """How much each place counts: 0 off the mask and in trajectories that are not trained on."""
    weight = mask.double() * _like(torch.tensor(group.selected).double(), mask)
    if every_trajectory_once:
        weight = weight / _like(mask.flatten(1).sum(dim=1), mask)
    return weight


def _like(values: Tensor, mask: Tensor) -> Tensor:
    """A number per trajectory in a shape that broadcasts over its places."""
    return values.reshape(len(values), *[1] * (mask.dim() - 1))
