"""The head over a few tokens at a time: log-probs and entropies without [tokens, vocabulary]."""

import math
from typing import Any, NamedTuple

import torch
from jaxtyping import Float, Int
from torch import Tensor, nn

from rewardswap.models.shards import together

HEAD_LOGITS = 2**25
"""Most logits that are held at once: 128 MiB of float32, 223 tokens at 150,000 words."""


LOUD = 1000.0
"""How much larger hidden states are in `prove_head`, so that a cap on logits shows (ours)."""


@torch.no_grad()
def prove_head(model: Any) -> None:
    """Raise ValueError for a model that scales or caps the logits of its head.

    The head alone would have other log-probs than the model that is sampled from.
    """
    heard: list[Tensor] = []

    def louder(_: nn.Module, __: Any, output: Any) -> Any:
        output.last_hidden_state = output.last_hidden_state * LOUD
        heard.append(output.last_hidden_state)
        return output

    tokens = torch.arange(1, 4, device=next(model.parameters()).device)[None]

    def both() -> tuple[Tensor, Tensor]:
        said = model.forward(tokens, use_cache=False).logits.float()
        return said, model.get_output_embeddings()(heard[0])

    hook = model.get_decoder().register_forward_hook(louder)
    try:
        said, expected = together(model, both)
    finally:
        hook.remove()
    gap = float((said - expected.float()).abs().max() / expected.float().abs().max())
    if not gap <= math.sqrt(torch.finfo(expected.dtype).eps):
        raise ValueError(
            f"{type(model).__name__} gives other logits than its head (relative gap {gap:.2g}): it "
            "may scale or cap them; use a decoder such as Llama, Qwen or Gemma 3"
        )


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
    """Scores of `tokens[i]` after `hidden[i]`, with at most `most_logits` logits of them at once.

    What fits is one piece, as if there were no limit. Of several pieces none keeps its logits:
    they are computed again in the backward pass. The numbers are equal beyond rounding. Raises
    ValueError for several pieces of a head that is more than a linear layer.
    """
    size = max(1, most_logits // head.weight.shape[0])
    if len(tokens) <= size:
        return _whole(head, hidden, tokens, temperature, entropy_gradient)
    if type(head) is not nn.Linear:
        raise ValueError(
            f"a head of type {type(head).__name__} cannot be computed in pieces; set "
            f"policy.head_logits to at least {len(tokens) * head.weight.shape[0]}"
        )
    logprob, entropy = _InPieces.apply(  # type: ignore[no-untyped-call]
        hidden, head.weight, head.bias, tokens, temperature, size
    )
    return ChosenScores(logprob, entropy if entropy_gradient else entropy.detach())


def _whole(
    head: Any, hidden: Tensor, tokens: Tensor, temperature: float, entropy_gradient: bool
) -> ChosenScores:
    logits = head(hidden).float() / temperature
    distribution = torch.log_softmax(logits, dim=-1)
    chosen = distribution.gather(-1, tokens[:, None])[:, 0]
    with torch.set_grad_enabled(entropy_gradient):
        entropy = -(distribution.exp() * distribution).sum(dim=-1)
    return ChosenScores(chosen, entropy)


class _Pieces:
    """Two buffers for the logits of a piece; every piece of a pass uses them again."""

    def __init__(
        self, hidden: Tensor, weight: Tensor, bias: Tensor | None, temperature: float, size: int
    ) -> None:
        self.hidden, self.weight, self.bias = hidden, weight, bias
        self.temperature = temperature
        self.parts = [slice(n, n + size) for n in range(0, len(hidden), size)]
        self._product = hidden.new_empty(size, len(weight))
        self._logits = self._product.float()  # the same memory where that is float32 already
        self._other = torch.empty_like(self._logits)

    def logits(self, part: slice) -> tuple[Tensor, Tensor]:
        """Logits of a part at the temperature, float32, and a buffer of the same shape."""
        hidden = self.hidden[part]
        product = torch.mm(hidden, self.weight.T, out=self._product[: len(hidden)])
        if self.bias is not None:
            product += self.bias
        logits = self._logits[: len(hidden)].copy_(product).div_(self.temperature)
        return logits, self._other[: len(hidden)]

    def gradient(self, logits: Tensor) -> Tensor:
        """The gradient of a part's logits, in the model's own precision."""
        return self._product[: len(logits)].copy_(logits.div_(self.temperature))


class _InPieces(torch.autograd.Function):
    """log-prob and entropy of chosen tokens; z are the logits at the temperature, p = softmax(z).

    d logprob / dz = onehot - p, and d entropy / dz = -p (log p + entropy).
    """

    @staticmethod
    def forward(
        ctx: Any,
        hidden: Tensor,
        weight: Tensor,
        bias: Tensor | None,
        tokens: Tensor,
        temperature: float,
        size: int,
    ) -> tuple[Tensor, Tensor]:
        logprob, entropy, log_sum = (
            torch.empty(len(tokens), device=hidden.device) for _ in range(3)
        )
        pieces = _Pieces(hidden, weight, bias, temperature, size)
        for part in pieces.parts:
            z, p = pieces.logits(part)
            highest = z.amax(dim=-1)
            z -= highest[:, None]
            torch.exp(z, out=p)
            total = p.sum(dim=-1)
            logprob[part] = z.gather(-1, tokens[part, None])[:, 0] - total.log()
            entropy[part] = total.log() - p.mul_(z).sum(dim=-1) / total
            log_sum[part] = highest + total.log()
        ctx.save_for_backward(hidden, weight, bias, tokens, entropy, log_sum)
        ctx.temperature, ctx.size = temperature, size
        return logprob, entropy

    @staticmethod
    def backward(ctx: Any, d_logprob: Tensor, d_entropy: Tensor) -> tuple[Tensor | None, ...]:
        hidden, weight, bias, tokens, entropy, log_sum = ctx.saved_tensors
        d_hidden = torch.empty_like(hidden)
        d_weight = torch.zeros_like(weight) if ctx.needs_input_grad[1] else None
        d_bias = torch.zeros_like(bias) if ctx.needs_input_grad[2] else None
        pieces = _Pieces(hidden, weight, bias, ctx.temperature, ctx.size)
        for part in pieces.parts:
            z, p = pieces.logits(part)
            z -= log_sum[part, None]
            torch.exp(z, out=p)
            z += entropy[part, None]
            z.mul_(-d_entropy[part, None]).sub_(d_logprob[part, None]).mul_(p)
            z.scatter_add_(-1, tokens[part, None], d_logprob[part, None])
            d_logits = pieces.gradient(z)
            torch.mm(d_logits, weight, out=d_hidden[part])
            if d_weight is not None:
                d_weight.addmm_(d_logits.T, hidden[part])
            if d_bias is not None:
                d_bias += d_logits.sum(dim=0)
        return d_hidden, d_weight, d_bias, None, None, None
