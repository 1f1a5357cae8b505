"""Which whole episodes the page shows, chosen by rule and not by taste."""

from dataclasses import dataclass
from itertools import zip_longest

from rewardswap.report.records import Json, RunRecord, number, process_reward_sum

OUTCOMES = {
    (False, True): "learned",
    (False, False): "still failing",
    (True, False): "lost",
    (True, True): "kept",
}
SHOWN = {"learned": 2, "still failing": 1, "lost": 1}
"""How many pairs of each kind are shown."""

STOPS = {
    "done": "ended by the environment",
    "turn_limit": "out of turns",
    "token_limit": "action cut at its token cap",
    "context_full": "context full",
    "time_limit": "out of time",
}


@dataclass(frozen=True)
class ShownTurn:
    """One turn as it is read on the page."""

    observation: str
    action: str
    marks: list[str]
    """What was wrong with the action, in words."""
    reward: float | None
    """The environment's dense reward, None where it is zero."""
    process_reward: float | None


@dataclass(frozen=True)
class ShownEpisode:
    """One trajectory as it is read on the page."""

    when: str
    success: bool
    stop: str
    turns: list[ShownTurn]
    final_observation: str
    process_reward: float | None
    """Sum over the turns."""


@dataclass(frozen=True)
class Pair:
    """A task and its episodes; two if it was played before and after."""

    kind: str
    family: str
    task: str
    episodes: list[ShownEpisode]


def shown_episode(trajectory: Json, when: str) -> ShownEpisode:
    """A trajectory of a file, made ready for the page."""
    rewards = trajectory.get("process_reward") or []
    turns = trajectory["turns"]
    stop = str(trajectory.get("stop", ""))
    return ShownEpisode(
        when=when,
        success=bool(trajectory["success"]),
        stop=STOPS.get(stop, stop),
        turns=[
            _shown_turn(turn, reward) for turn, reward in zip_longest(turns, rewards[: len(turns)])
        ],
        final_observation=str(trajectory.get("final_observation", "")),
        process_reward=process_reward_sum(trajectory),
    )


def _shown_turn(turn: Json, process_reward: object) -> ShownTurn:
    marks = [] if turn.get("valid", True) else ["not admitted"]
    if turn.get("truncated", False):
        marks.append("cut off")
    return ShownTurn(
        observation=str(turn.get("observation", "")),
        action=str(turn.get("action", "")),
        marks=marks,
        reward=number(turn.get("reward")) or None,
        process_reward=number(process_reward),
    )


def _by_task(trajectories: list[Json]) -> dict[tuple[str, int], Json]:
    return {(str(played["task"]), int(played["index"])): played for played in trajectories}


def pair_counts(record: RunRecord) -> dict[str, int]:
    """How the tasks recorded both before and after changed."""
    before, after = _by_task(record.trajectories_before), _by_task(record.trajectories_after)
    counts = dict.fromkeys(OUTCOMES.values(), 0)
    for task in before.keys() & after.keys():
        counts[OUTCOMES[bool(before[task]["success"]), bool(after[task]["success"])]] += 1
    return counts


def choose_pairs(record: RunRecord) -> list[Pair]:
    """The first tasks by id of each kind in `SHOWN`, of different families where possible.

    Where no task was recorded both before and after, the first two of each file.
    """
    before, after = _by_task(record.trajectories_before), _by_task(record.trajectories_after)
    common = sorted(before.keys() & after.keys())
    if not common:
        return [
            Pair("not paired", str(played["family"]), task[0], [shown_episode(played, when)])
            for when, tasks in (("before", before), ("after", after))
            for task, played in sorted(tasks.items())[:2]
        ]
    pairs = []
    for kind, count in SHOWN.items():
        tasks = [
            task
            for task in common
            if OUTCOMES[bool(before[task]["success"]), bool(after[task]["success"])] == kind
        ]
        for task in _spread(tasks, before, count):
            episodes = [shown_episode(before[task], "before"), shown_episode(after[task], "after")]
            pairs.append(Pair(kind, str(before[task]["family"]), task[0], episodes))
    return pairs


def _spread(
    tasks: list[tuple[str, int]], played: dict[tuple[str, int], Json], count: int
) -> list[tuple[str, int]]:
    """The first `count` tasks, those of families not yet taken before others."""
    first_of_family: dict[str, tuple[str, int]] = {}
    for task in tasks:
        first_of_family.setdefault(str(played[task]["family"]), task)
    spread = list(first_of_family.values())
    return [*spread, *(task for task in tasks if task not in spread)][:count]
