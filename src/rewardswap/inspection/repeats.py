"""Whether task and actions decide everything: the same episodes again, in other company."""

import random
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from rewardswap.adapters.seeded import SeededWorld
from rewardswap.envs.base import Environment, World
from rewardswap.inspection.findings import Finding
from rewardswap.inspection.walks import Walk, again

SEED_WAY_OUT = (
    "Draw from random.Random(seed) that reset makes, not from a module's own stream, the clock, or "
    "the order of a set"
)


def repeat_findings(world: World, walks: Sequence[Walk]) -> Iterator[Finding]:
    """Episodes that differ when they are played again: alone, after others, beside others."""
    whole = [walk for walk in walks if not walk.trouble]
    if not whole:
        return
    alone = _differing(whole, lambda walk: again(world.make(), walk))
    if alone:
        yield Finding("not deterministic", f"played again, {alone}", SEED_WAY_OUT)
        return  # whatever comes after others differs too
    used = world.make()
    later = _differing(whole, lambda walk: _after_a_part(used, whole[0], walk))
    if later:
        yield Finding(
            "leaks between resets",
            f"in an environment that has played before, {later}",
            "Have reset set every attribute that step reads",
        )
    beside = _differing(whole, lambda walk: _beside(world, whole[0], walk))
    if beside:
        yield Finding(
            "shares state",
            f"while another environment plays too, {beside}",
            "Keep what changes on self, not on the class or the module",
        )
    yield from _stream(world, whole[0])
    yield from _closing(used)
    if len(whole) == len(walks):  # of what is left when others break nothing can be said
        yield from _same(world, whole)


WITNESS = 1_987_654_321
"""A seed that no environment is likely to take (ours)."""


def _stream(world: World, walk: Walk) -> Iterator[Finding]:
    """Whether an episode moves a random stream that the whole program shares."""
    live: Any = world.maker() if isinstance(world, SeededWorld) else world.make()
    kept = random.getstate(), np.random.get_state()
    random.seed(WITNESS)  # elsewhere than where an environment that seeds them left them before
    np.random.seed(WITNESS)
    before = _streams()
    if isinstance(world, SeededWorld):
        live.reset(seed=world.seed(walk.task))
    else:
        live.reset(walk.task)
    for action in walk.actions:
        live.step(action)
    moved = _streams() != before
    random.setstate(kept[0])
    np.random.set_state(kept[1])
    if moved:
        yield Finding(
            "random stream",
            "it draws from, or seeds, the random stream that the whole program shares",
            "Make a random.Random or numpy Generator of its own in reset",
            fault=False,
        )


def _streams() -> tuple[object, ...]:
    """The state of the random streams that a whole program shares."""
    state: Any = np.random.get_state(legacy=False)
    return random.getstate(), state["state"]["key"].tobytes(), state["state"]["pos"]


def _differing(walks: Sequence[Walk], play: Callable[[Walk], Walk]) -> str:
    """Where the first of the episodes differs, or nothing."""
    for walk in walks:
        if said := difference(walk, play(walk)):
            return said
    return ""


def difference(one: Walk, other: Walk) -> str:
    """What first differs between two episodes of the same actions, or nothing."""
    where = f"task {one.task.id!r} differs"
    if other.trouble:
        return f"{where}: {other.trouble}"
    if one.opening != other.opening:
        return f"{where} at reset: {_of(one, 0)} and {_of(other, 0)}"
    for turn, (left, right) in enumerate(zip(one.steps, other.steps, strict=False), 1):
        if left != right:
            return f"{where} in turn {turn}: {_of(one, turn)} and {_of(other, turn)}"
    return ""


def _of(walk: Walk, turn: int) -> str:
    """What was seen in a turn, 0 for reset, short."""
    seen = walk.observations[turn]
    text = seen.text if len(seen.text) <= 60 else f"{seen.text[:57]}..."
    step = f", outcome {walk.steps[turn - 1].outcome:g}" if turn else ""
    return f"{text!r} (progress {seen.progress:g}{step})"


def _after_a_part(environment: Environment, first: Walk, walk: Walk) -> Walk:
    """The walk in an environment that was left in the middle of another episode."""
    part = Walk(first.task)
    if part.begin(environment) and first.actions:
        part.take(environment, first.actions[0])
    return again(environment, walk)


def _beside(world: World, first: Walk, walk: Walk) -> Walk:
    """The walk while another environment plays the first one, a turn of each in turn."""
    mine, other = world.make(), world.make()
    copy, company = Walk(walk.task), Walk(first.task)
    going, beside = copy.begin(mine), company.begin(other)
    for number, action in enumerate(walk.actions):
        if beside and number < len(first.actions):
            beside = company.take(other, first.actions[number])
        going = going and copy.take(mine, action)
    return copy


def _closing(environment: Environment) -> Iterator[Finding]:
    try:
        environment.close()
    except Exception as error:  # it may be anybody's code
        yield Finding(
            "close",
            f"close() raised {type(error).__name__}: {error}",
            "Let it give back what it holds, and do nothing where it holds nothing",
        )


def _same(world: World, walks: Sequence[Walk]) -> Iterator[Finding]:
    """Whether all tasks are one: none answers the actions of another's episode otherwise."""
    environment = world.make()
    for walk in walks:
        for other in walks:
            moved = Walk(other.task, actions=walk.actions)
            if difference(walk, again(environment, moved)):
                return
    if len(walks) > 1:
        yield Finding(
            "ignores the seed",
            f"{len(walks)} tasks begin with the same words and answer the same actions alike",
            "Have reset draw the task from the seed that it is given",
        )
