"""GRPO: Group Relative Policy Optimization.

Paper: DeepSeekMath, arXiv:2402.03300, §4.1.2.
Idea in one sentence: the siblings of a group are each other's baseline, so no critic is needed.
Differs from PPO in: A_i = (R_i - mean(R)) / (std(R) + 1e-6) for every token of trajectory i.
Defaults from: the paper's clip .2; token mean and no KL are ours (the paper averages within each
    trajectory first and uses KL .04).
Deviations: statistics count every trajectory once, however many turns it has (verl-agent counts
    rows, so that long trajectories weigh more); equal returns give exactly 0.
"""

from collections.abc import Sequence

from jaxtyping import Float
from torch import Tensor

from rewardswap.algorithm import Algorithm, ReferenceDivergence
from rewardswap.core.advantages import group_z_score
from rewardswap.types import Group


def group_relative_advantage(groups: Sequence[Group]) -> list[Float[Tensor, "N K"]]:
    """A_i of the trajectory at each of its turns; all siblings count, selected or not."""
    return [group_z_score(group.returns)[:, None] * group.turn_mask for group in groups]


def grpo(kl_coefficient: float = 0.0) -> Algorithm:
    """GRPO with the token mean, clip .2, and k3 to the reference if `kl_coefficient` > 0."""
    terms = (ReferenceDivergence(kl_coefficient),) if kl_coefficient else ()
    return Algorithm(advantage=group_relative_advantage, terms=terms)
