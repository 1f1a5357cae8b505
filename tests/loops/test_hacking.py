"""What gives an alarm of hacking, what does not, and how often simulated runs do."""

import json
from dataclasses import replace

import pytest

from hacking_runs import RUNS, Run, batches, first_alarm, naive_alarm
from rewardswap.loops.hacking import Alarm, HackingDetector
from rewardswap.loops.hacking_rules import HackingRules, correlation_sign, gain_sign, trend_sign
from rewardswap.loops.hacking_statistics import (
    DenseBatch,
    gain_error,
    measured,
    paired_gain,
    trend,
)

RULES = HackingRules()


def batch(outcome: float, dense: float, correlation: float | None = 0.5) -> DenseBatch:
    """128 trajectories."""
    return DenseBatch(128, outcome, 0.0, dense, correlation)


def loops(gain: float, dense: float = 1.0) -> list[tuple[DenseBatch, DenseBatch]]:
    """Three loops around an outcome of .5."""
    return [(batch(0.5 - gain / 2, 0.0), batch(0.5 + gain / 2, dense))] * 3


def test_the_error_of_a_gain_is_the_specifications() -> None:
    # sqrt(2 * .5 * .5 / (128 * 3))
    assert gain_error(0.5, 128, 3) == pytest.approx(0.0361, abs=5e-5)
    assert paired_gain(loops(-0.08)).error == pytest.approx(0.0361, abs=5e-5)


@pytest.mark.parametrize(("gain", "seen"), [(-0.08, True), (-0.05, False), (0.08, False)])
def test_the_gains_of_the_specification(gain: float, seen: bool) -> None:
    # 2 * .0361 = .0722
    assert bool(gain_sign(RULES, loops(gain))) == seen


def test_a_gain_is_a_sign_only_while_the_dense_reward_rises_and_after_three_loops() -> None:
    assert not gain_sign(RULES, loops(-0.2, dense=-1.0))
    assert not gain_sign(RULES, loops(-0.2)[:2])
    assert gain_sign(RULES, [*loops(0.2), *loops(-0.2)])


def test_tasks_that_differ_make_a_gain_less_sure() -> None:
    alike = measured([[1.0, 0.0]] * 4, [[0.0, 1.0]] * 4)
    apart = measured([[1.0, 1.0]] * 2 + [[0.0, 0.0]] * 2, [[0.0, 1.0]] * 4)
    assert alike.task_error == 0
    # means 1 1 0 0: variance 1/3, of four tasks
    assert apart.task_error == pytest.approx((1 / 3 / 4) ** 0.5)
    # a difference of two of them against sqrt(2 * .25 / 8) = .25
    assert paired_gain([(apart, apart)]).error == pytest.approx((2 / 12) ** 0.5)
    assert paired_gain([(alike, alike)]).error == pytest.approx(0.25)


def test_measures_by_hand() -> None:
    found = measured([[0.0, 1.0], [1.0]], [[1.0, 2.0], [9.0]])
    assert (found.trajectories, found.dense) == (3, 4.0)
    assert found.outcome == pytest.approx(2 / 3)
    # ranks 1 2.5 2.5 and 1 2 3: 1.5 / sqrt(1.5 * 2)
    assert found.correlation == pytest.approx(1.5 / 3**0.5)
    assert measured([[1.0, 1.0]], [[1.0, 2.0]]).correlation is None
    assert measured([[1.0, 0.0]], [[2.0, 2.0]]).correlation is None


def test_a_slope_and_its_error_by_hand() -> None:
    # 0 1 1 2 3: steps -2..2, slope 7/10, residuals 0 .3 -.4 -.1 .2, squares .3,
    # error sqrt(.3 / 3 / 10) = .1: t = 7 with 3 degrees of freedom, p = .00299, z = 2.749
    slope, z = trend([0.0, 1.0, 1.0, 2.0, 3.0])
    assert slope == pytest.approx(0.7)
    assert z == pytest.approx(2.749, abs=1e-3)
    assert trend([3.0, 2.0, 1.0, 1.0, 0.0])[1] == pytest.approx(-z)
    # points of error 1 each: .7 * sqrt(10)
    assert trend([0.0, 1.0, 1.0, 2.0, 3.0], 1.0)[1] == pytest.approx(0.7 * 10**0.5)
    assert trend([2.0, 2.0, 2.0]) == (0.0, 0.0)
    assert trend([1.0, 2.0, 3.0])[1] == float("inf")


def falling(per_batch: float, rise: float = 0.1) -> list[DenseBatch]:
    """Twenty batches; the outcome falls from .5."""
    wobble = (0.001, -0.001)
    return [batch(0.5 + per_batch * k, rise * k + wobble[k % 2]) for k in range(20)]


def test_a_trend_against_the_error_of_independent_trajectories() -> None:
    # mean about .4: error of a batch sqrt(.24 / 128) = .0433, of the slope .0433 / sqrt(665) =
    # .00168, three of them .0050
    assert trend_sign(RULES, falling(-0.006), 20, 3.0)
    assert not trend_sign(RULES, falling(-0.004), 20, 3.0)
    assert not trend_sign(RULES, falling(0.006), 20, 3.0)
    assert not trend_sign(RULES, falling(-0.006, rise=-0.1), 20, 3.0)
    assert not trend_sign(RULES, falling(-0.006)[1:], 20, 3.0)


