"""Truncation keeps what transformers keeps; log-probs are those of what is drawn from."""

import math
from typing import Any

import numpy as np
import pytest
import torch
from transformers import (
    LogitsProcessorList,
    MinPLogitsWarper,
    TemperatureLogitsWarper,
    TopKLogitsWarper,
    TopPLogitsWarper,
)

from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.sampling import draw_tokens

PROBABILITIES = (0.1, 0.5, 0.3, 0.02, 0.08)


def drawn(level: float, probabilities: Any = PROBABILITIES, **sampling: Any) -> tuple[int, float]:
    logits = torch.tensor([probabilities]).log()
    one = draw_tokens(logits, torch.tensor([level]), [SamplingParams(**sampling)])
    return int(one[0]), math.exp(float(one[1]))


@pytest.mark.parametrize(
    ("sampling", "kept"),
    [
        ({}, {0: 0.1, 1: 0.5, 2: 0.3, 3: 0.02, 4: 0.08}),
        ({"top_k": 1}, {1: 1.0}),
        ({"top_k": 3}, {0: 1 / 9, 1: 5 / 9, 2: 3 / 9}),
        ({"top_k": 99}, {0: 0.1, 1: 0.5, 2: 0.3, 3: 0.02, 4: 0.08}),
        ({"top_p": 0.45}, {1: 1.0}),
        ({"top_p": 1e-300}, {1: 1.0}),  # in float32 it would be 0, and keep no token
        ({"top_p": 0.55}, {1: 5 / 8, 2: 3 / 8}),
        ({"top_p": 0.85}, {0: 1 / 9, 1: 5 / 9, 2: 3 / 9}),
        ({"min_p": 0.18}, {0: 1 / 9, 1: 5 / 9, 2: 3 / 9}),
        # of three tokens .6 is reached by the first two: 8/9 of their mass
        ({"top_k": 3, "top_p": 0.6}, {1: 5 / 8, 2: 3 / 8}),
        ({"top_p": 0.99, "min_p": 0.5}, {1: 5 / 8, 2: 3 / 8}),
    ],
)
def test_what_is_left_is_normalised_again(sampling: Any, kept: dict[int, float]) -> None:
    below = 0.0
    for token, probability in kept.items():
        for level in (below + 1e-4, below + probability - 1e-4):
            found = drawn(level, **sampling)
            assert found[0] == token
            assert found[1] == pytest.approx(probability, rel=1e-5)
        below += probability
    assert below == pytest.approx(1)


def test_greedy_has_the_probability_at_one() -> None:
    assert drawn(0.999, temperature=0.0) == (1, pytest.approx(0.5))
    assert drawn(0.0, temperature=0.0, top_k=2) == (1, pytest.approx(5 / 8))


def test_temperature_comes_first() -> None:
    # at temperature 1/2 probabilities are squared: .25 of .3568
    found = drawn(0.3, temperature=0.5)
    assert found == (1, pytest.approx(0.25 / sum(p * p for p in PROBABILITIES), rel=1e-5))


def test_equal_tokens_are_kept_in_their_order() -> None:
    """Neither more nor fewer than top_k, also where the k-th is as probable as the next."""
    equal = (0.25, 0.25, 0.25, 0.25)
    assert {drawn(level, equal, top_k=2)[0] for level in np.linspace(0, 0.999, 50)} == {0, 1}


def test_the_same_tokens_as_transformers_keeps() -> None:
    logits = 3 * torch.randn(40, 30, generator=torch.Generator().manual_seed(0))
    sampling = SamplingParams(temperature=0.7, top_k=12, top_p=0.9, min_p=0.02)
    warpers = LogitsProcessorList(
        [
            TemperatureLogitsWarper(0.7),
            TopKLogitsWarper(12),
            TopPLogitsWarper(0.9),
            MinPLogitsWarper(0.02),
        ]
    )
    expected = torch.log_softmax(warpers(torch.zeros(40, 1), logits.clone()), dim=-1)
    for level in np.linspace(0, 0.999, 60):
        token, logprob = draw_tokens(logits, torch.full((40,), level), [sampling] * 40)
        torch.testing.assert_close(logprob, expected.gather(1, token[:, None])[:, 0])
    assert (expected > -torch.inf).sum(dim=1).unique().numel() > 3


def test_rows_are_drawn_by_their_own_sampling() -> None:
    logits = torch.tensor([PROBABILITIES] * 3).log()
    kinds = [SamplingParams(), SamplingParams(top_k=1), SamplingParams(temperature=0.0)]
    tokens, logprobs = draw_tokens(logits, torch.tensor([0.05, 0.05, 0.05]), kinds)
    assert tokens.tolist() == [0, 1, 1]
    assert logprobs.exp().tolist() == pytest.approx([0.1, 1.0, 0.5])


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ({"top_p": 0.0}, "top_p must be above 0 and at most 1, got 0.0"),
        ({"top_p": 1.5}, "top_p must be above 0"),
        ({"top_k": -1}, "top_k must be at least 0, got -1"),
        ({"min_p": 1.0}, "min_p must be at least 0 and below 1, got 1.0"),
        ({"temperature": float("nan")}, "temperature must be 0 or at least 0.001, got nan"),
        ({"temperature": float("inf")}, "temperature must be 0 or at least 0.001, got inf"),
        ({"temperature": 1e-40}, "temperature must be 0 or at least 0.001, got 1e-40"),
        ({"max_tokens": 0}, "max_tokens must be at least 1, got 0"),
    ],
)
def test_bad_settings(setting: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        SamplingParams(**setting)


def test_what_truncates() -> None:
    assert not SamplingParams(temperature=0.5).truncates
    for setting in ({"top_p": 0.99}, {"top_k": 5}, {"min_p": 0.01}):
        assert SamplingParams(**setting).truncates  # type: ignore[arg-type]
