"""The hacking detector on the groups of a run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from rewardswap.loops.hacking import Alarm, HackingDetector
from rewardswap.loops.hacking_rules import HackingRules
from rewardswap.loops.hacking_statistics import measured
from rewardswap.types import Group


class HackingWatch:
    """Shows the detector every batch under a dense reward, and tells whoever wants to know."""

    def __init__(
        self, source_name: str, alarmed: Callable[[Alarm], None], rules: HackingRules | None = None
    ) -> None:
        self.source_name = source_name
        self.alarmed = alarmed
        self.detector = HackingDetector(rules or HackingRules())

    def see(self, groups: Sequence[Group]) -> bool:
        """Whether there is an alarm after these groups, which the dense reward has scored."""
        outcomes = [group.outcomes.tolist() for group in groups]
        dense = [group.rewards[self.source_name].sum(dim=1).tolist() for group in groups]
        return self._tell(self.detector.observe(measured(outcomes, dense)))

    def end_loop(self) -> bool:
        """Whether there is an alarm at the end of phase 1."""
        return self._tell(self.detector.end_loop())

    def state(self) -> dict[str, Any]:
        """What the detector knows."""
        return self.detector.state()

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""
        self.detector.restore(state)

    def _tell(self, alarm: Alarm | None) -> bool:
        if alarm is not None:
            self.alarmed(alarm)
        return alarm is not None
