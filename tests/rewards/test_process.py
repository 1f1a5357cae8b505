from dataclasses import replace

import pytest
import torch

from rewardswap.rewards.base import RewardSource
from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.types import Group

OURS = PRESETS["after_observation"]
QUICK = replace(OURS, epochs=3)


def first_group(trajectories) -> Group:
    return Group(task=trajectories[0].task, trajectories=tuple(trajectories[:8]))


def test_observations_that_reveal_success_are_learned(backbone, revealing) -> None:
    quality = ProcessRewardModel(backbone, OURS).fit(revealing)
    assert quality.auc_total is not None and quality.auc_total > 0.9
    for turn in quality.turns[:4]:
        assert turn.auc is not None and turn.auc > 0.85
        assert turn.auc_within_task is not None and turn.auc_within_task > 0.85
    assert quality.warning is None
    counts = (quality.trained_on_trajectories, quality.validation_trajectories)
    assert (*counts, quality.held_out_trajectories) == (208, 48, 64)


def test_the_papers_reading_counts_turns_where_nothing_else_tells(backbone, length_only) -> None:
    quality = ProcessRewardModel(backbone, PRESETS["action"]).fit(length_only)
    assert quality.auc_total is not None and quality.auc_total > 0.9
    assert quality.auc_length_only == 1.0
    assert quality.warning is not None and "turn counter" in quality.warning


def test_fitting_stops_early_and_keeps_the_best_epoch(backbone, length_only) -> None:
    model = ProcessRewardModel(backbone, replace(OURS, epochs=60, patience=3))
    model.fit(length_only)
    history = model.history
    assert history is not None
    assert len(history.validation) == history.kept_epoch + 4 < 60
    assert min(history.validation) == history.validation[history.kept_epoch]
    assert history.training[history.kept_epoch] < history.training[0]


def test_scores_are_zero_where_there_is_no_turn(backbone, revealing) -> None:
    model = ProcessRewardModel(backbone, QUICK)
    model.fit(revealing)
    group = first_group(revealing)
    source: RewardSource = model
    score = source.score(group)
    assert score.shape == (8, group.turn_count)
    assert (score[~group.turn_mask] == 0).all()
    assert ((score[group.turn_mask].abs() > 0) & (score[group.turn_mask].abs() < 1)).all()
    alone = model.rewards(revealing[2:3])[0]
    torch.testing.assert_close(score[2, : len(alone)], alone, atol=1e-5, rtol=0)
    assert source.name == "process"


def test_the_same_seed_gives_the_same_bits_and_leaves_the_global_stream(
    backbone, revealing
) -> None:
    before = torch.get_rng_state()
    scores = []
    for _ in range(2):
        model = ProcessRewardModel(backbone, QUICK)
        model.fit(revealing)
        scores.append(model.score(first_group(revealing)))
    assert torch.equal(scores[0], scores[1])
    assert torch.equal(torch.get_rng_state(), before)
    other = ProcessRewardModel(backbone, replace(QUICK, seed=1))
    other.fit(revealing)
    assert not torch.equal(other.score(first_group(revealing)), scores[0])


def test_what_was_saved_comes_back_to_the_bit(backbone, revealing, tmp_path) -> None:
    model = ProcessRewardModel(backbone, QUICK)
    model.fit(revealing)
    model.save_pretrained(tmp_path / "prm")
    loaded = ProcessRewardModel.from_pretrained(tmp_path / "prm", backbone)
    assert loaded.config == model.config
    group = first_group(revealing)
    assert torch.equal(loaded.score(group), model.score(group))


def test_another_backbone_is_refused(backbone, revealing, tmp_path) -> None:
    model = ProcessRewardModel(backbone, QUICK)
    model.fit(revealing)
    model.save_pretrained(tmp_path)
    backbone.model.norm.weight[0] += 1.0
    with pytest.raises(ValueError, match="fitted on a backbone with sha256"):
        ProcessRewardModel.from_pretrained(tmp_path, backbone)


def test_a_model_without_a_head_says_so(backbone, revealing, tmp_path) -> None:
    model = ProcessRewardModel(backbone, OURS)
    with pytest.raises(ValueError, match="call `fit`"):
        model.score(first_group(revealing))
    with pytest.raises(ValueError, match="never fitted"):
        model.save_pretrained(tmp_path)


def test_the_target_may_be_success_instead_of_the_outcome(backbone, revealing) -> None:
    partial = [replace(t, outcome=0.5 + 0.01 * t.success) for t in revealing]
    by_outcome = ProcessRewardModel(backbone, replace(OURS, target="outcome"))
    by_outcome.fit(partial)
    by_success = ProcessRewardModel(backbone, replace(OURS, target="success"))
    by_success.fit(partial)
    spread = [
        torch.stack([row.sum() for row in model.rewards(partial)]).std().item()
        for model in (by_outcome, by_success)
    ]
    # outcomes of .5 and .51 leave hardly anything to tell apart
    assert spread[0] < 0.15 < 0.3 < spread[1]
