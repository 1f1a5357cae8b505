"""Simulated runs, healthy and hacked, that a detector of hacking looks at; no model in them."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from rewardswap.loops.hacking import Alarm, HackingDetector
from rewardswap.loops.hacking_rules import HackingRules
from rewardswap.loops.hacking_statistics import DenseBatch, measured

UPDATES = 120
ONSET = 40
"""Update at which hacking starts."""
SIBLINGS = 8
WOBBLE = 0.02
"""Deviation of a policy's success from one update to the next."""
DRIFT = 0.02
"""How much the dense sum of every trajectory rises with each update; a trajectory's own noise has
deviation 1. It rises in healthy runs too."""

Success = Callable[[float], float]
"""Success of the policy by the number of updates."""


@dataclass(frozen=True)
class Run:
    """One kind of run: what success and dense reward do, and how batches scatter around it."""

    name: str
    success: Success
    """Success at an update, counted over both phases' batches where there are loops."""
    hacked: bool = False
    explored: Success = lambda update: 0.0
    """Change of success within one loop, from its first batch to its last."""
    fall: int = 40
    """Updates over which a hacked run's exploit is learned, which raises the dense sum by 1.5."""
    agreement: tuple[float, float] = (0.45, 0.45)
    """Correlation of dense sum and success inside a task, before and after the hacking."""
    tasks_differ: float = 1.0
    """Deviation of the tasks' difficulty, in logits; 0: trajectories are independent."""
    loop: int = 4
    """Batches of phase 1 and harvest of one loop."""


def falling(updates: int) -> Success:
    """Success .5, from the onset on down to .1 over so many updates."""
    return lambda update: 0.5 - 0.4 * min(1.0, max(0.0, (update - ONSET) / updates))


RUNS = [
    Run("rising .2 to .7", lambda update: 0.2 + 0.5 * update / UPDATES),
    Run("rising, independent", lambda update: 0.2 + 0.5 * update / UPDATES, tasks_differ=0.0),
    Run("flat at .5", lambda update: 0.5),
    Run("flat at .5, independent", lambda update: 0.5, tasks_differ=0.0),
    Run("flat at .2", lambda update: 0.2),
    Run("flat at .5, weak reward", lambda update: 0.5, agreement=(0.25, 0.25)),
    Run(
        "explorer better by .1", lambda update: 0.3 + 0.3 * update / UPDATES, explored=lambda _: 0.1
    ),
    Run("falls over 20 updates", falling(20), True, fall=20),
    Run("falls over 40 updates", falling(40), True),
    Run("falls over 60 updates", falling(60), True, fall=60),
    Run("falls over 60, independent", falling(60), True, fall=60, tasks_differ=0.0),
    Run("falls over 60, rewards part", falling(60), True, fall=60, agreement=(0.45, -0.1)),
    Run(
        "explorer worse by .3 in each loop",
        lambda update: 0.5,
        True,
        explored=lambda update: -0.3 * min(1.0, max(0.0, (update - ONSET) / 20)),
    ),
]


def batches(run: Run, trajectories: int, seed: int) -> Iterator[DenseBatch]:
    """The batches of one run, in order."""
    stream = np.random.default_rng([seed, trajectories])
    tasks = trajectories // SIBLINGS
    for update in range(UPDATES):
        within = (update % run.loop) / (run.loop - 1)
        hacked = min(1.0, max(0.0, (update - ONSET) / run.fall)) if run.hacked else 0.0
        success = run.success(update) + within * run.explored(update)
        success = float(np.clip(success + stream.normal(0, WOBBLE), 0.02, 0.98))
        # logits that scatter are wider, so that the mean over tasks stays about `success`
        logit = np.log(success / (1 - success)) * np.sqrt(1 + 0.3 * run.tasks_differ**2)
        rates = 1 / (1 + np.exp(-logit - stream.normal(0, run.tasks_differ, tasks)))
        won = (stream.random((tasks, SIBLINGS)) < rates[:, None]).astype(float)
        agreement = run.agreement[0] + hacked * (run.agreement[1] - run.agreement[0])
        weight = 2 * agreement / np.sqrt(1 - agreement**2)  # its correlation, at success 1/2
        level = DRIFT * update + 1.5 * hacked + within * (0.1 + 0.5 * hacked)
        dense = level + weight * won + stream.normal(0, 1, won.shape)
        yield measured(won.tolist(), dense.tolist())


def first_alarm(
    run: Run, seen: Sequence[DenseBatch], rules: HackingRules
) -> tuple[int, Alarm] | None:
    """The first alarm on a run's batches, and at which; those before the onset do not count."""
    detector = HackingDetector(rules)
    for update, batch in enumerate(seen):
        alarm = detector.observe(batch)
        if update % run.loop == run.loop - 1:
            alarm = detector.end_loop() or alarm
        if alarm is not None and not (run.hacked and update < ONSET):
            return update, alarm
    return None


def naive_alarm(seen: Sequence[DenseBatch]) -> bool:
    """Whether the slopes of some three batches in a row have the signs of hacking."""
    return any(
        last.outcome < first.outcome and last.dense > first.dense
        for first, last in zip(seen, seen[2:], strict=False)
    )
