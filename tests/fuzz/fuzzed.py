"""Trying generated inputs: each works or is refused in one clear line, and touches nothing else."""

import os
import re
import signal
import sys
import traceback
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, redirect_stderr, redirect_stdout
from dataclasses import dataclass, field
from io import StringIO
from pathlib import Path
from random import Random
from types import FrameType
from typing import Any

from rewardswap.cli import main
from rewardswap.options import UsageError, one_line

SECONDS = 20
"""An input that takes longer hangs."""
LONGEST_LINE = 1500
"""Most characters of an error; a longer one is no clear error."""

WRITES = os.O_WRONLY | os.O_RDWR | os.O_CREAT | os.O_TRUNC | os.O_APPEND
CHANGES = ("os.mkdir", "os.rename", "os.remove", "os.rmdir", "os.link", "os.symlink", "os.truncate")
STEERING = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f]")
"""Characters that steer a terminal: C0 and C1 but tab and newline."""

Tries = Callable[[Random, Path], None]
"""Makes one input in a folder and tries it: returns where it works, raises where it is refused."""


class ReachedError(BaseException):
    """The input was accepted: what would take long begins here."""


class RefusedError(Exception):
    """The command refused the input in one line."""


class HangsError(BaseException):
    """The input took too long."""


@dataclass
class Tally:
    """What came of the inputs of one kind."""

    tried: int = 0
    counts: Counter[str] = field(default_factory=Counter)
    wrong: list[str] = field(default_factory=list)
    """What was neither accepted nor clearly refused: number of the input, and why."""


class _Guard:
    """Watches what Python itself is asked to do; one for the process, since hooks stay."""

    def __init__(self) -> None:
        self.folder: Path | None = None
        self.seen: list[str] = []
        sys.addaudithook(self._hook)

    def _hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.folder is None:
            return
        if event == "open":
            path, mode, flags = arguments
            writes = flags & WRITES if isinstance(flags, int) else "r" not in (mode or "r")
            if writes:
                self._refuse_outside(event, path)
        elif event in CHANGES:
            self._refuse_outside(event, arguments[0])
        elif event in ("socket.connect", "socket.bind", "pickle.find_class", "os.system"):
            self.seen.append(f"{event} {arguments[1:]!r}")
        elif event == "subprocess.Popen" and str(arguments[0]) not in ("git", "uname"):
            self.seen.append(f"{event} {arguments[0]!r}")
        elif event == "exec":
            name = str(getattr(arguments[0], "co_filename", ""))
            if name.startswith(str(self.folder)):
                self.seen.append(f"code of {name} was run")

    def _refuse_outside(self, event: str, path: object) -> None:
        assert self.folder is not None
        if isinstance(path, int):  # an open file: where it lies was looked at when it was opened
            return
        name = os.path.abspath(os.fsdecode(path)) if isinstance(path, str | bytes | Path) else ""
        free = (str(self.folder), "/dev/", "/proc/")
        if not name.startswith(free) and "__pycache__" not in name and "/matplotlib" not in name:
            self.seen.append(f"{event} outside of its folder: {name!r}")


_GUARD = _Guard()


@contextmanager
def guarded(folder: Path) -> Iterator[list[str]]:
    """What was done meanwhile that no input may do; relative paths are those of `folder`."""
    before = Path.cwd()
    os.chdir(folder)
    _GUARD.folder, _GUARD.seen = folder, []
    try:
        yield _GUARD.seen
    finally:
        _GUARD.folder = None
        os.chdir(before)


def try_kind(tries: Tries, name: str, count: int, folder: Path, *, first: int = 0) -> Tally:
    """Try inputs number `first` and on; input n is the same whatever was tried before."""
    tally = Tally()
    folder.mkdir(parents=True, exist_ok=True)
    folder = folder.resolve()
    for number in range(first, first + count):
        verdict, why = attempt(tries, Random(f"{name} {number}"), folder)
        tally.tried += 1
        tally.counts[verdict] += 1
        if verdict == "wrong":
            tally.wrong.append(f"{name} {number}: {why}")
    return tally


def attempt(tries: Tries, random: Random, folder: Path) -> tuple[str, str]:
    """accepted, refused or wrong, and the reason."""
    with guarded(folder) as seen:
        verdict, why = _judged(tries, random, folder)
    return ("wrong", "; ".join(seen)) if seen else (verdict, why)


def _judged(tries: Tries, random: Random, folder: Path) -> tuple[str, str]:
    try:
        with _time_limit(SECONDS):
            tries(random, folder)
    except ReachedError:
        return "accepted", ""
    except (RefusedError, UsageError) as error:
        return _clear(str(error))
    except ValueError as error:
        named = type(error).__module__.startswith("rewardswap") or type(error) is ValueError
        return _clear(one_line(error)) if named else ("wrong", _told(error))
    except (Exception, HangsError, KeyboardInterrupt, SystemExit) as error:
        if isinstance(error, KeyboardInterrupt):
            raise
        return "wrong", _told(error)
    return "accepted", ""


def _clear(line: str) -> tuple[str, str]:
    unclear = not line.strip() or len(line) > LONGEST_LINE or STEERING.search(line)
    return ("wrong", f"no clear error: {line[:300]!r}") if unclear else ("refused", line)


def _told(error: BaseException) -> str:
    frames = traceback.extract_tb(error.__traceback__)
    place = next((f for f in reversed(frames) if "rewardswap" in f.filename), frames[-1])
    said = " ".join(str(error).split())[:200]
    return f"{type(error).__name__} at {Path(place.filename).name}:{place.lineno}: {said!r}"


@contextmanager
def _time_limit(seconds: int) -> Iterator[None]:
    def stop(number: int, frame: FrameType | None) -> None:
        raise HangsError(f"still running after {seconds} seconds")

    before = signal.signal(signal.SIGALRM, stop)
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)


def command(words: Sequence[str]) -> str:
    """What the command prints; RefusedError where it exits with 1 or 2 and one line."""
    out, err = StringIO(), StringIO()
    try:
        with redirect_stdout(out), redirect_stderr(err):
            main(list(words))
    except SystemExit as stop:
        said = err.getvalue()
        if stop.code in (1, 2) and said.startswith("rewardswap: ") and said.count("\n") == 1:
            raise RefusedError(said.removesuffix("\n")) from None
        if stop.code:
            raise AssertionError(f"exit code {stop.code!r}, {said[-300:]!r}") from None
    if err.getvalue():
        raise AssertionError(f"accepted, yet it says {err.getvalue()[-300:]!r}")
    return out.getvalue()
