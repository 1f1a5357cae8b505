"""The head over a few tokens at a time: log-probs and entropies without [tokens, vocabulary]."""

from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.utils.checkpoint import checkpoint

HEAD_LOGITS = 2**25
"""Most logits that are held at once: 128 MiB of float32, 223 tokens at 150,000 words."""


class ChosenScores(NamedTuple):
    """What a head says of chosen tokens, float32."""

    logprob: Float[Tensor, "A"]
    entropy: Float[Tensor, "A"]
    """In nats."""


def chosen_scores(
    head: Any,
    hidden: Float[Tensor, "A H"],
    tokens: Int[Tensor, "A"],
    temperature: float,
    *,
    entropy_gradient: bool = False,
    most_logits: int = HEAD_LOGITS,
) -> ChosenScores:
    """Scores of `tokens[i]` after `hidden[i]`, with at most `most_logits` logits held at once.

    What fits is one piece, as if there were no limit. Of several pieces none keeps its logits:
    they are computed again in the backward pass. The numbers are equal beyond rounding.
    """
    size = max(1, most_logits // head.weight.shape[0])

    def scored(hidden: Tensor, tokens: Tensor) -> ChosenScores:
        return _piece(head, hidden, tokens, temperature, entropy_gradient)

    if len(tokens) <= size:
        return scored(hidden, tokens)
    pieces: list[ChosenScores] = [
        checkpoint(scored, *piece, use_reentrant=False, preserve_rng_state=False)
        for piece in zip(torch.split(hidden, size), torch.split(tokens, size), strict=True)
    ]
    return ChosenScores(*(torch.cat(parts) for parts in zip(*pieces, strict=True)))


def _piece(
    head: Any, hidden: Tensor, tokens: Tensor, temperature: float, entropy_gradient: bool
) -> ChosenScores:
    logits = head(hidden).float() / temperature
    distribution = torch.log_softmax(logits, dim=-1)
    chosen = distribution.gather(-1, tokens[:, None])[:, 0]
    with torch.set_grad_enabled(entropy_gradient):
        entropy = -(distribution.exp() * distribution).sum(dim=-1)
    return ChosenScores(chosen, entropy)
