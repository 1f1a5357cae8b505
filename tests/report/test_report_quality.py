import pytest

from rewardswap.report.quality import (
    TurnQuality,
    mean_auc_at_fixed_turns,
    process_reward_quality,
)


def quality_with(aucs: list[float], total: float, length_only: float) -> list[str]:
    turns = [{"turn": turn, "live": 100, "auc": auc} for turn, auc in enumerate(aucs)]
    document = {"auc_total": total, "auc_length_only": length_only, "turns": turns}
    quality = process_reward_quality(document)
    assert quality is not None
    return quality.warnings


@pytest.mark.parametrize(
    ("aucs", "total", "warned"),
    [
        ([0.51, 0.48, 0.47, 0.53], 0.946, True),
        ([0.64, 0.74, 0.77, 0.86], 0.99, False),
        ([0.51, 0.48], 0.55, False),
        ([], 0.95, False),
    ],
)
def test_only_a_turn_counter_is_called_one(aucs: list[float], total: float, warned: bool) -> None:
    warnings = quality_with(aucs, total, length_only=0.5)
    assert any("turn counter" in warning for warning in warnings) is warned


def test_a_reward_no_better_than_the_length_is_said_to_be() -> None:
    assert "no better than that of an episode's length" in quality_with([0.7], 0.9, 0.95)[0]
    assert quality_with([0.7], 0.96, 0.95) == []


def test_fixed_turns_weigh_by_live_episodes() -> None:
    turns = [
        TurnQuality(3, 30, 0.5, None, None),
        TurnQuality(5, 10, 0.9, None, None),
        TurnQuality(7, 9, None, None, None),
    ]
    # (30 · .5 + 10 · .9)/40
    assert mean_auc_at_fixed_turns(turns) == pytest.approx(0.6)
    assert mean_auc_at_fixed_turns(turns[2:]) is None


def test_the_warning_of_the_examination_itself_comes_first() -> None:
    document = {"auc_total": 0.9, "auc_length_only": 0.95, "warning": "it knows little"}
    quality = process_reward_quality(document)
    assert quality is not None
    assert quality.warnings[0] == "it knows little"
    assert len(quality.warnings) == 2
    assert quality.other == []
    content = process_reward_quality({"auc_total": 0.946, "warning": None, "turns": []})
    assert content is not None
    assert content.warnings == []
