"""Shorter phases after an alarm of the detector, longer ones again after quiet loops."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class PhaseLengths:
    """When the phases become longer again (the specification only halves k)."""

    healthy_loops: int | None = None
    """Loops without an alarm after which k doubles, up to its start value (ours); none: never."""

    def __post_init__(self) -> None:
        if self.healthy_loops is not None and self.healthy_loops < 1:
            raise ValueError(f"healthy_loops must be at least 1, got {self.healthy_loops}")


class KSchedule:
    """k of both phases, in updates: an alarm halves it, down to 1, and ends phase 1.

    k is the length of both phases in the paper, so both are halved, each from its own start. A
    phase of 0 updates stays 0.
    """

    def __init__(self, settings: PhaseLengths, explore_steps: int, learn_steps: int) -> None:
        self.settings = settings
        self.start = (explore_steps, learn_steps)
        self.explore_steps, self.learn_steps = self.start
        self.healthy = 0
        self._alarmed = False

    def alarm(self) -> None:
        """Halve k; a second alarm in the same loop changes nothing."""
        if not self._alarmed:
            self.explore_steps = _halved(self.explore_steps)
            self.learn_steps = _halved(self.learn_steps)
        self._alarmed, self.healthy = True, 0

    def end_loop(self) -> None:
        """Count a loop without an alarm, and double k after enough of them."""
        self.healthy += not self._alarmed
        self._alarmed = False
        if self.healthy == self.settings.healthy_loops:
            self.explore_steps = min(2 * self.explore_steps, self.start[0])
            self.learn_steps = min(2 * self.learn_steps, self.start[1])
            self.healthy = 0

    def state(self) -> dict[str, Any]:
        """Lengths and counts, as plain JSON values."""
        return {
            "explore_steps": self.explore_steps,
            "learn_steps": self.learn_steps,
            "healthy": self.healthy,
            "alarmed": self._alarmed,
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.explore_steps, self.learn_steps = state["explore_steps"], state["learn_steps"]
        self.healthy, self._alarmed = state["healthy"], state["alarmed"]


def _halved(steps: int) -> int:
    """Half of it, at least 1; 0 stays 0."""
    return max(1, steps // 2) if steps else 0
