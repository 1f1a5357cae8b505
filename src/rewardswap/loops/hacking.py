"""Alarms where a policy learns to please the dense reward: it rises while the outcome falls."""

from collections import Counter, deque
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

from rewardswap.loops.hacking_rules import HackingRules, correlation_sign, gain_sign, trend_sign
from rewardswap.loops.hacking_statistics import DenseBatch


@dataclass(frozen=True)
class Alarm:
    """Which rules gave the alarm, and what they saw, in words."""

    rules: tuple[str, ...]
    words: str


class HackingDetector:
    """Looks at every batch that was played under a dense reward, and at every loop of them.

    An alarm forgets all batches: the next one needs evidence of its own.
    """

    def __init__(self, rules: HackingRules) -> None:
        self.rules = rules
        self._batches: deque[DenseBatch] = deque(maxlen=rules.long_updates)
        self._loops: deque[tuple[DenseBatch, DenseBatch]] = deque(maxlen=rules.gain_loops)
        self._loop: list[DenseBatch] = []
        self._held: Counter[str] = Counter()

    def observe(self, batch: DenseBatch) -> Alarm | None:
        """The next batch; an alarm if trends or correlations give one."""
        self._batches.append(batch)
        self._loop = [*self._loop[:1], batch]
        rules, batches = self.rules, list(self._batches)
        return self._look(
            rules.held,
            trend=trend_sign(rules, batches, rules.trend_updates, rules.trend_z),
            long_trend=trend_sign(rules, batches, rules.long_updates, rules.long_z),
            correlation=correlation_sign(rules, batches),
        )

    def end_loop(self) -> Alarm | None:
        """End of phase 1; an alarm if the gains from first to last batches give one.

        A loop of fewer than two batches has no gain and is left out.
        """
        ends, self._loop = self._loop, []
        if len(ends) < 2:
            return None
        self._loops.append((ends[0], ends[1]))
        return self._look(self.rules.gain_held, gain=gain_sign(self.rules, list(self._loops)))

    def _look(self, held: int, **signs: str) -> Alarm | None:
        for rule, words in signs.items():
            self._held[rule] = self._held[rule] + 1 if words else 0
        found = [rule for rule in signs if self._held[rule] >= held]
        if not found:
            return None
        self._forget()
        return Alarm(tuple(found), "; ".join(signs[rule] for rule in found))

    def _forget(self) -> None:
        self._batches.clear()
        self._loops.clear()
        self._held.clear()
        self._loop = []

    def state(self) -> dict[str, Any]:
        """Batches, loops and counts, as plain JSON values."""
        return {
            "batches": [asdict(batch) for batch in self._batches],
            "loops": [[asdict(batch) for batch in loop] for loop in self._loops],
            "loop": [asdict(batch) for batch in self._loop],
            "held": dict(self._held),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self._forget()
        self._batches.extend(DenseBatch(**batch) for batch in state["batches"])
        for first, last in state["loops"]:
            self._loops.append((DenseBatch(**first), DenseBatch(**last)))
        self._loop = [DenseBatch(**batch) for batch in state["loop"]]
        self._held.update(state["held"])
