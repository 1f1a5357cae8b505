"""Scripted walks through the corridor, in this process or in workers, and all that came of them."""

import hashlib
from collections.abc import Sequence
from functools import partial
from typing import Any

from chatting import letter_tokenizer
from rewardswap.envs.corridor import CorridorWorld
from rewardswap.envs.faulty import Fault, FaultyWorld
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.environments import Environments
from rewardswap.rollout.episodes import EpisodeRequest, Played, play
from rewardswap.rollout.scripted import ScriptedEngine
from rewardswap.rollout.workers import WorkerEnvironments
from rewardswap.types import Trajectory

TOKENIZER = letter_tokenizer()
END = TOKENIZER.eos_token_id
WORLD = CorridorWorld()
TASKS = WORLD.tasks("train")
REQUESTS = [EpisodeRequest(task, n) for task in TASKS for n in range(2)]


def wanders(session: str, turn: int) -> list[int]:
    """East, west or a word that the corridor does not know, drawn by episode and turn."""
    drawn = hashlib.sha256(f"{session.split('-')[1]}/{turn}".encode()).digest()[0]
    return [*TOKENIZER.encode(("east", "west", "jump")[drawn % 3]), END]


def walked(
    environments: Environments | None = None,
    faults: Sequence[Fault] = (),
    *,
    at_once: int | None = None,
    **changes: Any,
) -> Played:
    """Every request played; `faults` are those of this process."""
    engine = ScriptedEngine(wanders, [END], at_once=at_once)
    settings: dict[str, Any] = {"seed": 0, "policy_version": 0, "turn_limit": 6, **changes}
    return play(
        settings.pop("requests", REQUESTS),
        FaultyWorld(WORLD, faults),
        engine,
        ChatContext(TOKENIZER, ""),
        sampling=SamplingParams(max_tokens=8),
        environments=environments,
        **settings,
    )


def workers(
    count: int, faults: Sequence[Fault] = (), recipe: Any = None, **settings: Any
) -> WorkerEnvironments:
    """Worker processes of the corridor, started again without a pause."""
    recipe = recipe or partial(FaultyWorld, WORLD, tuple(faults))
    return WorkerEnvironments(recipe, count, **{"restart_seconds": 0.0, **settings})


def whole(trajectory: Trajectory) -> Any:
    """Everything that a trajectory holds, to compare."""
    turns = [
        [
            turn.observation,
            turn.context_ids.tolist(),
            turn.extends,
            turn.action_ids.tolist(),
            turn.logprobs.tolist(),
            turn.action,
            turn.valid,
            turn.truncated,
            turn.reward,
            turn.state_key,
        ]
        for turn in trajectory.turns
    ]
    return [
        trajectory.task,
        trajectory.index,
        turns,
        trajectory.final_observation,
        trajectory.final_context_ids.tolist(),
        trajectory.outcome,
        trajectory.success,
        trajectory.stop,
        trajectory.task_score,
    ]


def wholes(played: Played) -> list[Any]:
    """All trajectories, to compare."""
    return [whole(trajectory) for trajectory in played.trajectories]


def same(one: Played, other: Played) -> bool:
    """Whether trajectories, failures and counters are equal to the bit."""
    return (
        wholes(one) == wholes(other)
        and one.failures == other.failures
        and one.counters == other.counters
    )
