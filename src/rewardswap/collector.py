"""Playing episodes for a phase: which tasks, with which random numbers, and what went wrong."""

import time
from collections import Counter
from collections.abc import Sequence
from typing import Literal

from rewardswap.accounting import Accounting
from rewardswap.collection import Begun, Collected, episode_requests, grouped
from rewardswap.errors import RunStoppedError, TooManyFailuresError
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.rollout.shared import Begin as Begin
from rewardswap.rollout.shared import Play as Play
from rewardswap.task_stream import TaskStream, derived_seed
from rewardswap.types import EpisodeFailure, Task

Phase = Literal["explore", "harvest", "learn"]


class Collector:
    """Draws tasks and has them played; explorer and agent have streams of their own."""

    def __init__(
        self,
        play: Play,
        tasks: Sequence[Task],
        seed: int,
        accounting: Accounting,
        failure_limit: float,
        begin: Begin | None = None,
    ) -> None:
        self.play = play
        self.start = begin
        self.seed = seed
        self.accounting = accounting
        self.failure_limit = failure_limit
        self.streams = {
            role: TaskStream(tasks, derived_seed(seed, role)) for role in ("agent", "explorer")
        }

    def collect(
        self,
        phase: Phase,
        tasks: int,
        group_size: int,
        *,
        version: int,
        loop: int,
        temperature: float | None = None,
        before: Counter[str] | None = None,
    ) -> Collected:
        """Play `group_size` episodes of each of the next `tasks` tasks of the phase's role.

        `before` says how many episodes of each task the same update has had already. Raises
        RunStoppedError where no group is left, TooManyFailuresError where too many episodes broke,
        and ValueError for samplers whose log-probs are not the policy's.
        """
        started = time.monotonic()
        requests, seed = self._drawn(phase, tasks, group_size, loop, before)
        played = self.play(requests, seed, version, temperature)
        return self._collected(phase, requests, group_size, played, started, version, temperature)

    def begin(
        self,
        phase: Phase,
        tasks: int,
        group_size: int,
        *,
        version: int,
        loop: int,
        before: Counter[str],
    ) -> Begun:
        """Begin a collection in the background; its seconds will be those of the waiting for it.

        `before` says how many episodes of each task this version has had already.
        """
        if self.start is None:
            raise ValueError("nothing here plays in the background; give `begin`")
        requests, seed = self._drawn(phase, tasks, group_size, loop, before)
        take = self.start(requests, seed, version)

        def taken() -> Collected:
            started = time.monotonic()
            return self._collected(phase, requests, group_size, take(), started, version, None)

        return Begun(Counter(request.task.id for request in requests), taken)

    def _drawn(
        self, phase: Phase, tasks: int, group_size: int, loop: int, before: Counter[str] | None
    ) -> tuple[list[EpisodeRequest], int]:
        """Episodes of the next tasks of the phase's role, and its seed."""
        role = "agent" if phase == "learn" else "explorer"
        drawn = self.streams[role].draw(tasks)
        seed = derived_seed(self.seed, role, loop if role == "explorer" else 0)
        return episode_requests(drawn, group_size, before), seed

    def _collected(
        self,
        phase: Phase,
        requests: Sequence[EpisodeRequest],
        group_size: int,
        played: Played,
        started: float,
        version: int,
        temperature: float | None,
    ) -> Collected:
        """What was played, as groups, counted."""
        tasks = len(requests) // group_size
        if played.truncating:
            raise ValueError(
                "these episodes were sampled with top_p, top_k or min_p: their log-probs are not "
                "the policy's, and its ratio would not be 1 on policy; train without them"
            )
        self._check_failures(played.failures, len(requests))
        groups = grouped(requests, group_size, played.trajectories)
        self.accounting.add(
            phase,
            environment_steps=int(played.counters["environment_steps"]),
            generated_tokens=int(played.counters["generated_tokens"]),
        )
        self.accounting.total.update(
            failed_episodes=len(played.failures), dropped_groups=tasks - len(groups)
        )
        if not groups:
            raise RunStoppedError(f"none of {tasks} groups kept two of its {group_size} episodes")
        counters = {name: float(value) for name, value in played.counters.items()}
        counters["seconds"] = time.monotonic() - started
        asked = Counter(request.task.id for request in requests)
        return Collected(groups, counters, group_size, asked, temperature, version)

    def _check_failures(self, failures: Sequence[EpisodeFailure], episodes: int) -> None:
        if failures and len(failures) > self.failure_limit * episodes:
            causes = Counter(f"{failure.owner}: {failure.cause}" for failure in failures)
            cause, _ = causes.most_common(1)[0]
            raise TooManyFailuresError(
                f"{len(failures)} of {episodes} episodes failed, most of them by {cause}; "
                "repair that, or set rollout.failure_limit higher"
            )
