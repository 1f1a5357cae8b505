"""Drawing tokens: what survives truncation, one uniform number per token, the log-prob of it."""

from collections.abc import Sequence

import torch
from jaxtyping import Float, Int
from torch import Tensor

from rewardswap.rollout.engine import SamplingParams


def draw_tokens(
    logits: Float[Tensor, "R V"], drawn: Float[Tensor, "R"], sampling: Sequence[SamplingParams]
) -> tuple[Int[Tensor, "R"], Float[Tensor, "R"]]:
    """A token of each row and its log-prob in the distribution that it is drawn from, on the CPU.

    The distribution is softmax(logits / temperature), without the tokens that top_k, then top_p,
    then min_p take away (the order of transformers), normalised again; float32. A token is the
    inverse of its cumulative sum, float64, at `drawn`. Temperature 0 takes the most probable token
    of the distribution at 1.
    """
    temperatures = [row.temperature for row in sampling]
    scale = torch.tensor([value or 1.0 for value in temperatures], device=logits.device)
    distribution = torch.log_softmax(logits.float() / scale[:, None], dim=-1)
    if any(row.truncates for row in sampling):
        distribution = torch.log_softmax(_truncated(distribution, sampling), dim=-1)
    greedy = torch.tensor([value == 0 for value in temperatures])
    token = _inverted(distribution, drawn) if not greedy.all() else greedy.long()
    if greedy.any():
        token = torch.where(greedy, distribution.argmax(dim=-1).cpu(), token)
    chosen = distribution.gather(-1, token.to(distribution.device)[:, None])[:, 0]
    return token, chosen.cpu()


def _inverted(distribution: Tensor, drawn: Tensor) -> Tensor:
    cumulative = distribution.double().exp().cumsum(dim=-1)
    level = drawn.to(distribution.device)[:, None] * cumulative[:, -1:]
    token = torch.searchsorted(cumulative, level, right=True)[:, 0]
    return token.clamp(max=distribution.shape[-1] - 1).cpu()


def _truncated(distribution: Tensor, sampling: Sequence[SamplingParams]) -> Tensor:
    """The log-probs, minus infinity where a row's truncation takes a token away."""

    def of_rows(values: Sequence[float | int]) -> Tensor:
        column = torch.tensor(values, dtype=torch.float64, device=distribution.device)
        return column[:, None]

    size = distribution.shape[-1]
    top_k = of_rows([row.top_k or size for row in sampling])
    top_p = of_rows([row.top_p for row in sampling])
    min_p = of_rows([row.min_p for row in sampling])
    ordered, order = distribution.sort(dim=-1, descending=True, stable=True)
    kept = torch.arange(size, device=distribution.device) < top_k
    mass = torch.where(kept, ordered.double().exp(), 0.0)
    before = (mass.cumsum(dim=-1) - mass) / mass.sum(dim=-1, keepdim=True)
    kept &= (before < top_p) | (top_p >= 1)
    kept &= ordered >= ordered[:, :1] + min_p.log()
    return distribution.masked_fill(~kept.gather(-1, order.argsort(dim=-1)), -torch.inf)
