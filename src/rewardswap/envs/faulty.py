"""Any world with faults put in, for tests of what a run survives (ours).

    world = FaultyWorld(CorridorWorld(), [Fault("raises", turn=2), Fault("hangs", share=0.01)])

Whether a fault happens depends on the task, the actions so far, and the fault alone, so that it
happens in the same episodes in every process, in every order, and when an episode is played again.
"""

import copy
import hashlib
import os
import signal
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal, get_args

from rewardswap.envs.base import Environment, PromptStyle, Step, World
from rewardswap.task import Task

FaultKind = Literal[
    "raises",
    "raises in close",
    "raises strangely",
    "exits",
    "interrupts",
    "hangs",
    "slow",
    "dies",
    "is killed",
    "floods",
    "no character",
    "nothing",
    "bytes",
    "tuple",
    "number for text",
    "nan",
    "infinite",
    "too high",
    "never ends",
    "differs",
]
FLOOD = 10_000_000
"""Characters that `floods` returns."""
FOREVER = float("inf")


class StrangeError(BaseException):
    """No Exception; it cannot be pickled, and raises when its text is asked for."""

    def __reduce__(self) -> Any:
        raise TypeError("a strange error cannot be pickled")

    def __str__(self) -> str:
        raise RuntimeError("a strange error has no text")


@dataclass(frozen=True)
class Fault:
    """What goes wrong, and where.

    Raises ValueError for an unknown kind, a turn below 0, and a share or seconds out of range.
    """

    kind: FaultKind
    """raises, exits, interrupts, raises strangely: RuntimeError, SystemExit, KeyboardInterrupt, an
    exception that is no Exception; hangs: sleeps for ever; slow: sleeps `seconds`; dies: ends its
    process; is killed: by a signal; floods: 10 MB of text; no character: text that no UTF-8 has;
    nothing, bytes, tuple: in place of an observation or step; number for text; nan, infinite, too
    high: progress in reset, outcome in a step; never ends: from that turn on nothing ends the
    episode; differs: another text in every process; raises in close: wherever the episode went."""
    task: str | None = None
    """Id of the task that it happens in; none: any."""
    turn: int | None = None
    """0: in reset, n: in the n-th step; none: any."""
    share: float = 1.0
    """Part of the places that fit in which it happens: drawn by task, actions so far and `seed`."""
    seed: int = 0
    """Draws other places."""
    seconds: float = 0.01
    """How long `slow` sleeps, in seconds."""

    def __post_init__(self) -> None:
        if self.kind not in get_args(FaultKind):
            raise ValueError(f"unknown fault {self.kind!r}, take one of {get_args(FaultKind)}")
        if self.turn is not None and self.turn < 0:
            raise ValueError(f"turn must be at least 0, got {self.turn}")
        if not 0 <= self.share <= 1:
            raise ValueError(f"share must be in [0, 1], got {self.share}")
        if not 0 <= self.seconds < float("inf"):
            raise ValueError(f"seconds must be at least 0 and finite, got {self.seconds}")

    def happens(self, task: str, actions: Sequence[str]) -> bool:
        """Whether it happens in the reset (no actions) or in the step of the last action."""
        if self.task not in (None, task) or self.turn not in (None, len(actions)):
            return False
        place = "\x1f".join([str(self.seed), self.kind, task, *actions])
        digest = hashlib.sha256(place.encode(errors="surrogatepass")).digest()
        return int.from_bytes(digest[:7], "big") < self.share * 2**56


class FaultyWorld:
    """The tasks of another world, in environments that break as `faults` say, in their order.

    Kinds that sleep for ever or end the process need worker processes, and `interrupts` is taken
    for the user's own Ctrl-C without them.
    """

    def __init__(self, world: World, faults: Sequence[Fault]) -> None:
        self._world = world
        self.faults = tuple(faults)
        self.instructions = world.instructions
        self.turn_limit = world.turn_limit
        self.prompt_styles: Mapping[str, PromptStyle] = world.prompt_styles

    def tasks(self, split: str) -> Sequence[Task]:
        """Those of the world; raises ValueError as it does."""
        return self._world.tasks(split)

    def remarks(self, split: str) -> Sequence[str]:
        """Those of the world; raises ValueError as it does."""
        return self._world.remarks(split)

    def make(self) -> "FaultyEnvironment":
        """A new environment for all tasks of the world."""
        return FaultyEnvironment(self._world.make(), self.faults)


