"""What must not change a loss or its gradient, for every surrogate through the whole chain."""

import math

import pytest
import torch
from torch import Tensor

from rewardswap.core.clipping import clip_bounds
from rewardswap.core.divergences import k3
from rewardswap.core.ratios import (
    cap_importance,
    log_ratio,
    replay_ratio,
    trajectory_log_ratio,
    turn_log_ratio,
)
from rewardswap.core.reductions import row_mean_weights, token_mean_weights, weighted_sum
from rewardswap.core.segments import masked_fill_zero
from rewardswap.core.surrogates import (
    cispo,
    dppo_kl,
    dppo_tv,
    dual_clip,
    gmpo,
    is_clipped,
    ppo_clip,
    reinforce,
    sapo,
)

COLUMNS = ("logprob", "old", "behavior", "reference", "advantage")
NAMES = ["ppo", "gspo", "turn", "cispo", "sapo", "gmpo", "dppo_tv", "dppo_kl", "reinforce", "k3"]


def batch(rows: int = 4, places: int = 6, gap: float = 0.4) -> dict[str, Tensor]:
    """Random log-probs and advantages with ragged rows; `gap` sets how far the policies differ."""
    source = torch.Generator().manual_seed(3)
    lengths = torch.randint(1, places + 1, (rows, 1), generator=source)
    columns = {c: torch.randn(rows, places, generator=source) for c in COLUMNS}
    base = -2 * torch.rand(rows, places, generator=source) - 1
    for name in ("logprob", "old", "behavior", "reference"):
        columns[name] = base + gap * columns[name]
    turn = torch.arange(places).expand(rows, -1) // 2
    return {**columns, "mask": torch.arange(places)[None, :] < lengths, "turn": turn.clone()}


def rows_of(mask: Tensor) -> Tensor:
    """The number of its row at every place: one trajectory per row."""
    return torch.arange(len(mask))[:, None].expand(mask.shape)


def token_losses(name: str, x: dict[str, Tensor]) -> Tensor:
    """The per-token loss of one surrogate for replayed rows: ratio q, centre c."""
    mask, advantage = x["mask"], x["advantage"]
    moved = log_ratio(x["logprob"], x["old"], mask)
    gap = log_ratio(x["old"], x["behavior"], mask)
    if name == "gspo":
        moved, gap = (trajectory_log_ratio(v, mask, rows_of(mask)) for v in (moved, gap))
    if name == "turn":
        moved, gap = (turn_log_ratio(v, mask, x["turn"]) for v in (moved, gap))
    center = gap.exp()
    ratio = replay_ratio(moved, center)
    bounds = clip_bounds(center, 0.2, 0.28, "additive")
    logprob, old = masked_fill_zero(x["logprob"], mask), masked_fill_zero(x["old"], mask)
    if name == "cispo":
        return cispo(logprob, ratio, *bounds, advantage)
    if name == "sapo":
        return sapo(ratio, center, advantage)
    if name == "gmpo":
        return gmpo(
            moved + gap, *clip_bounds(gap, 0.4, 0.4, "additive"), advantage, mask, rows_of(mask)
        )
    if name in ("dppo_tv", "dppo_kl"):
        surrogate = dppo_tv if name == "dppo_tv" else dppo_kl
        return surrogate(ratio, logprob, old, advantage, low=0.2, high=0.2)
    if name == "reinforce":
        return reinforce(logprob, advantage)
    if name == "k3":
        return k3(log_ratio(x["logprob"], x["reference"], mask))
    return dual_clip(ppo_clip(ratio, *bounds, advantage), advantage)


def weights_of(name: str, mask: Tensor) -> Tensor:
    by_row = name in ("gspo", "gmpo")
    return row_mean_weights(mask) if by_row else token_mean_weights(mask)


