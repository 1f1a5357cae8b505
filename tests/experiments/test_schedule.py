"""What is to be made, and what still fits."""

from dataclasses import replace
from typing import Any

import pytest
from pretended import from_weak, two_arms

from rewardswap.experiments.experiment import Arm, Experiment, Job
from rewardswap.experiments.schedule import expected_seconds, fits, to_make
from rewardswap.recipes import demo


def lasted(arm: str, seconds: float) -> dict[str, Any]:
    return {"arm": arm, "counters": {"seconds": seconds}}


def test_a_job_comes_behind_the_one_that_it_starts_from() -> None:
    experiment = from_weak()
    grown = experiment.jobs(["grown"])
    made = [job.key for job in to_make(experiment, grown, lambda job, checkpoint: False)]
    assert made == [("weak", 3), ("grown", 0), ("grown", 1)]


def test_only_what_is_missing_is_made() -> None:
    experiment = from_weak()
    there = {("weak", 3), ("grown", 0), ("apart", 0)}

    def without_checkpoints(job: Job, checkpoint: bool) -> bool:
        return job.key in there and not checkpoint

    jobs = experiment.jobs()
    made = to_make(experiment, jobs, without_checkpoints)
    assert [job.key for job in made] == [("weak", 4), ("weak", 3), ("grown", 1)]
    made = to_make(experiment, jobs, lambda job, checkpoint: job.key in there)
    assert [job.key for job in made] == [("weak", 4), ("grown", 1)]
    assert to_make(experiment, experiment.jobs(["apart"]), without_checkpoints) == []


def test_seconds_are_those_of_the_arm_then_those_of_its_kind() -> None:
    grpo, rspo = two_arms().arms
    quarter = Arm("quarter", replace(demo(), swap=replace(demo().swap, alpha=0.25)), (0,))
    experiment = Experiment("x", "", (grpo, rspo, quarter))
    results = [lasted("grpo", 1), lasted("rspo", 10), lasted("rspo", 30), lasted("rspo", 14)]
    assert expected_seconds(rspo, results, experiment) == 14
    assert expected_seconds(quarter, results, experiment) == 14
    assert expected_seconds(quarter, [*results, lasted("quarter", 5)], experiment) == 5
    assert expected_seconds(grpo, results[1:], experiment) is None
    assert expected_seconds(grpo, [lasted("gone", 3)], experiment) is None


@pytest.mark.parametrize(
    ("expected", "elapsed", "limit", "fit"),
    [
        (None, 1e9, None, True),
        (5.0, 95.0, 100.0, True),
        (5.1, 95.0, 100.0, False),
        (None, 99.0, 100.0, True),
        (None, 100.0, 100.0, False),
        (0.0, 100.0, 100.0, False),
    ],
)
def test_a_run_fits_that_ends_in_time(
    expected: float | None, elapsed: float, limit: float | None, fit: bool
) -> None:
    assert fits(expected, elapsed, limit) is fit
