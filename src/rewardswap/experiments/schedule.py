"""What runs next: what is still to be made, how long it takes, whether it ends in time."""

from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

from rewardswap.experiments.experiment import Arm, Experiment, Job


def to_make(
    experiment: Experiment, jobs: Sequence[Job], at_hand: Callable[[Job, bool], bool]
) -> list[Job]:
    """The jobs that are not at hand, each behind the one whose checkpoint it starts from.

    `at_hand(job, checkpoint)` says whether a job has its result, and its checkpoint where that is
    asked for. A needed job is in the list whether or not it was asked for.
    """
    planned: list[Job] = []

    def add(job: Job) -> None:
        if job in planned:
            return
        needed = experiment.needed(job)
        if needed is not None and not at_hand(needed, True):
            add(needed)
        planned.append(job)

    for job in jobs:
        if not at_hand(job, False):
            add(job)
    return planned


def expected_seconds(
    arm: Arm, results: Sequence[Mapping[str, Any]], experiment: Experiment
) -> float | None:
    """Median seconds of the arm's finished runs, else of those of arms of its kind; none: unknown.

    Arms are of one kind with the same loop, method, environment, batch and budget.
    """
    arms = {other.name: other for other in experiment.arms}
    known = [result for result in results if result["arm"] in arms]
    own = [result for result in known if result["arm"] == arm.name]
    alike = [result for result in known if _kind(arms[result["arm"]]) == _kind(arm)]
    seconds = [float(result["counters"]["seconds"]) for result in own or alike]
    return median(seconds) if seconds else None


def fits(expected: float | None, elapsed: float, limit: float | None) -> bool:
    """Whether a run that starts after `elapsed` seconds ends within `limit` seconds.

    One of unknown length fits as long as the limit is not reached.
    """
    return limit is None or (elapsed < limit and elapsed + (expected or 0) <= limit)


def _kind(arm: Arm) -> tuple[Any, ...]:
    run = arm.run
    return run.loop, type(run.method), run.env, run.batch, run.budget, run.budget_unit
