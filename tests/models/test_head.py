"""The head in pieces: the same numbers, and never all logits at once."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from made import made_group, small_policy
from rewardswap.models.batching import collate
from rewardswap.models.head import chosen_scores

WORDS, SIZE, TOKENS = 50, 8, 23


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


@pytest.mark.parametrize("most_logits", [3 * 30, 10**6])
def test_a_policy_holds_no_more_logits_than_it_may(most_logits: int) -> None:
    policy, batch = small_policy(head_logits=most_logits), collate([made_group()])
    seen: list[int] = []
    head: Any = policy.model.get_output_embeddings()
    head.register_forward_hook(lambda _m, _i, out: seen.append(out.numel()))
    scores = policy.score(batch)
    assert max(seen) <= most_logits
    assert sum(seen) == 30 * int(batch.action_mask.sum())
    torch.testing.assert_close(
        scores.logprob, small_policy().score(batch).logprob, atol=1e-5, rtol=0
    )


def test_no_action_token_at_all_is_no_error() -> None:
    head, hidden, tokens = head_and_inputs()
    found = chosen_scores(head, hidden[:0], tokens[:0], 1.0)
    assert found.logprob.shape == found.entropy.shape == (0,)
