"""Environment workers on other machines: an actor starts the process there and passes lines on."""

import os
import time
from contextlib import suppress
from multiprocessing.connection import wait
from queue import SimpleQueue
from socket import socketpair
from typing import Any

import ray
from ray.exceptions import RayError

from rewardswap.rollout.worker_process import WorkerProcess
from rewardswap.rollout.worker_queue import CLOSE_SECONDS

LOOK_SECONDS = 1.0
"""Longest time without an answer before it is looked whether the process lives."""


class FarProcess:
    """A worker process, beside the actor that this is; both end together."""

    def __init__(self, first_line: bytes, folder: str) -> None:
        """`folder` is the trainer's working folder: settings may name files in it."""
        os.chdir(folder)
        self._process = WorkerProcess(first_line)

    def ask(self, line: bytes) -> bytes | str:
        """Its answer to a line; how it ended, in words, in place of one."""
        self._process.send(line)
        return self.answer()

    def answer(self) -> bytes | str:
        """Its next answer; how it ended, in words, in place of one."""
        process = self._process
        while True:
            if not wait([process.fileno()], LOOK_SECONDS):
                if process.gone and not process.readable():  # a child of it holds the pipe
                    return process.kill()
                continue
            line = process.receive()
            if line is None:
                return process.kill()
            if line:
                return line

    def end(self, seconds: float) -> None:
        """Let it close its environments, within so many seconds."""
        self._process.end()
        self._process.wait(time.monotonic() + seconds)


FAR = ray.remote(num_cpus=1, max_restarts=0)(FarProcess)


class FarWorker:
    """The near side of a worker process that is wherever the cluster has a CPU free.

    A lost node, or a lost actor, is a process that ended.
    """

    def __init__(self, first_line: bytes) -> None:
        self._ended: str | None = None
        self._heard: SimpleQueue[bytes | str] = SimpleQueue()
        self._here, self._there = socketpair()
        self._actor = FAR.options(scheduling_strategy="SPREAD").remote(first_line, os.getcwd())
        self._hear(self._actor.answer.remote())

    @property
    def gone(self) -> bool:
        """Whether it is known to have ended: it is not noticed before it is asked something."""
        return self._ended is not None

    def readable(self) -> bool:
        """Whether there is something to read."""
        return bool(wait([self.fileno()], 0))

    def fileno(self) -> int:
        """Where a byte comes in for each answer."""
        return self._here.fileno()

    def send(self, line: bytes) -> None:
        """Send a line; where the process has ended, `receive` will say so."""
        self._hear(self._actor.ask.remote(line))

    def receive(self) -> bytes | None:
        """The whole line that has come, None where it says that the process ended."""
        self._here.recv(1)
        answer = self._heard.get()
        if isinstance(answer, bytes):
            return answer
        self._ended = answer
        return None

    def kill(self) -> str:
        """End the actor, and with it the process; how it ended, in words."""
        self._here.close()
        self._there.close()
        if ray.is_initialized():
            ray.kill(self._actor)
        return self._ended or "was ended by the trainer"

    def end(self) -> None:
        """Let it close its environments; `wait` ends it."""
        self._ending = self._actor.end.remote(CLOSE_SECONDS) if ray.is_initialized() else None

    def wait(self, until: float) -> None:
        """Wait until its environments are closed, `until` at most (of `time.monotonic`)."""
        if self._ending is not None and ray.is_initialized():
            with suppress(RayError):
                ray.get(self._ending, timeout=max(0.0, until - time.monotonic()))
        self.kill()

    def _hear(self, answer: Any) -> None:
        answer.future().add_done_callback(self._take)

    def _take(self, done: Any) -> None:
        """Called by a thread of Ray's."""
        try:
            self._heard.put(done.result())
        except RayError as error:
            self._heard.put(f"was lost with its node or its actor ({reason(error)})")
        with suppress(OSError):  # nobody waits any more
            self._there.send(b".")


def reason(error: RayError) -> str:
    """Kind, beginning and end of an error of Ray's: between stand its traceback and advice."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return " ... ".join([type(error).__name__, *dict.fromkeys([*lines[:1], *lines[-1:]])])
