"""Episodes divided among ranks: each plays whole groups, and all know what was played."""

from collections import Counter
from collections.abc import Callable, Sequence

from rewardswap.errors import StopAskedError
from rewardswap.ranks import Ranks, share
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.types import EpisodeFailure, Trajectory

Play = Callable[[Sequence[EpisodeRequest], int, int, float | None], Played]
"""Plays episodes: (requests, seed, policy version, temperature or the run's own)."""
Begin = Callable[[Sequence[EpisodeRequest], int, int], Callable[[], Played]]
"""Begins to play episodes in the background: (requests, seed, policy version). What it gives waits
for their end; every rank calls it."""


def play_shared(
    play: Play,
    ranks: Ranks,
    requests: Sequence[EpisodeRequest],
    seed: int,
    version: int,
    temperature: float | None,
) -> Played:
    """Play the groups that are this rank's, and gather those of the others.

    Every draw belongs to its episode, so who plays it changes nothing beyond rounding. Raises
    StopAskedError on every rank where one of them was asked to stop.
    """
    if ranks.size == 1:
        return play(requests, seed, version, temperature)
    own = own_requests(requests, ranks)
    asked: StopAskedError | None = None
    played: Played | None = None
    try:
        played = play(own, seed, version, temperature)
    except StopAskedError as error:
        asked = error
    parts = ranks.gather(played)
    if asked is not None:
        raise asked
    found = [part for part in parts if part is not None]
    if len(found) < len(parts):
        raise StopAskedError("another rank was asked to stop")
    return _joined(requests, found)


def own_requests(requests: Sequence[EpisodeRequest], ranks: Ranks) -> Sequence[EpisodeRequest]:
    """This rank's requests: those of whole groups."""
    tasks = list(dict.fromkeys(request.task.id for request in requests))
    mine = set(share(tasks, ranks))
    return [request for request in requests if request.task.id in mine]


def _joined(requests: Sequence[EpisodeRequest], parts: Sequence[Played]) -> Played:
    """All episodes in the order in which they were asked for."""
    place = {(request.task.id, request.index): n for n, request in enumerate(requests)}

    def order(episode: Trajectory | EpisodeFailure) -> int:
        return place[episode.task.id, episode.index]

    counters: Counter[str] = Counter()
    for part in parts:
        counters.update(part.counters)
    return Played(
        trajectories=sorted((t for part in parts for t in part.trajectories), key=order),
        failures=sorted((f for part in parts for f in part.failures), key=order),
        counters=counters,
        truncating=any(part.truncating for part in parts),
    )
