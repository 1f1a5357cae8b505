import json
from dataclasses import replace
from io import StringIO
from itertools import product

import pytest
from rich.console import Console

from rewardswap.rewards.probes import probe
from rewardswap.rewards.quality import judge
from rewardswap.rewards.ranking import area_under_curve


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


def test_calibration_and_rank_correlation_are_told(make) -> None:
    episodes = [make([5, 5], task="a", index=n, success=n > 0) for n in range(3)]
    episodes.append(make([5, 5, 5], task="b"))
    quality = judge(episodes, [[0.25], [0.5], [1.5], [0.25, -0.5]])
    # predictions .25, .5, 1 and 0 of a failure, two successes, a failure: gaps .25, .5, 0, 0
    assert quality.calibration_error == pytest.approx(0.75 / 4)
    filled = [(part.lower, part.count) for part in quality.calibration if part.count]
    assert filled == [(0.0, 1), (0.2, 1), (0.5, 1), (0.9, 1)]
    # ranks 1 2 3 against 1 2.5 2.5: 1.5 / sqrt(2 * 1.5); lengths are all equal there
    assert quality.rank_correlation == pytest.approx(1.5 / 3**0.5)
    assert (quality.rank_correlation_length_only, quality.rank_tasks) == (0.0, 1)
    # two successes of four
    assert quality.brier_base_rate == 0.25


def test_families_are_judged_apart(make) -> None:
    def of(family: str, **settings):
        episode = make(**settings)
        return replace(episode, task=replace(episode.task, family=family))

    episodes = [
        of("heat", observations=[5, 5], task="h", index=0, success=True),
        of("cool", observations=[5, 5, 5], task="c", index=0, success=True),
        of("heat", observations=[5, 5, 5], task="h", index=1),
        of("cool", observations=[5, 5], task="d", index=0),
    ]
    cool, heat = judge(episodes, [[0.75], [0.5, 0.0], [0.0, 0.25], [1.0]]).families
    # cool: .5 of a success, 1 of a failure, which is shorter; they are of two tasks
    assert (cool.family, cool.trajectories, cool.successes) == ("cool", 2, 1)
    assert (cool.auc, cool.auc_within_task, cool.auc_length_only) == (0.0, None, 0.0)
    assert cool.brier == (0.25 + 1.0) / 2
    # heat: .75 of a success, .25 of a failure, which is longer
    assert (heat.auc, heat.auc_within_task, heat.auc_length_only) == (1.0, 1.0, 1.0)
    assert heat.brier == 0.0625


def test_worse_than_chance_is_said(make) -> None:
    episodes = [make([5] * 5, index=n, success=n % 2 == 0) for n in range(6)]
    quality = judge(episodes, [[-0.3 * e.success] * 4 for e in episodes])
    assert quality.warning == (
        "This process reward is worse than chance: AUC 0.00 in total, 0.00 within a task, 0.00 at "
        "fixed turns; it ranks failures above successes there."
    )


def test_a_turn_counter_that_is_also_worse_than_chance_is_both(make) -> None:
    episodes = [make([5, 5, 5], index=n, success=True) for n in range(3)]
    episodes += [make([5] * 9, index=3 + n, success=False) for n in range(3)]
    quality = judge(
        episodes, [[0.5 + 0.1 * (not e.success)] + [-0.1] * (len(e.turns) - 1) for e in episodes]
    )
    assert quality.auc_total == 1.0 and quality.auc_at_fixed_turns == 0.0
    said = quality.warning or ""
    assert "turn counter" in said
    assert "worse than chance: AUC 0.00 at fixed turns;" in said


def test_probes_join_the_warning_and_the_tables(make) -> None:
    episodes = [make([5] * 5, index=n, success=n % 2 == 0) for n in range(6)]
    quality = judge(episodes, [[0.3 * e.success] * 4 for e in episodes])
    assert quality.warning is None and len(quality.tables()) == 3
    # one more for every turn: it pays for padding and repetition, and sees no order
    probes = probe(lambda some: [[1.0] * len(t.turns) for t in some], episodes)
    probed = quality.with_probes(probes)
    assert len(probed.tables()) == 4
    assert probed.warning == " ".join(probes.warnings) != ""
    values = json.loads(json.dumps(probed.as_dict()))
    assert values["probes"]["probes"][1]["change"] == "repeated"
    assert values["families"][0]["family"] == "made-up"
    assert len(values["calibration"]) == 10
    console = Console(width=120, file=StringIO(), record=True)
    for table in probed.tables():
        console.print(table)
    shown = console.export_text()
    for title in ("on held-out tasks", "per task family", "calibration of R_hat", "how changed"):
        assert title in shown
