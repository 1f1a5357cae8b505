"""Changed trajectories, in tokens that a rollout could have had.

An exchange is an action with what the world said to it. In a merged row the tokens of an exchange
stand side by side, so exchanges can be left out, told twice, or put in another order, and the
header of every action and the end token of every cut one are where a rollout has them.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from rewardswap.types import IntArray, Trajectory, Turn

PADDING = 4
"""How often a padded trajectory takes its idle action again (ours)."""


@dataclass(frozen=True, slots=True)
class _Exchange:
    turn: Turn
    answer: str
    answer_ids: IntArray


Change = Callable[[Sequence[_Exchange], np.random.Generator], Sequence[_Exchange] | None]


def changed(
    trajectory: Trajectory, change: Change, generator: np.random.Generator
) -> Trajectory | None:
    """The trajectory after a change; None where it cannot be made.

    That is so for too few turns, for turns that start rows of their own (their prompts would have
    to be worded anew), and for an end that was never read. Task, outcome and success stay those of
    the original, which is what a change of R_hat is compared by.
    """
    merged = all(turn.extends for turn in trajectory.turns[1:])
    if not merged or not len(trajectory.final_context_ids):
        return None
    exchanges = change(_exchanges(trajectory), generator)
    return None if exchanges is None else _told(trajectory, exchanges)


def shuffled(
    exchanges: Sequence[_Exchange], generator: np.random.Generator
) -> Sequence[_Exchange] | None:
    """Another order of all exchanges but the last, which ends the episode as it did."""
    as_it_was = list(range(len(exchanges) - 1))
    if len(as_it_was) < 2:
        return None
    order = as_it_was
    while order == as_it_was:
        order = generator.permutation(len(as_it_was)).tolist()
    return [*(exchanges[n] for n in order), exchanges[-1]]


def repeated(
    exchanges: Sequence[_Exchange], generator: np.random.Generator
) -> Sequence[_Exchange] | None:
    """One exchange told twice in a row, any but the last."""
    if len(exchanges) < 2:
        return None
    place = int(generator.integers(len(exchanges) - 1))
    return _with_copies(exchanges, place, 1)


def halved(
    exchanges: Sequence[_Exchange], generator: np.random.Generator
) -> Sequence[_Exchange] | None:
    """The first half of the exchanges, rounded down."""
    return exchanges[: len(exchanges) // 2] or None


def padded_idly(
    exchanges: Sequence[_Exchange], generator: np.random.Generator
) -> Sequence[_Exchange] | None:
    """An idle action of the trajectory's own taken PADDING times more, where it was taken.

    Idle: the state after it is the state before it. The first idle action that was not admitted is
    taken, else the first idle one. The world would have given the same answer again.
    """
    following = [exchange.turn.state_key for exchange in exchanges[1:]]
    idle = [n for n, key in enumerate(following) if exchanges[n].turn.state_key == key]
    if not idle:
        return None
    refused = [n for n in idle if not exchanges[n].turn.valid]
    return _with_copies(exchanges, (refused or idle)[0], PADDING)


CHANGES: dict[str, Change] = {
    "shuffled": shuffled,
    "repeated": repeated,
    "halved": halved,
    "padded": padded_idly,
}
"""The changes by name."""


def _with_copies(exchanges: Sequence[_Exchange], place: int, count: int) -> list[_Exchange]:
    """With copies behind the exchange at `place`; the world's own reward is not given again."""
    copy = replace(exchanges[place], turn=replace(exchanges[place].turn, reward=0.0))
    return [*exchanges[: place + 1], *[copy] * count, *exchanges[place + 1 :]]


def _exchanges(trajectory: Trajectory) -> list[_Exchange]:
    behind = [(turn.observation, turn.context_ids) for turn in trajectory.turns[1:]]
    behind.append((trajectory.final_observation, trajectory.final_context_ids))
    return [_Exchange(turn, *answer) for turn, answer in zip(trajectory.turns, behind, strict=True)]


def _told(trajectory: Trajectory, exchanges: Sequence[_Exchange]) -> Trajectory:
    first = trajectory.turns[0]
    observation, context_ids = first.observation, first.context_ids
    turns: list[Turn] = []
    for exchange in exchanges:
        turns.append(
            replace(
                exchange.turn,
                observation=observation,
                context_ids=context_ids,
                extends=bool(turns),
            )
        )
        observation, context_ids = exchange.answer, exchange.answer_ids
    return replace(
        trajectory,
        turns=tuple(turns),
        final_observation=observation,
        final_context_ids=context_ids,
    )
