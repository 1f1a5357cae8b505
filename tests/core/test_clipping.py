import pytest
import torch

from rewardswap.core.clipping import adaptive_high, clip_bounds

CENTER = torch.tensor([[1.0, 0.5, 2.0]])


def test_additive_bounds() -> None:
    lower, upper = clip_bounds(CENTER, 0.2, 0.3, "additive")
    torch.testing.assert_close(lower, torch.tensor([[0.8, 0.3, 1.8]]))
    torch.testing.assert_close(upper, torch.tensor([[1.3, 0.8, 2.3]]))


def test_multiplicative_bounds() -> None:
    lower, upper = clip_bounds(CENTER, 0.2, 0.3, "multiplicative")
    torch.testing.assert_close(lower, torch.tensor([[0.8, 0.4, 1.6]]))
    torch.testing.assert_close(upper, torch.tensor([[1.3, 0.65, 2.6]]))


def test_on_policy_both_windows_are_equal_to_the_bit() -> None:
    ones = torch.ones(1, 3)
    for low, high in ((0.2, 0.28), (0.0003, 0.0004), (0.1, 0.7)):
        additive = clip_bounds(ones, low, high, "additive")
        multiplicative = clip_bounds(ones, low, high, "multiplicative")
        assert torch.equal(additive[0], multiplicative[0])
        assert torch.equal(additive[1], multiplicative[1])


def test_the_upper_width_may_differ_by_token() -> None:
    _, upper = clip_bounds(torch.ones(1, 2), 0.2, torch.tensor([[0.2, 0.5]]), "additive")
    torch.testing.assert_close(upper, torch.tensor([[1.2, 1.5]]))


@pytest.mark.parametrize(("low", "high"), [(-0.1, 0.2), (0.2, -0.1)])
def test_negative_widths_are_refused(low: float, high: float) -> None:
    with pytest.raises(ValueError, match=f"low={low} and high={high}"):
        clip_bounds(CENTER, low, high, "additive")


def test_adaptive_high_golden() -> None:
    # eight siblings, c of them correct: rarity (8 - c)/7; .2 + .08·6/7 = .2686, ...
    rarity = torch.tensor([[(8 - c) / 7 for c in (1, 2, 4, 7, 8)]])
    found = adaptive_high(torch.ones(1, 5), rarity, 0.2, 0.28)
    expected = torch.tensor([[0.28, 0.2686, 0.2457, 0.2114, 0.2]])
    torch.testing.assert_close(found, expected, atol=5e-5, rtol=0)


def test_adaptive_high_of_failures_and_of_equal_widths_is_the_plain_clip() -> None:
    rarity = torch.tensor([[0.9, 0.1]])
    assert (adaptive_high(-torch.ones(1, 2), rarity, 0.2, 0.28) == 0.2).all()
    assert (adaptive_high(torch.ones(1, 2), rarity, 0.2, 0.2) == 0.2).all()


def test_adaptive_high_refuses_swapped_widths() -> None:
    with pytest.raises(ValueError, match=r"0.1 is below the lowest, 0.2"):
        adaptive_high(torch.ones(1, 1), torch.ones(1, 1), 0.2, 0.1)
