"""The head of a process reward model, and what its outputs say of a trajectory and of its turns.

Letters: N trajectories, K turns, S turns of all trajectories together, F features.
"""

from collections.abc import Callable
from typing import Literal

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

HeadKind = Literal["tanh", "sigmoid", "linear"]
Aggregation = Literal["sum", "mean", "telescoping"]

RANGES: dict[HeadKind, Callable[[Tensor], Tensor]] = {
    "tanh": torch.tanh,
    "sigmoid": torch.sigmoid,
    "linear": lambda output: output,
}


class RewardHead(nn.Module):
    """Standardised features to one number per turn: o_t = tanh(MLP(h_t)) in (-1, 1) (Eq. 6).

    Standardising by the training turns' mean and deviation, and the other ranges, are ours.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, feature_size: int, hidden_size: int, kind: HeadKind = "tanh") -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(feature_size))
        self.register_buffer("deviation", torch.ones(feature_size))
        self.layers = nn.Sequential(
            nn.Linear(feature_size, hidden_size), nn.GELU(), nn.Linear(hidden_size, 1)
        )
        self.into_range = RANGES[kind]

    def standardize_by(self, values: Float[Tensor, "S F"]) -> None:
        """Store mean and deviation of these features; a constant feature keeps deviation 1."""
        deviation = values.std(dim=0, correction=0)
        self.mean.copy_(values.mean(dim=0))
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, torch.ones(())))

    def forward(self, values: Float[Tensor, "S F"]) -> Float[Tensor, "S"]:
        """Output of each turn."""
        outputs: Tensor = self.layers((values - self.mean) / self.deviation)
        return self.into_range(outputs[:, 0])


def totals(
    output: Float[Tensor, "N K"], lengths: Int[Tensor, "N"], aggregation: Aggregation
) -> Float[Tensor, "N"]:
    """R_hat of each trajectory: the sum of its outputs (Eq. 5), their mean, or the last one.

    `output` is 0 where a trajectory has no turn.
    """
    if aggregation == "telescoping":
        return output.gather(1, lengths[:, None] - 1)[:, 0]
    summed = output.sum(dim=1)
    return summed if aggregation == "sum" else summed / lengths


def prefix_values(output: Float[Tensor, "N K"], aggregation: Aggregation) -> Float[Tensor, "N K"]:
    """R_hat of the turns so far, after every turn: sum, mean, or value of the state reached."""
    if aggregation == "telescoping":
        return output
    summed = output.cumsum(dim=1)
    return summed if aggregation == "sum" else summed / torch.arange(1, output.shape[1] + 1)


def turn_rewards(output: Float[Tensor, "K"], aggregation: Aggregation) -> Float[Tensor, "K"]:
    """Reward of each turn of one trajectory: what the turn changes in R_hat of the turns so far.

    r_t = P_t - P_{t-1} with P_0 = 0 (ours), so rewards sum to R_hat and none knows of later turns:
    the output itself for sum, (o_t - M_{t-1}) / t for the running mean M, V_t - V_{t-1} for values.
    """
    if aggregation == "sum":
        return output
    return torch.diff(prefix_values(output[None], aggregation)[0], prepend=torch.zeros(1))
