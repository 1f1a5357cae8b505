import pytest
from made_results import made

from rewardswap.comparison.arms import Arm
from rewardswap.comparison.curves import area, common_steps, curve_of, efficiency, points


def arm(*runs: dict) -> Arm:
    return Arm("arm", None, runs)


def test_places_that_are_the_same_are_averaged_and_gaps_left_out() -> None:
    run = made("arm", 0)
    run["curve"]["learn"] = {"update": [2, 1, 1, 3], "success": [0.5, 0.1, 0.3, None]}
    assert points(run, "learn", "success", "update") == [(1.0, pytest.approx(0.2)), (2.0, 0.5)]
    assert points(run, "learn", "dense", "update") == []
    assert points(run, "unheard", "success", "update") == []


def test_a_curve_spans_what_every_seed_has_reached() -> None:
    # seed 0 has .1, .3, .5 at 100, 200, 300 steps, seed 1 at 200, 400, 600
    found = curve_of(
        arm(made("arm", 0), made("arm", 1, steps=200)), "learn", "success", "environment_steps"
    )
    assert found is not None
    assert (found.x[0], found.x[-1], found.seeds) == (200, 300, 2)
    # at 200: .3 and .1, s/√2 = .1, t(.975, 1) = 12.7062; at 300: .5 and .2
    assert (found.mean[0], found.mean[-1]) == (0.2, 0.35)
    assert (found.low[0], found.high[0]) == pytest.approx((-1.0706, 1.4706), abs=1e-4)


def test_one_seed_has_a_curve_without_interval() -> None:
    found = curve_of(arm(made("arm", 0)), "learn", "success", "update")
    assert found is not None
    assert (found.mean[0], found.mean[-1], found.low, found.high) == (0.1, 0.5, (), ())


def test_seeds_that_never_meet_and_single_points_have_no_curve() -> None:
    far = [made("arm", 0, steps=1), made("arm", 1, steps=1000)]
    assert curve_of(arm(*far), "learn", "success", "environment_steps") is None
    assert curve_of(arm(made("arm", 0, curve=[0.5])), "learn", "success", "update") is None


def test_the_area_holds_the_start_policys_success_up_to_the_first_update() -> None:
    # .1 up to 100: 10; to .3 at 200: 20; to .4 at 250: 17.5; in all 47.5 of 250
    line = [(100.0, 0.7), (200.0, 0.3), (300.0, 0.5)]  # .7: few rollouts of the start policy
    assert area(line, 250.0, 0.1) == pytest.approx(0.19)
    assert area(line, 50.0, 0.1) == pytest.approx(0.1)


def test_arms_are_measured_at_the_steps_that_all_have_reached() -> None:
    short, long = arm(made("arm", 0), made("arm", 1)), arm(made("arm", 0, steps=200))
    steps = common_steps([short, long])
    assert steps == 300
    found = efficiency(long, 300.0)
    # .25 before training up to 200, then to .275 at 300: 50 + 26.25 of 300
    assert found.area.value == pytest.approx(76.25 / 300)
    assert found.at_steps.value == pytest.approx(0.2)
    assert found.areas == {0: found.area.value}


def test_a_run_without_a_curve_leaves_no_common_steps() -> None:
    bare = made("arm", 0)
    bare["curve"]["learn"] = {}
    assert common_steps([arm(bare), arm(made("arm", 1))]) is None
