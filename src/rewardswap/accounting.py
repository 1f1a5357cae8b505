"""What a run has spent: sums over everything, and the same phase by phase."""

import time
from collections import Counter
from collections.abc import Mapping
from typing import Any

COUNTED = (
    "environment_steps",
    "generated_tokens",
    "trained_tokens",
    "all_updates",
    "failed_episodes",
    "dropped_groups",
    "dropped_rewards",
)
"""What every record of a run has a sum of, from the first on."""


class Accounting:
    """Environment steps, tokens, updates and wall-clock seconds of a run.

    Seconds go to the phase whose record ends them, so those of all phases add up to the run's.
    """

    def __init__(self) -> None:
        self.total: Counter[str] = Counter(dict.fromkeys(COUNTED, 0))
        self.phases: dict[str, Counter[str]] = {}
        self._seconds: dict[str, float] = {}
        self._started = self._last = time.monotonic()

    def add(self, phase: str, **counts: int) -> None:
        """Count for a phase, and so for the whole."""
        self.total.update(counts)
        self.phases.setdefault(phase, Counter()).update(counts)

    @property
    def elapsed(self) -> float:
        """Seconds since the start."""
        return time.monotonic() - self._started

    def begin(self) -> None:
        """The seconds so far go to no phase."""
        self._last = time.monotonic()

    def end(self, phase: str) -> float:
        """Give the seconds since the last record to `phase`; the seconds since the start."""
        now = time.monotonic()
        self._seconds[phase] = self._seconds.get(phase, 0.0) + now - self._last
        self._last = now
        return now - self._started

    def state(self) -> dict[str, Any]:
        """Counts and seconds so far, as plain JSON values."""
        return {
            "total": dict(self.total),
            "phases": {phase: dict(counts) for phase, counts in self.phases.items()},
            "seconds": dict(self._seconds),
            "elapsed": self.elapsed,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`; the seconds between it and now go to nobody."""
        self.total = Counter(state["total"])
        self.phases = {phase: Counter(counts) for phase, counts in state["phases"].items()}
        self._seconds = dict(state["seconds"])
        self._last = time.monotonic()
        self._started = self._last - state["elapsed"]

    def as_dict(self) -> dict[str, dict[str, int | float]]:
        """Counts and seconds of each phase, ready for JSON."""
        names = dict.fromkeys([*self.phases, *self._seconds])
        return {
            name: {
                "environment_steps": self.phases.get(name, Counter())["environment_steps"],
                "generated_tokens": self.phases.get(name, Counter())["generated_tokens"],
                "trained_tokens": self.phases.get(name, Counter())["trained_tokens"],
                "updates": self.phases.get(name, Counter())["all_updates"],
                "seconds": self._seconds.get(name, 0.0),
            }
            for name in names
        }
