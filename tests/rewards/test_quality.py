from io import StringIO
from itertools import product

import pytest
from rich.console import Console

from rewardswap.rewards.quality import area_under_curve, judge


def test_area_under_curve_counts_ties_half() -> None:
    # successes score 3 and 1, failures 1 and 0: pairs 3>1, 3>0, 1=1, 1>0: (3 + .5) / 4
    assert area_under_curve([3.0, 1.0, 1.0, 0.0], [True, True, False, False]) == 0.875


def test_area_under_curve_equals_its_definition() -> None:
    scores = [0.2, 0.9, 0.2, 0.5, 0.5, 0.1, 0.7]
    success = [True, False, False, True, False, True, True]
    wins = [s for s, won in zip(scores, success, strict=True) if won]
    losses = [s for s, won in zip(scores, success, strict=True) if not won]
    better = sum((w > f) + (w == f) / 2 for w, f in product(wins, losses))
    assert area_under_curve(scores, success) == pytest.approx(better / 12)


def test_area_under_curve_of_one_kind_is_none() -> None:
    assert area_under_curve([1.0, 2.0], [True, True]) is None
    assert area_under_curve([], []) is None


def test_area_under_curve_refuses_nan() -> None:
    with pytest.raises(ValueError, match="1 of 2 scores"):
        area_under_curve([float("nan"), 0.0], [True, False])


def test_judge_compares_only_live_episodes_at_a_fixed_turn(make) -> None:
    episodes = [
        make([5, 5], index=0, success=True),  # one turn
        make([5, 5, 5, 5], index=1, success=True),  # three turns
        make([5, 5, 5, 5], index=2, success=False),
    ]
    rewards = [[0.9], [-0.1, 0.2, 0.5], [0.1, 0.0, 0.0]]
    quality = judge(episodes, rewards, turns=(1, 2), trained_on_trajectories=7)
    # totals .9 and .6 beat .1
    assert quality.auc_total == 1.0
    # lengths 1 < 3 and 3 = 3: (1 + .5) / 2
    assert quality.auc_length_only == 0.75
    # after turn 1 the first is over: -.1 against .1; after turn 2: .1 against .1, a tie
    assert [(t.turn, t.live, t.successes, t.auc) for t in quality.turns] == [
        (1, 2, 1, 0.0),
        (2, 2, 1, 0.5),
    ]
    assert [t.auc_length_only for t in quality.turns] == [0.5, 0.5]
    # (.1^2 + .4^2 + .1^2) / 3
    assert quality.brier == pytest.approx(0.06)
    assert quality.cut_share == 0.0
    assert quality.trained_on_trajectories == 7


def test_judge_counts_totals_outside_the_unit_interval(make) -> None:
    episodes = [make([5, 5], success=True), make([5, 5], success=False)]
    quality = judge(episodes, [[0.8], [-0.5]])
    # .8 misses by .2; -.5 is cut to 0 and misses by 0
    assert quality.brier == pytest.approx(0.02)
    assert quality.cut_share == 0.5


def test_within_a_task_ignores_that_one_task_is_easier(make) -> None:
    episodes = [
        make([5, 5, 5], task="easy", success=True),
        make([5, 5, 5], task="easy", success=False),
        make([5, 5, 5], task="hard", success=True),
        make([5, 5, 5], task="hard", success=False),
    ]
    # inside each task the failure scores higher, between tasks easy success beats hard failure
    quality = judge(episodes, [[0.8, 0.0], [0.9, 0.0], [0.1, 0.0], [0.2, 0.0]])
    assert quality.auc_total == 0.25
    assert quality.auc_within_task == 0.0
    assert quality.turns[0].auc_within_task == 0.0


def test_a_turn_counter_is_called_one(make) -> None:
    episodes = [make([5] * (3 + n % 3), index=n, success=True) for n in range(6)]
    episodes += [make([5] * 9, index=6 + n, success=False) for n in range(6)]
    quality = judge(episodes, [[1.0] + [-0.1] * (len(e.turns) - 1) for e in episodes])
    assert quality.auc_total == 1.0
    assert quality.auc_at_fixed_turns == 0.5
    assert quality.warning is not None and "turn counter" in quality.warning


def test_a_model_that_knows_at_fixed_turns_is_not_warned_about(make) -> None:
    episodes = [make([5] * 5, index=n, success=n % 2 == 0) for n in range(6)]
    quality = judge(episodes, [[0.3 * e.success] * 4 for e in episodes])
    assert quality.warning is None


def test_one_kind_of_outcome_is_said(make) -> None:
    quality = judge([make([5, 5, 5], index=n) for n in range(3)], [[0.1, 0.2]] * 3)
    assert quality.auc_total is None
    assert quality.auc_length_only is None
    assert quality.warning is not None and "0 of 3" in quality.warning


def test_as_dict_and_table_tell_the_same_numbers(make) -> None:
    episodes = [make([5] * 4, index=n, success=n == 0) for n in range(3)]
    quality = judge(episodes, [[0.6, 0.0, 0.0], [0.2, 0.0, 0.0], [0.6, 0.0, 0.1]])
    values = quality.as_dict()
    assert values["turns"][0] == {
        "turn": 1,
        "live": 3,
        "successes": 1,
        "auc": 0.75,
        "auc_within_task": 0.75,
        "auc_length_only": 0.5,
    }
    console = Console(width=120, file=StringIO(), record=True)
    console.print(quality.table())
    # totals: .6 against .2 and .7
    assert values["auc_total"] == 0.5
    assert "0.750" in console.export_text(clear=False)
    assert "0.500" in console.export_text()


def test_judge_refuses_rewards_that_do_not_fit(make) -> None:
    with pytest.raises(ValueError, match="1 rewards for the 2 turns of task 'kettle'"):
        judge([make([5, 5, 5], task="kettle")], [[0.1]])
    with pytest.raises(ValueError, match="no held-out trajectories"):
        judge([], [])
