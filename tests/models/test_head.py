"""The head in pieces: the same numbers, and never all logits at once."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode

from made import made_group, small_policy
from rewardswap.models.batching import Batch, TokenScores, collate
from rewardswap.models.head import chosen_scores
from rewardswap.models.learner import Metrics

WORDS, SIZE, TOKENS = 50, 8, 23
WIDTH = 16
"""Of the small model's hidden states."""


def head_and_inputs(seed: int = 0) -> tuple[nn.Linear, Tensor, Tensor]:
    stream = torch.Generator().manual_seed(seed)
    head = nn.Linear(SIZE, WORDS)
    with torch.no_grad():
        head.weight.normal_(generator=stream)
        head.bias.normal_(generator=stream)
    hidden = torch.randn(TOKENS, SIZE, generator=stream, requires_grad=True)
    return head, hidden, torch.randint(WORDS, (TOKENS,), generator=stream)


def scored(most_logits: int, *, entropy_gradient: bool) -> list[Tensor]:
    """log-probs, entropies, and gradients of hidden states, weight and bias."""
    head, hidden, tokens = head_and_inputs()
    found = chosen_scores(
        head, hidden, tokens, 0.7, entropy_gradient=entropy_gradient, most_logits=most_logits
    )
    ramp = torch.linspace(-1, 1, TOKENS)
    (found.logprob * ramp + found.entropy * ramp.flip(0)).sum().backward()
    gradients = [leaf.grad for leaf in (hidden, head.weight, head.bias) if leaf.grad is not None]
    assert len(gradients) == 3
    return [found.logprob.detach(), found.entropy.detach(), *gradients]


@pytest.mark.parametrize("entropy_gradient", [False, True])
@pytest.mark.parametrize("most_logits", [1, WORDS, 7 * WORDS, 23 * WORDS - 1])
def test_pieces_give_the_numbers_of_the_whole(most_logits: int, entropy_gradient: bool) -> None:
    whole = scored(10**9, entropy_gradient=entropy_gradient)
    pieces = scored(most_logits, entropy_gradient=entropy_gradient)
    for one, other in zip(whole, pieces, strict=True):
        torch.testing.assert_close(one, other, atol=1e-5, rtol=1e-5)


def test_only_an_entropy_that_is_asked_for_has_a_gradient() -> None:
    with_it, without = (scored(WORDS, entropy_gradient=asked)[2] for asked in (True, False))
    assert not torch.allclose(with_it, without)


def saved_numbers(most_logits: int) -> int:
    """Numbers that the graph keeps for the backward pass, parameters not counted."""
    head, hidden, tokens = head_and_inputs()
    kept = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += 0 if isinstance(tensor, nn.Parameter) else tensor.numel()
        return tensor

    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        chosen_scores(head, hidden, tokens, 0.7, most_logits=most_logits)
    return kept


def test_the_graph_keeps_no_logits_of_pieces() -> None:
    assert saved_numbers(10**9) > TOKENS * WORDS
    assert saved_numbers(4 * WORDS) < 4 * WORDS + 2 * TOKENS * SIZE


class Largest(TorchDispatchMode):
    """Rows of the longest tensor with a column per word that is not the head's weight turned."""

    def __init__(self, words: int) -> None:
        super().__init__()
        self.words, self.rows = words, 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        made = func(*args, **(kwargs or {}))
        for tensor in made if isinstance(made, tuple) else (made,):
            if isinstance(tensor, Tensor) and tensor.shape[1:] == (self.words,):
                self.rows = max(self.rows, len(tensor) if len(tensor) != WIDTH else 0)
        return made


@pytest.mark.parametrize("entropy_gradient", [False, True])
@pytest.mark.parametrize("most_logits", [3 * 30, 10**6])
def test_a_policy_holds_no_more_logits_than_it_may(
    most_logits: int, entropy_gradient: bool
) -> None:
    policy, batch = small_policy(head_logits=most_logits), collate([made_group()])
    with Largest(30) as largest:
        policy.step(batch, summed, entropy_gradient=entropy_gradient)
    assert largest.rows == min(most_logits // 30, int(batch.action_mask.sum()))


def summed(scores: TokenScores, batch: Batch) -> tuple[Tensor, Metrics]:
    return scores.logprob.sum() + scores.entropy.sum(), {}


def test_a_frozen_head_gets_no_gradient_and_the_trunk_the_same() -> None:
    gradients = []
    for most_logits in (10**9, 4 * WORDS):
        head, hidden, tokens = head_and_inputs()
        head.requires_grad_(False)
        chosen_scores(head, hidden, tokens, 0.7, most_logits=most_logits).logprob.sum().backward()
        assert head.weight.grad is None and head.bias.grad is None
        assert hidden.grad is not None
        gradients.append(hidden.grad)
    torch.testing.assert_close(gradients[0], gradients[1], atol=1e-5, rtol=1e-5)


def test_bfloat16_stays_bfloat16_and_its_scores_are_float32() -> None:
    found = []
    for most_logits in (10**9, 4 * WORDS):
        head, hidden, tokens = head_and_inputs()
        rounded = hidden.detach().bfloat16().requires_grad_()
        head.bfloat16()
        scores = chosen_scores(head, rounded, tokens, 0.7, most_logits=most_logits)
        scores.logprob.sum().backward()
        assert scores.logprob.dtype == scores.entropy.dtype == torch.float32
        assert rounded.grad is not None and rounded.grad.dtype == torch.bfloat16
        found.append((scores.logprob.detach(), rounded.grad.float()))
    for one, other in zip(*found, strict=True):
        torch.testing.assert_close(one, other, atol=0.05, rtol=0.02)


def test_a_head_that_is_more_than_linear_is_refused_in_pieces() -> None:
    class Capped(nn.Linear):
        def forward(self, hidden: Tensor) -> Tensor:
            return super().forward(hidden).tanh()

    _, hidden, tokens = head_and_inputs()
    with pytest.raises(ValueError, match=r"Capped cannot .*head_logits to at least 1150$"):
        chosen_scores(Capped(SIZE, WORDS), hidden, tokens, 1.0, most_logits=WORDS)


def test_no_action_token_at_all_is_no_error() -> None:
    head, hidden, tokens = head_and_inputs()
    found = chosen_scores(head, hidden[:0], tokens[:0], 1.0)
    assert found.logprob.shape == found.entropy.shape == (0,)


def test_rounded_logits_are_divided_by_the_temperature_in_float32() -> None:
    """As an engine divides them: in bfloat16 the quotient would be off by 1 in 256."""
    head, hidden, tokens = head_and_inputs()
    head, hidden = head.bfloat16(), hidden.detach().bfloat16()
    every = torch.log_softmax(head(hidden).detach().float() / 0.7, dim=-1)
    expected = every.gather(1, tokens[:, None])[:, 0]
    found = chosen_scores(head, hidden, tokens, 0.7).logprob.detach()
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
