"""The near side of a worker process: starts it, and carries one line there and one back."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterable
from contextlib import suppress
from multiprocessing.connection import wait
from typing import Protocol, runtime_checkable

START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from rewardswap.rollout.worker import serve; serve()"
)
"""What a worker runs: a new interpreter that finds the same modules, and nothing of `__main__`."""
CHUNK = 1 << 20
"""Most bytes that are read at a time."""


@runtime_checkable
class Worker(Protocol):
    """Something that answers one line at a time, here or on another machine."""

    @property
    def gone(self) -> bool:
        """Whether it is known to have ended."""
        ...

    def readable(self) -> bool:
        """Whether there is something to read, or nothing more will come."""
        ...

    def fileno(self) -> int:
        """What to wait on for an answer."""
        ...

    def send(self, line: bytes) -> None:
        """Send a line; where it has ended, `receive` will say so."""
        ...

    def receive(self) -> bytes | None:
        """What can be read now: a whole line, b"" while it is not whole, None at its end."""
        ...

    def kill(self) -> str:
        """End it and whatever it started at once; how it ended, in words."""
        ...

    def end(self) -> None:
        """Let it close its environments and end by itself."""
        ...

    def wait(self, until: float) -> None:
        """Wait for its end, and end it at `until` (of `time.monotonic`)."""
        ...


class WorkerProcess:
    """A process that answers one line at a time.

    It is a new interpreter in a session of its own, so that neither threads nor a Ctrl-C of this
    one reach it.
    """

    def __init__(self, first_line: bytes) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-c", START, json.dumps(sys.path)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            bufsize=0,
            start_new_session=True,
        )
        self._read = bytearray()
        self.send(first_line)

    @property
    def pid(self) -> int:
        """The process's number."""
        return self._process.pid

    @property
    def gone(self) -> bool:
        """Whether it has ended."""
        return self._process.poll() is not None

    def readable(self) -> bool:
        """Whether there is something to read, or nothing more will come."""
        return bool(wait([self.fileno()], 0))

    def fileno(self) -> int:
        """Where its answers come in, to wait for."""
        assert self._process.stdout is not None
        return self._process.stdout.fileno()

    def send(self, line: bytes) -> None:
        """Send a line; where the process has ended, `receive` will say so."""
        assert self._process.stdin is not None
        rest = memoryview(line)
        try:
            while rest:
                rest = rest[self._process.stdin.write(rest) :]
        except BrokenPipeError:
            pass

    def receive(self) -> bytes | None:
        """What can be read now: a whole line, b"" while it is not whole, None at its end."""
        found = os.read(self.fileno(), CHUNK)
        if not found:
            return None
        self._read += found
        if not found.endswith(b"\n"):
            return b""
        line, self._read = bytes(self._read), bytearray()
        return line

    def kill(self) -> str:
        """End it and whatever it started at once; how it ended, in words."""
        with suppress(ProcessLookupError):  # all of them have ended
            os.killpg(self._process.pid, signal.SIGKILL)
        self._leave()
        return _ended(self._process.wait())

    def end(self) -> None:
        """Close its input, upon which it ends by itself."""
        assert self._process.stdin is not None
        self._process.stdin.close()

    def wait(self, until: float) -> None:
        """Wait for its end, and end it at `until` (of `time.monotonic`)."""
        try:
            self._process.wait(max(0.0, until - time.monotonic()))
        except subprocess.TimeoutExpired:
            self.kill()
        self._leave()

    def _leave(self) -> None:
        for pipe in (self._process.stdin, self._process.stdout):
            assert pipe is not None
            pipe.close()
        self._process.wait()


def _ended(status: int) -> str:
    if status < 0:
        known = -status in set(signal.Signals)
        name = signal.Signals(-status).name if known else f"signal {-status}"
        return f"was ended by {name}"
    return f"ended with exit status {status}"


def end_all(processes: Iterable[Worker], seconds: float) -> None:
    """End processes side by side; those that have not after `seconds` are killed."""
    processes = list(processes)
    until = time.monotonic() + seconds
    for process in processes:
        process.end()
    for process in processes:
        process.wait(until)
