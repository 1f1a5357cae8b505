"""Whole prompts of every session; what vLLM would draw otherwise is refused."""

import numpy as np
import pytest

from rewardswap.rollout.engine import Request, SamplingParams
from rewardswap.rollout.sampling import draw_tokens
from rewardswap.rollout.transcripts import Transcripts, refuse_other_numbers, seed_of

ENDS = (1, 2)
SAMPLING = SamplingParams(max_tokens=3)


def asking(*context: int, extends: bool = False) -> Request:
    return Request("a", np.array(context, dtype=np.int64), extends, (0, 0))


def test_a_prompt_is_all_that_was_read_and_said() -> None:
    transcripts = Transcripts(20, ENDS)
    assert transcripts.ask([asking(5, 6)], SAMPLING) == [[5, 6]]
    assert not transcripts.answer("a", [7, 2], [-1.0, -2.0]).truncated
    assert transcripts.ask([asking(8, extends=True)], SAMPLING) == [[5, 6, 7, 2, 8]]
    assert transcripts.answer("a", [4, 4, 4], [-1.0] * 3).truncated
    assert transcripts.ask([asking(9)], SAMPLING) == [[9]]
    assert transcripts.release(["a", "b"]) == ["a"]
    assert transcripts.ask([asking(3)], SAMPLING) == [[3]]
    transcripts.answer("a", [1], [-1.0])
    assert transcripts.release(["a"]) == []


@pytest.mark.parametrize(
    ("ids", "logprobs"),
    [
        ([7, 8], [-1.0, -1.0]),  # no end token, below the cap
        ([7, 8, 9, 7], [-1.0] * 4),  # above the cap
        ([7, 1, 8], [-1.0] * 3),  # goes on behind an end token
        ([7, 2, 1], [-1.0] * 3),
        ([7, 2], [-1.0]),
        ([], []),
    ],
)
def test_an_action_ends_with_its_first_end_token_or_at_the_cap(
    ids: list[int], logprobs: list[float]
) -> None:
    transcripts = Transcripts(20, ENDS)
    transcripts.ask([asking(5)], SAMPLING)
    with pytest.raises(ValueError, match=r"action of session 'a' has .* under a cap of 3"):
        transcripts.answer("a", ids, logprobs)


def test_what_is_refused_leaves_nothing_behind() -> None:
    transcripts = Transcripts(6, ENDS)
    with pytest.raises(ValueError, match="needs 7 tokens"):
        transcripts.ask([asking(5, 5, 5, 5)], SAMPLING)
    with pytest.raises(ValueError, match="min_p"):
        transcripts.ask([asking(5)], SamplingParams(min_p=0.1, top_p=0.9))
    assert not len(transcripts.sessions) and not transcripts.awaited
    with pytest.raises(ValueError, match="end token"):
        Transcripts(6, [])


def test_min_p_with_top_p_would_be_another_distribution() -> None:
    """.5 .3 .11 .09: top_p .85 keeps three, min_p .2 of them all; min_p first, and it is two."""
    import torch

    logits = torch.tensor([[0.5, 0.3, 0.11, 0.09]]).log()
    both = SamplingParams(top_p=0.85, min_p=0.2)
    drawn, _ = draw_tokens(logits, torch.tensor([0.95]), [both])
    assert drawn.tolist() == [2]
    first = torch.where(logits.exp() >= 0.2 * 0.5, logits, -torch.inf).log_softmax(-1)
    drawn, _ = draw_tokens(first, torch.tensor([0.95]), [SamplingParams(top_p=0.85)])
    assert drawn.tolist() == [1]
    with pytest.raises(ValueError, match=r"min_p 0\.2 with top_p 0\.85: vLLM cuts by min_p first"):
        refuse_other_numbers(both)


def test_other_samplers_of_which_vllm_gives_other_numbers() -> None:
    for temperature in (0.001, 2.5):
        with pytest.raises(ValueError, match=f"temperature {temperature} is not one"):
            refuse_other_numbers(SamplingParams(temperature=temperature))
    with pytest.raises(ValueError, match="temperature 0 with top_k"):
        refuse_other_numbers(SamplingParams(temperature=0.0, top_k=5))
    for fine in (
        SamplingParams(temperature=0.0),
        SamplingParams(temperature=0.01, top_k=3, top_p=0.5),
        SamplingParams(temperature=2.0, top_k=3, min_p=0.5),
    ):
        refuse_other_numbers(fine)


def test_a_seed_has_63_bits_of_both_words() -> None:
    assert seed_of((2**64 - 1, 0)) == seed_of((0, 2**64 - 1)) == 2**63 - 1
    assert seed_of((6, 4)) == 1
