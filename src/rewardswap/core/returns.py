"""Returns of turns, generalised advantage estimation over turns or tokens.

Rows R are trajectories; places T are turns [N, K], or all tokens of a trajectory [N, K·L].
Places off the mask (padding, observations) are skipped: the result is that of the compacted row.
"""

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from rewardswap.core.segments import masked_fill_zero


def discounted_returns(
    reward: Float[Tensor, "R T"], mask: Bool[Tensor, "R T"], discount: float
) -> Float[Tensor, "R T"]:
    """G_t = r_t + discount · G_{t+1}, 0 off the mask."""
    following = reward.new_zeros(len(reward))
    returns = torch.zeros_like(reward)
    for t in reversed(range(reward.shape[1])):
        here = reward[:, t] + discount * following
        returns[:, t] = masked_fill_zero(here, mask[:, t])
        following = torch.where(mask[:, t], here, following)
    return returns


def generalised_advantage(
    reward: Float[Tensor, "R T"],
    value: Float[Tensor, "R T"],
    mask: Bool[Tensor, "R T"],
    bootstrap: Float[Tensor, "R"],
    *,
    discount: float | Float[Tensor, "R T"] = 1.0,
    trace: float | Float[Tensor, "R"] = 1.0,
) -> tuple[Float[Tensor, "R T"], Float[Tensor, "R T"]]:
    """A_t = δ_t + γλ A_{t+1}, δ_t = r_t + γ V_{t+1} - V_t, and the value target A_t + V_t.

    GAE (arXiv:1506.02438, Eq. 16) with γ = `discount`, a number or one per place (from it to the
    next), and λ = `trace`, a number or one per row.
    `bootstrap` is V after the last place: 0 for an episode that the environment ended, the
    critic's value of the final observation for one that a limit cut. Both results are 0 off the
    mask.
    """
    following_value, following = bootstrap, torch.zeros_like(bootstrap)
    advantage = torch.zeros_like(reward)
    for t in reversed(range(reward.shape[1])):
        factor = discount[:, t] if isinstance(discount, Tensor) else discount
        delta = reward[:, t] + factor * following_value - value[:, t]
        here = delta + factor * trace * following
        advantage[:, t] = masked_fill_zero(here, mask[:, t])
        following = torch.where(mask[:, t], here, following)
        following_value = torch.where(mask[:, t], value[:, t], following_value)
    return advantage, advantage + masked_fill_zero(value, mask)


def length_adaptive_trace(mask: Bool[Tensor, "R T"], alpha: float) -> Float[Tensor, "R"]:
    """λ = 1 - 1/(alpha · L), L places of the row, at least 0 (VAPO, arXiv:2504.05118, Eq. 9).

    The lower bound is ours: short rows would get a negative λ. Raises ValueError for an alpha
    that is not positive.
    """
    if alpha <= 0:
        raise ValueError(f"alpha of the length-adaptive trace must be > 0, got {alpha}")
    lengths = mask.sum(dim=1).clamp(min=1).float()
    return (1 - 1 / (alpha * lengths)).clamp(min=0.0)


def last_place_reward(
    reward: Float[Tensor, "N K"], token_mask: Bool[Tensor, "N K L"]
) -> Float[Tensor, "N K L"]:
    """Each turn's reward on its last action token, so that the token rewards sum to the turns'."""
    later = token_mask.flip(-1).cumsum(-1).flip(-1)
    return torch.where(
        token_mask & (later == 1), reward[..., None], torch.zeros_like(reward)[..., None]
    )
