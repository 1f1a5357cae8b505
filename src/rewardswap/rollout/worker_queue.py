"""One worker process and its episodes: asked one thing at a time, timed, and started again."""

import hashlib
import json
import time
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

from rewardswap.rollout.environments import Places
from rewardswap.rollout.host import Broken
from rewardswap.rollout.worker import answer_of, broken_of
from rewardswap.rollout.worker_process import Worker, WorkerProcess

START_SECONDS = 600.0
"""Most seconds in which a worker imports what it needs and makes its world."""
CLOSE_SECONDS = 5.0
"""Most seconds in which a worker closes its environments; then it is killed."""
MOST_PAUSE = 60.0
"""Longest pause before a worker is started again, in seconds."""


@dataclass(frozen=True)
class Patience:
    """How long a worker is waited for, and how often it is started again."""

    step_seconds: float | None
    """Most seconds of one reset or step; none: any."""
    restart_seconds: float
    """Pause before a worker is started again; doubled with each time without an answer between."""
    restarts: int
    """Most times in a row without an answer between; then the run stops."""


@dataclass(frozen=True)
class _Request:
    kind: str
    line: bytes
    episode: int | None = None
    digest: bytes | None = None
    """Of the answer that it had before, where it is asked again."""


class WorkerQueue:
    """A worker process, what it was asked, what it is asked next, and what it answered.

    Where the process ends, all actions of its episodes are taken again in the next one, so that a
    process that was killed from outside costs nothing. The episode that it was busy with is broken
    where the next one ends in it again, and at once where it took too long. An episode that is
    answered something else in the next process is broken too.
    """

    def __init__(
        self,
        first_line: bytes,
        patience: Patience,
        start: Callable[[bytes], Worker] = WorkerProcess,
    ) -> None:
        """`start` starts a process on the first line."""
        self._first_line, self._patience, self._start = first_line, patience, start
        self.process: Worker | None = None
        self.found: dict[int, bytes | Broken] = {}
        """Answers that nobody has taken yet, by episode."""
        self.counters: Counter[str] = Counter()
        self._places = Places()
        self._past: dict[int, list[_Request]] = {}
        self._queue: deque[_Request] = deque()
        self._asked: _Request | None = None
        self._number = 0
        """Of what is asked, among the lines that the process was sent: its answer carries it."""
        self._due: float | None = None
        self._suspects: set[int] = set()
        """Episodes that a process ended in since they were last answered something new."""
        self._begins = 0.0
        self._in_a_row = 0

    def __len__(self) -> int:
        return len(self._past)

    @property
    def busy(self) -> bool:
        """Whether an answer is awaited, or something waits to be asked."""
        return bool(self._asked or self._queue)

    @property
    def wakes(self) -> float | None:
        """When `advance` has something to do though no answer came; None: not before one."""
        return self._due if self._asked else self._begins

    def reset(self, episode: int, task: tuple[str, ...], splits: list[str]) -> None:
        """Queue the beginning of an episode."""
        number = self._places.take(episode)
        self._past[episode] = []
        self._add("reset", episode, number, task, splits)

    def step(self, episode: int, action: str) -> None:
        """Queue an action; a broken episode has its answer already."""
        if episode not in self.found:
            self._add("step", episode, self._places[episode], action)

    def release(self, episode: int) -> None:
        """Forget an episode; its environment may play another."""
        self._suspects.discard(episode)
        if self._past.pop(episode, None) is not None:
            self._places.release(episode)
        self.found.pop(episode, None)

    def end(self) -> None:
        """Forget all episodes and queue the closing of their environments."""
        idle = self.process is not None and not self._asked and not self.process.gone
        self._places, self._past, self.found, self._suspects = Places(), {}, {}, set()
        self._queue.clear()
        if idle:
            self._add("close", None)
        elif self.process is not None:
            self.counters["worker_restarts"] += 1
            self.kill()

    def advance(self, now: float) -> None:
        """Start the process, ask the next thing, or end a process that is overdue."""
        if self._asked:
            if self._due is not None and now >= self._due:
                self._restart(f"took longer than {self._seconds(self._asked):g} s", late=True)
        elif not self._queue or now < self._begins:
            return
        elif self.process is None:
            self.process, self._number = self._start(self._first_line), -1
            self._await(_Request("start", b""))
        elif self.process.gone:
            self._restart("ended between two steps")
        else:
            self.process.send(self._queue[0].line)
            self._await(self._queue.popleft())

    def hear(self) -> None:
        """Take in what can be read; raises ValueError where the world cannot be made."""
        assert self.process is not None
        line = self.process.receive()
        if line is None:
            self._restart(self.process.kill())
        elif line:
            try:
                answer = answer_of(line, self._number)
                broken = broken_of(answer)
            except ValueError:
                self._restart("wrote what was no answer")
            else:
                self._take(answer, broken)

    def look(self) -> None:
        """Notice that the process ended where its pipe does not say so: a child of it has that."""
        process = self.process
        if self._asked and process and process.gone and not process.readable():
            self._restart(process.kill())

    def _add(self, kind: str, episode: int | None, *rest: Any) -> None:
        line = json.dumps([kind, *rest]).encode() + b"\n"
        self._queue.append(_Request(kind, line, episode))

    def _await(self, request: _Request) -> None:
        seconds = self._seconds(request)
        self._asked, self._due = request, None if seconds is None else time.monotonic() + seconds
        self._number += 1

    def _seconds(self, request: _Request) -> float | None:
        other = {"start": START_SECONDS, "close": CLOSE_SECONDS}
        return other.get(request.kind, self._patience.step_seconds)

    def _take(self, line: bytes, broken: Broken | None) -> None:
        request, self._asked = self._asked, None
        assert request is not None
        episode = request.episode
        if request.kind == "start":
            if broken:
                raise ValueError(
                    f"the world cannot be made in a worker process: {broken.cause}; set "
                    "rollout.workers to 0, or let a module that can be imported make it"
                )
            return
        self._in_a_row = 0
        if episode is None:
            self.counters["failed_closes"] += len(json.loads(line))
            return
        digest = hashlib.sha256(line).digest()
        if request.digest is None:
            self._suspects.discard(episode)
            if broken:
                self._break(episode, broken.cause)
            else:
                self._past[episode].append(replace(request, digest=digest))
                self.found[episode] = line
            return
        self.counters["replayed_steps"] += 1
        if request.digest != digest:
            said = f": {broken.cause}" if broken else ""
            self._break(
                episode,
                "its worker process was started again, and there the same actions were answered "
                f"something else{said}; an environment must be deterministic in task and actions",
            )

    def _break(self, episode: int, cause: str) -> None:
        self.found[episode] = Broken(cause)
        self._suspects.discard(episode)
        del self._past[episode]
        self._places.drop(episode)
        self._queue = deque(request for request in self._queue if request.episode != episode)

    def _blame(self, request: _Request, cause: str, late: bool) -> None:
        """Break the episode that a process was lost in, the second time where it may be chance."""
        assert request.episode is not None
        self.counters["step_deadlines"] += late
        if late or request.episode in self._suspects:
            self._break(request.episode, f"its worker process {cause} in a {request.kind}")
            return
        self._suspects.add(request.episode)
        if request.digest is None:
            self._queue.appendleft(request)

    def _restart(self, cause: str, *, late: bool = False) -> None:
        """End the process and have its episodes played again in the next."""
        request = self._asked
        self.kill()
        self.counters["worker_restarts"] += 1
        if request and request.kind == "close":
            self.counters["failed_closes"] += 1
            return
        if request and request.episode is not None:
            self._blame(request, cause, late)
        self._in_a_row += 1
        if self._in_a_row > self._patience.restarts:
            raise ValueError(
                f"a worker process was started again {self._patience.restarts} times in a row "
                f"without an answer, and then it {cause} again; repair that, or raise "
                "rollout.restarts"
            )
        pause = self._patience.restart_seconds * 2.0 ** min(self._in_a_row - 1, 30)
        self._begins = time.monotonic() + min(pause, MOST_PAUSE)
        waiting = [request for request in self._queue if request.digest is None]
        past = [request for requests in self._past.values() for request in requests]
        self._queue = deque([*past, *waiting])

    def kill(self) -> None:
        """End the process at once; nothing is awaited any more."""
        self._asked = None
        process, self.process = self.process, None
        if process is not None:
            process.kill()
