"""The weight of replay, less of it the better the agent is and the further the explorer went."""

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class AdaptiveAlpha:
    """alpha_t = alpha_max clip((high - p) / (high - low), 0, 1) g(ESS) [successes >= n].

    Only the weight of the replayed loss changes: the batch keeps the sizes of alpha_max. p is the
    success of the agent's own fresh trajectories in the last updates, the present one included.
    """

    success_low: float = 0.2
    """Success up to which replay has its whole weight (the specification's)."""
    success_high: float = 0.8
    """Success from which it has none (the specification's)."""
    window: int = 10
    """Updates of the agent that p is taken over, each trajectory counting the same (ours)."""
    ess_low: float = 0.1
    """Effective sample size, a share of the replayed tokens, up to which the gate is 0 (ours)."""
    ess_high: float = 0.5
    """Effective sample size from which the gate is 1, with a straight ramp between (ours)."""
    least_successes: int = 8
    """Successes that the buffer must hold (n of the specification; 8 is ours)."""

    def __post_init__(self) -> None:
        for name in ("success", "ess"):
            low, high = getattr(self, f"{name}_low"), getattr(self, f"{name}_high")
            if not 0 <= low < high <= 1:
                raise ValueError(
                    f"{name}_low and {name}_high must rise within [0, 1], got {low} and {high}"
                )
        if self.window < 1:
            raise ValueError(f"window must be at least 1 update, got {self.window}")
        if self.least_successes < 0:
            raise ValueError(f"least_successes must be at least 0, got {self.least_successes}")


class ReplayWeight:
    """alpha_t of one run: tell it each fresh batch, then ask."""

    def __init__(self, settings: AdaptiveAlpha, maximum: float) -> None:
        self.settings = settings
        self.maximum = maximum
        self._seen: deque[tuple[int, int]] = deque(maxlen=settings.window)

    def observe(self, successes: int, trajectories: int) -> None:
        """One fresh batch of the agent; raises ValueError for counts that cannot be."""
        if not 0 <= successes <= trajectories or trajectories < 1:
            raise ValueError(f"{successes} successes of {trajectories} trajectories cannot be")
        self._seen.append((successes, trajectories))

    @property
    def success(self) -> float:
        """p, in [0, 1]; raises ValueError before the first batch."""
        if not self._seen:
            raise ValueError("the agent's success is unknown: observe a fresh batch first")
        return sum(won for won, _ in self._seen) / sum(played for _, played in self._seen)

    def weight(self, effective_sample_size: float | None, buffer_successes: int) -> float:
        """alpha_t; the effective sample size is that before the update's first step, in [0, 1].

        None: no replayed token has a gradient, and the fresh ones get the whole weight.
        """
        s = self.settings
        if effective_sample_size is None or buffer_successes < s.least_successes:
            return 0.0
        need = _ramp(s.success_high - self.success, s.success_high - s.success_low)
        gate = _ramp(effective_sample_size - s.ess_low, s.ess_high - s.ess_low)
        return self.maximum * need * gate

    def state(self) -> dict[str, Any]:
        """The window, as plain JSON values."""
        return {"seen": [list(batch) for batch in self._seen]}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self._seen.clear()
        self._seen.extend((won, played) for won, played in state["seen"])


def _ramp(value: float, full: float) -> float:
    """value / full, within [0, 1]."""
    return min(1.0, max(0.0, value / full))