class FaultyEnvironment:
    """An environment of a `FaultyWorld`."""

    def __init__(self, environment: Environment, faults: Sequence[Fault]) -> None:
        self._environment, self._faults = environment, faults
        self._task = ""
        self._actions: list[str] = []
        self._goes_on = False
        """Whether `never ends` has happened."""
        self._endless: Step | None = None
        """What is answered where the world would have ended."""

    def reset(self, task: Task) -> Any:
        """Start `task` anew; does what its faults say, and so may return anything."""
        self._task, self._actions = task.id, []
        self._goes_on, self._endless = False, None
        return self._spoiled(self._environment.reset(task))

    def step(self, action: str) -> Any:
        """Take one action; does what its faults say, and so may return anything."""
        self._actions.append(action)
        if self._endless is not None:
            return self._spoiled(self._endless)
        step = self._environment.step(action)
        if any(fault.kind == "never ends" for fault in self._happening()):
            self._goes_on = True
        if self._goes_on and step.terminated:
            step = self._endless = replace(step, terminated=False, success=False)
        return self._spoiled(step)

    def close(self) -> None:
        """Close the environment; raises RuntimeError where a fault says so."""
        self._environment.close()
        for fault in self._faults:
            if fault.kind == "raises in close" and fault.task in (None, self._task):
                raise RuntimeError("a fault was put into close")

    def _happening(self) -> list[Fault]:
        return [fault for fault in self._faults if fault.happens(self._task, self._actions)]

    def _spoiled(self, found: Any) -> Any:
        for fault in self._happening():
            found = SPOIL[fault.kind](fault, found)
        return found


def _raise(error: BaseException) -> Any:
    raise error


def _sleep(seconds: float, found: Any) -> Any:
    while seconds == FOREVER:
        time.sleep(1.0)
    time.sleep(seconds)
    return found


def forced(found: Any, **changes: Any) -> Any:
    """A copy of a dataclass with other fields, of whatever type and unchecked."""
    changed = copy.copy(found)
    for name, value in changes.items():
        object.__setattr__(changed, name, value)
    return changed


def _told(found: Any, text: Any) -> Any:
    """An observation or a step with another text."""
    if isinstance(found, Step):
        return forced(found, observation=forced(found.observation, text=text))
    return forced(found, text=text)


def _numbered(found: Any, value: float) -> Any:
    """A step with another outcome, an observation with another progress."""
    return forced(found, **{"outcome" if isinstance(found, Step) else "progress": value})


SPOIL: dict[FaultKind, Callable[[Fault, Any], Any]] = {
    "raises": lambda fault, found: _raise(RuntimeError("a fault was put in")),
    "raises in close": lambda fault, found: found,
    "raises strangely": lambda fault, found: _raise(StrangeError()),
    "exits": lambda fault, found: _raise(SystemExit(3)),
    "interrupts": lambda fault, found: _raise(KeyboardInterrupt()),
    "hangs": lambda fault, found: _sleep(FOREVER, found),
    "slow": lambda fault, found: _sleep(fault.seconds, found),
    "dies": lambda fault, found: os._exit(3),
    "is killed": lambda fault, found: os.kill(os.getpid(), signal.SIGKILL),
    "floods": lambda fault, found: _told(found, "x" * FLOOD),
    "no character": lambda fault, found: _told(found, "half a pair: \ud800"),
    "nothing": lambda fault, found: None,
    "bytes": lambda fault, found: b"no observation",
    "tuple": lambda fault, found: ("text", 0.0),
    "number for text": lambda fault, found: _told(found, 7),
    "nan": lambda fault, found: _numbered(found, float("nan")),
    "infinite": lambda fault, found: _numbered(found, float("inf")),
    "too high": lambda fault, found: _numbered(found, 2.0),
    "never ends": lambda fault, found: found,
    "differs": lambda fault, found: _told(found, f"process {os.getpid()}"),
}
"""What each kind does to an observation or a step."""
