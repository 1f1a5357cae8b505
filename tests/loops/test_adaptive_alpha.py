"""The weight of replay by the agent's success, the effective sample size and the buffer."""

import json

import pytest

from rewardswap.loops.adaptive_alpha import AdaptiveAlpha, ReplayWeight


def weight_at(success: int, ess: float | None = 1.0, held: int = 8) -> float:
    """alpha_t at alpha_max = 1/8 and `success` percent."""
    weight = ReplayWeight(AdaptiveAlpha(), 1 / 8)
    weight.observe(success, 100)
    return weight.weight(ess, held)


@pytest.mark.parametrize(
    ("success", "share"),
    # (.8 - p) / .6
    [(0, 1), (20, 1), (35, 0.75), (50, 0.5), (65, 0.25), (80, 0), (100, 0)],
)
def test_the_better_the_agent_the_less_replay(success: int, share: float) -> None:
    assert weight_at(success) == pytest.approx(share / 8)


@pytest.mark.parametrize(
    ("ess", "share"),
    # (ess - .1) / .4
    [(None, 0), (0.05, 0), (0.1, 0), (0.2, 0.25), (0.3, 0.5), (0.5, 1), (0.8889, 1)],
)
def test_the_gate_of_the_effective_sample_size(ess: float | None, share: float) -> None:
    assert weight_at(20, ess) == pytest.approx(share / 8)


def test_both_multiply() -> None:
    assert weight_at(50, 0.3) == pytest.approx(1 / 8 * 1 / 2 * 1 / 2)


def test_a_buffer_with_too_few_successes_has_no_weight() -> None:
    assert weight_at(20, held=7) == 0
    assert weight_at(20, held=8) == 1 / 8


def test_success_is_that_of_the_last_updates_trajectories() -> None:
    weight = ReplayWeight(AdaptiveAlpha(window=2), 1 / 8)
    for successes, trajectories in ((50, 50), (10, 30), (0, 10)):
        weight.observe(successes, trajectories)
    assert weight.success == pytest.approx(10 / 40)  # not the mean of 1/3 and 0


def test_it_goes_on_from_its_state() -> None:
    weight, other = (ReplayWeight(AdaptiveAlpha(window=2), 0.25) for _ in range(2))
    weight.observe(1, 2)
    weight.observe(0, 4)
    other.restore(json.loads(json.dumps(weight.state())))
    for each in (weight, other):
        each.observe(3, 4)
    assert weight.success == other.success == 3 / 8
    assert weight.state() == other.state()


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"success_low": 0.8}, "success_low and success_high must rise"),
        ({"ess_high": 1.5}, "ess_low and ess_high must rise"),
        ({"window": 0}, "window must be at least 1 update, got 0"),
        ({"least_successes": -1}, "least_successes"),
    ],
)
def test_bad_settings(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        AdaptiveAlpha(**wrong)


def test_bad_numbers() -> None:
    weight = ReplayWeight(AdaptiveAlpha(), 1 / 8)
    with pytest.raises(ValueError, match="observe a fresh batch first"):
        weight.weight(1.0, 8)
    with pytest.raises(ValueError, match="3 successes of 2 trajectories"):
        weight.observe(3, 2)
