"""Play an environment at random and say what is wrong with it."""

import pickle
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from rewardswap.adapters.named import maker_of, world_of
from rewardswap.adapters.seeded import SeededWorld, label
from rewardswap.checks import at_least
from rewardswap.envs.base import World
from rewardswap.inspection.answers import answer_findings, raw_findings
from rewardswap.inspection.findings import Finding, Findings
from rewardswap.inspection.repeats import repeat_findings
from rewardswap.inspection.tasks import task_findings
from rewardswap.inspection.walks import Walk, wander


def check_environment(
    subject: Callable[[], Any] | World | str,
    *,
    tasks: int = 8,
    turns: int | None = None,
    actions: Sequence[str] = (),
    seed: int = 0,
    splits: Sequence[str] = ("train", "held_out"),
) -> Findings:
    """What is wrong with an environment, as sentences with the way out (ours).

    `subject` is what makes a Gymnasium-style environment, or a `World`, or MODULE:NAME of either.
    The first `tasks` tasks of the first of `splits` are played, at most `turns` turns each (none:
    the turn limit), by random admissible actions or by `actions`. Nothing stops a step that never
    returns. Raises ValueError for numbers below 1, and for a name that leads nowhere.
    """
    at_least(1, tasks=tasks, turns=1 if turns is None else turns)
    name = subject if isinstance(subject, str) else _name(subject)
    make = maker_of("environment", subject) if isinstance(subject, str) else subject
    try:
        world = make if isinstance(make, World) and not isinstance(make, type) else world_of(make)
    except Exception as error:  # it may be anybody's code
        return Findings(name, (_unmade(error),))
    found = list(task_findings(world, splits))
    try:
        chosen = list(world.tasks(splits[0]))[:tasks]
    except ValueError:  # said above
        return Findings(name, tuple(found))
    most = world.turn_limit if turns is None else turns
    walks = [wander(world.make(), task, most, seed, actions) for task in chosen]
    found += [*_troubles(walks), *answer_findings(world, walks), *repeat_findings(world, walks)]
    if isinstance(world, SeededWorld):
        found += raw_findings(world, walks)
    found += _unpicklable(subject)
    turns_played = sum(len(walk.steps) for walk in walks)
    won = sum(any(step.success is True for step in walk.steps[-1:]) for walk in walks)
    return Findings(name, tuple(found), len(walks), turns_played, won)


def _name(subject: Callable[[], Any] | World) -> str:
    if isinstance(subject, World) and not isinstance(subject, type):
        return type(subject).__name__
    return label(subject)


def _unmade(error: Exception) -> Finding:
    return Finding(
        "maker",
        f"there is no environment: {error}",
        "Give a class or a function that makes one when it is called without arguments",
    )


def _troubles(walks: Sequence[Walk]) -> Iterator[Finding]:
    """The first thing that was raised, and how often."""
    broken = [walk for walk in walks if walk.trouble]
    if broken:
        yield Finding(
            "raises",
            f"{broken[0].trouble} ({len(broken)} of {len(walks)} episodes broke)",
            "Repair it: an episode in which this happens is counted as failed and teaches nothing",
        )


def _unpicklable(subject: object) -> Iterator[Finding]:
    """Worker processes get what makes the environment as a pickle."""
    try:
        pickle.dumps(subject)
    except Exception as error:  # pickle raises whatever it meets
        yield Finding(
            "no workers",
            f"what makes it cannot be sent to a worker process ({type(error).__name__}: {error})",
            "Define it by `class` or `def` at the top of a module, with functools.partial for "
            "arguments; without rollout.workers it does no harm",
            fault=False,
        )