def loss_and_gradient(name: str, x: dict[str, Tensor]) -> tuple[float, Tensor]:
    logprob = x["logprob"].clone().requires_grad_()
    loss = weighted_sum(token_losses(name, {**x, "logprob": logprob}), weights_of(name, x["mask"]))
    loss.backward()
    assert logprob.grad is not None
    return loss.item(), logprob.grad


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("junk", [math.nan, 1.0, -1e9, math.inf])
def test_what_stands_at_masked_places_changes_nothing(name: str, junk: float) -> None:
    x = batch()
    loss, gradient = loss_and_gradient(name, x)
    dirty = {c: torch.where(x["mask"], x[c], torch.tensor(junk)) for c in COLUMNS}
    dirty_loss, dirty_gradient = loss_and_gradient(name, {**x, **dirty})
    assert dirty_loss == loss
    assert torch.equal(dirty_gradient, gradient)
    assert (gradient[~x["mask"]] == 0).all()
    assert (gradient[x["mask"]] != 0).any()


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("left", "right"), [(0, 5), (3, 0), (7, 2)])
def test_padding_on_either_side_changes_nothing(name: str, left: int, right: int) -> None:
    x = batch()
    pad = torch.nn.functional.pad
    padded = {
        c: pad(v.float(), (left, right), value=-1.0).to(v.dtype)
        if c != "mask"
        else pad(v, (left, right))
        for c, v in x.items()
    }
    loss, gradient = loss_and_gradient(name, x)
    padded_loss, padded_gradient = loss_and_gradient(name, padded)
    assert padded_loss == pytest.approx(loss, abs=1e-6)
    places = padded_gradient[:, left : left + x["mask"].shape[1]]
    torch.testing.assert_close(places, gradient, atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_permuted_rows_and_micro_batches_change_nothing(name: str) -> None:
    x = batch()
    weights = weights_of(name, x["mask"])
    loss, _ = loss_and_gradient(name, x)
    order = [2, 0, 3, 1]
    parts = []
    for rows in (order[:1], order[1:]):
        part = token_losses(name, {c: v[rows] for c, v in x.items()})
        parts.append(weighted_sum(part, weights[rows]).item())
    assert sum(parts) == pytest.approx(loss, abs=1e-6)


@pytest.mark.parametrize("name", [n for n in NAMES if n not in ("reinforce", "k3")])
def test_on_policy_the_replay_formula_is_the_plain_one_to_the_bit(name: str) -> None:
    """With π_behavior = π_old every replay formula equals its on-policy form."""
    x = batch()
    x["behavior"] = x["old"].clone()
    mask, advantage = x["mask"], x["advantage"]
    moved = log_ratio(x["logprob"], x["old"], mask)
    if name == "gspo":
        moved = trajectory_log_ratio(moved, mask, rows_of(mask))
    if name == "turn":
        moved = turn_log_ratio(moved, mask, x["turn"])
    ones = torch.ones_like(moved)
    if name in ("ppo", "gspo", "turn"):
        plain = dual_clip(ppo_clip(moved.exp(), ones - 0.2, ones + 0.28, advantage), advantage)
    elif name == "sapo":
        plain = sapo(moved.exp(), ones, advantage)
    elif name == "cispo":
        clean = masked_fill_zero(x["logprob"], mask)
        plain = cispo(clean, moved.exp(), ones - 0.2, ones + 0.28, advantage)
    elif name == "gmpo":
        plain = gmpo(moved, -0.4 * ones, 0.4 * ones, advantage, mask, rows_of(mask))
    else:
        surrogate = dppo_tv if name == "dppo_tv" else dppo_kl
        clean, old = masked_fill_zero(x["logprob"], mask), masked_fill_zero(x["old"], mask)
        plain = surrogate(moved.exp(), clean, old, advantage, low=0.2, high=0.2)
    assert torch.equal(token_losses(name, x), plain)


def clipped_at_old(x: dict[str, Tensor], inverted: bool, window: str) -> Tensor:
    """Where replayed tokens are clipped at θ = θ_old, for either sign of the advantage."""
    mask = x["mask"]
    gap = log_ratio(x["old"], x["behavior"], mask)
    ratio = replay_ratio(torch.zeros_like(gap), gap.exp())
    center = (-gap if inverted else gap).exp()
    lower, upper = clip_bounds(center, 0.2, 0.2, window)
    return is_clipped(ratio, lower, upper, x["advantage"]) & mask


@pytest.mark.parametrize("window", ["additive", "multiplicative"])
@pytest.mark.parametrize("gap", [0.1, 0.3, 1.0, 3.0])
def test_no_replayed_token_is_clipped_at_the_old_policy(window: str, gap: float) -> None:
    x = batch(rows=64, places=32, gap=gap)
    assert not clipped_at_old(x, inverted=False, window=window).any()


@pytest.mark.parametrize(("spread", "expected"), [(0.1, 0.16), (0.3, 0.37), (1.0, 0.46)])
def test_the_inverted_center_kills_gradients_at_the_old_policy(
    spread: float, expected: float
) -> None:
    """π_behavior/π_old as the centre is an error: it clips 16, 37, 46 % of the tokens at θ_old.

    log-prob gaps of standard deviation .1, .3, 1 and random signs of the advantage.
    """
    source = torch.Generator().manual_seed(0)
    gap = spread * torch.randn(1, 40_000, generator=source)
    zeros = torch.zeros_like(gap)
    x = {
        "old": zeros,
        "behavior": -gap,
        "mask": torch.ones_like(gap).bool(),
        "advantage": torch.randn(1, 40_000, generator=source),
    }
    share = clipped_at_old(x, inverted=True, window="additive").float().mean().item()
    assert share == pytest.approx(expected, abs=0.01)


@pytest.mark.parametrize("cap", ["none", "truncate", "mask"])
def test_a_cap_on_the_importance_clips_nothing_at_the_old_policy(cap) -> None:
    x = batch(gap=1.5)
    gap = log_ratio(x["old"], x["behavior"], x["mask"])
    center = cap_importance(gap.exp(), cap, 2.0)
    lower, upper = clip_bounds(center, 0.2, 0.2, "additive")
    ratio = replay_ratio(torch.zeros_like(gap), center)
    assert not is_clipped(ratio, lower, upper, x["advantage"]).any()
    assert (center == 0).any() == (cap == "mask")


def test_the_multiplicative_window_is_the_center_times_the_plain_objective() -> None:
    x = batch()
    mask, advantage = x["mask"], x["advantage"]
    moved = log_ratio(x["logprob"], x["old"], mask)
    center = log_ratio(x["old"], x["behavior"], mask).exp()
    bounds = clip_bounds(center, 0.2, 0.28, "multiplicative")
    replayed = ppo_clip(replay_ratio(moved, center), *bounds, advantage)
    ones = torch.ones_like(center)
    plain = ppo_clip(moved.exp(), 0.8 * ones, 1.28 * ones, advantage)
    torch.testing.assert_close(replayed, center * plain)
