"""GRPO by hand."""

from dataclasses import replace
from typing import Any

import pytest
from worked import (
    chain_loss,
    each,
    group_of,
    near,
    scores_of,
    tokens_of,
    two_trajectories_loss,
)

from rewardswap.methods.grpo import GRPO


def test_advantages_are_z_scores() -> None:
    # mean .5, unbiased std sqrt(4 x .25 / 3) = .5773503: .5 / (.5773503 + 1e-6) = .8660239
    group = group_of([[0.0, 1.0], [0.0], [0.0, 0.0], [1.0]])
    assert each(GRPO(), group) == near([0.8660239, -0.8660239, -0.8660239, 0.8660239])


def test_a_short_success_and_a_long_failure_share_a_baseline_of_one_half() -> None:
    # over rows the baseline would be 2 / 10; here .5 / (.7071068 + 1e-6) = .7071058
    group = group_of([[0.0, 1.0], [0.0] * 8])
    assert each(GRPO(), group) == near([0.7071058, -0.7071058])


def test_siblings_that_are_not_trained_on_count_in_the_baseline() -> None:
    group = group_of([[1.0], [0.0], [0.0], [1.0]])
    part = replace(group, selected=(True, False, False, True))
    assert each(GRPO(), part) == each(GRPO(), group)


def test_loss_by_hand() -> None:
    # X: q .65 inside .3 .. .7, q 1.6 held at 1.2; Y: A = -1, 1.8 is worse than 1.2
    # .25 (-.65 - 1.2) / 2 + .75 x 1.8 = 1.11875
    value, metrics = two_trajectories_loss(GRPO())
    assert value == near(1.11875)
    assert metrics["clip_high_share"] == near(0.125)
    assert metrics["clip_low_share"] == 0


def test_loss_with_a_dual_clip_by_hand() -> None:
    # Y: at most 1.5 x 1: -.23125 + .75 x 1.5 = .89375
    value, metrics = two_trajectories_loss(GRPO(dual_clip=1.5))
    assert value == near(0.89375)
    assert metrics["dual_clip_share"] == near(0.75)


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        # c = 2 and r = 1: q = 2 inside 1.8 .. 2.2
        ({}, -2.0),
        # q = c = 1.5; or no gradient at all; or held at 1.2, where its ratio never was
        ({"importance_cap": "truncate", "importance_maximum": 1.5}, -1.5),
        ({"importance_cap": "mask", "importance_maximum": 1.5}, 0.0),
        ({"clip_center": "one"}, -1.2),
    ],
)
def test_loss_of_a_stale_token_by_hand(settings: dict[str, Any], expected: float) -> None:
    algorithm = GRPO(**settings).algorithm()
    batch = algorithm.weigh(tokens_of([[0.5]], [[0.25]], [1.0], [True]), 0.25)
    value, metrics = algorithm.loss(scores_of(batch, [[0.5]]), batch)
    assert float(value.detach()) == near(expected)
    assert metrics.get("importance_capped_share", 0.0) == float("importance_cap" in settings)
    assert metrics["clip_high_share"] == float("clip_center" in settings)


def test_other_clips_of_replayed_rows_by_hand() -> None:
    # X: .65 held at .6 and 1.6 at 1.1; Y as before: .25 (-.6 - 1.1) / 2 + 1.35
    tight = GRPO(replay_clip_low=0.1, replay_clip_high=0.1)
    assert two_trajectories_loss(tight)[0] == near(1.1375)


def test_a_divergence_as_loss_term_by_hand() -> None:
    # A = 0, pi .5, reference .25: k3 = .5 + ln 2 - 1 = .1931472, a tenth of it
    algorithm = GRPO(kl_coefficient=0.1).algorithm()
    batch = tokens_of([[0.5]], [[0.5]], [0.0], [False])
    reference = batch.column("old_logprob") * 2
    batch = algorithm.weigh(batch.with_columns({"reference_logprob": reference}), 0.25)
    value, metrics = algorithm.loss(scores_of(batch, [[0.5]]), batch)
    assert float(value.detach()) == near(0.0193147)
    assert metrics["kl_reference"] == near(0.1931472)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(GRPO()) == near(0.14050547)


def test_settings_that_make_no_sense_are_refused() -> None:
    for settings in ({"clip_low": 0.0}, {"dual_clip": 1.0}, {"importance_maximum": 0.5}):
        with pytest.raises(ValueError, match=next(iter(settings))):
            GRPO(**settings)