@pytest.mark.parametrize(
    ("correlations", "seen"),
    [
        ([0.05] * 10, True),
        ([0.15] * 10, False),
        ([0.05] * 5 + [None] * 5, True),
        ([0.05] * 4 + [None] * 6, False),
        ([None] * 10, False),
        ([-0.9] + [0.25] * 9, False),
    ],
)
def test_correlations_that_part(correlations: list[float | None], seen: bool) -> None:
    early = [replace(one, correlation=-1.0) for one in falling(0.0)[:10]]
    late = [
        replace(one, correlation=c) for one, c in zip(falling(0.0)[10:], correlations, strict=True)
    ]
    assert bool(correlation_sign(RULES, [*early, *late])) == seen


def test_an_alarm_needs_a_sign_that_lasts_and_says_what_it_saw() -> None:
    detector = HackingDetector(RULES)
    found = [detector.observe(one) for one in falling(-0.02)]
    assert found == [None] * 20
    assert detector.observe(batch(0.09, 2.0)) is None
    alarm = detector.observe(batch(0.07, 2.1))
    assert isinstance(alarm, Alarm)
    assert alarm.rules == ("trend",)
    assert "over 20 batches the outcome falls by 0.02" in alarm.words
    # all is forgotten: the next alarm needs batches of its own
    assert [detector.observe(one) for one in falling(-0.02)] == [None] * 20


def play(detector: HackingDetector, gain: float) -> Alarm | None:
    for one in (batch(0.5, 0.0), batch(0.9, 9.0), batch(0.5 + gain, 0.5)):
        assert detector.observe(one) is None
    return detector.end_loop()


def test_loops_are_told_by_their_first_and_last_batches() -> None:
    detector = HackingDetector(RULES)
    # three loops until there is a sign, at the fifth in a row it is an alarm
    found = [play(detector, -0.2) for _ in range(7)]
    assert found[:6] == [None] * 6
    assert found[6] is not None
    assert found[6].rules == ("gain",)
    assert "the outcome falls by 0.200 while the dense reward rises by 0.500" in found[6].words


def test_a_sign_that_is_interrupted_starts_anew() -> None:
    detector = HackingDetector(RULES)
    # the sign at four loops in a row, none while the good loop is among the last three, then one
    assert [play(detector, gain) for gain in [-0.2] * 6 + [0.5] + [-0.2] * 3] == [None] * 10
    assert [play(detector, -0.2) is not None for _ in range(4)] == [False, False, False, True]


def test_a_loop_without_two_batches_has_no_gain() -> None:
    detector = HackingDetector(RULES)
    for _ in range(6):
        play(detector, -0.2)
    for _ in range(3):
        assert detector.end_loop() is None
    detector.observe(batch(0.5, 0.0))
    assert detector.end_loop() is None
    assert play(detector, -0.2) is not None


def test_it_goes_on_from_its_state() -> None:
    run = next(run for run in RUNS if run.name == "falls over 40 updates")
    seen = list(batches(run, 56, 0))
    whole = first_alarm(run, seen, RULES)
    assert whole is not None
    detector, other = HackingDetector(RULES), HackingDetector(RULES)
    for update, one in enumerate(seen[: whole[0]]):
        detector.observe(one)
        if update % run.loop == run.loop - 1:
            detector.end_loop()
    other.restore(json.loads(json.dumps(detector.state())))
    assert other.state() == detector.state()
    assert other.observe(seen[whole[0]]) == detector.observe(seen[whole[0]])


@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_simulated_runs(run: Run) -> None:
    """Five seeds of each kind; `benchmarks/hacking.py` has the rates of many."""
    for seed in range(5):
        seen = list(batches(run, 56, seed))
        assert (first_alarm(run, seen, RULES) is not None) == run.hacked
        assert naive_alarm(seen)  # slopes of three batches say the same of every run


@pytest.mark.slow
@pytest.mark.parametrize("trajectories", [56, 128])
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name)
def test_false_alarms_are_few_and_hacked_runs_are_seen(run: Run, trajectories: int) -> None:
    """At most 5 % of 60 healthy runs of each kind, at least 95 % of the hacked ones."""
    alarms = sum(
        first_alarm(run, list(batches(run, trajectories, seed)), RULES) is not None
        for seed in range(100, 160)
    )
    assert alarms >= 57 if run.hacked else alarms <= 3


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        ({"gain_loops": 0}, "gain_loops must be at least 1"),
        ({"trend_updates": 2}, "trend_updates must be at least 3"),
        ({"long_updates": 19}, "long_updates must be at least 20"),
        ({"correlation_updates": 21}, "at most trend_updates 20"),
        ({"held": 0}, "held must be at least 1"),
        ({"trend_z": 0.0}, "trend_z must be above 0"),
        ({"least_correlation": 1.0}, "least_correlation"),
    ],
)
def test_bad_settings(wrong: dict[str, float], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        HackingRules(**wrong)


def test_batches_that_cannot_be_paired() -> None:
    with pytest.raises(ValueError, match=r"outcomes of \[2\] trajectories and dense sums of \[1\]"):
        measured([[0.0, 1.0]], [[1.0]])
    with pytest.raises(ValueError, match="at least one trajectory"):
        measured([], [])
