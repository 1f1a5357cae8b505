"""What an inspection has found, as sentences."""

from collections.abc import Iterator
from dataclasses import dataclass

from rewardswap.shown import visible_text


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong, or that a reader must know."""

    name: str
    """What kind of thing it is, in a few words."""
    said: str
    """What was seen, a sentence with the evidence in it."""
    way_out: str
    """What to do about it, a sentence."""
    fault: bool = True
    """Whether training on it would go wrong; else it is a remark."""

    def __str__(self) -> str:
        kind = "FAULT" if self.fault else "remark"
        return visible_text(f"{kind}, {self.name}: {self.said}. {self.way_out}.")


@dataclass(frozen=True)
class Findings:
    """All that was found, faults first; printed, it is one paragraph for each."""

    subject: str
    """What was inspected."""
    found: tuple[Finding, ...]
    episodes: int = 0
    """How many episodes were played at random."""
    turns: int = 0
    """How many turns these had in all."""
    won: int = 0
    """How many of the episodes were a success: what a policy that learned nothing may win."""

    @property
    def faults(self) -> tuple[Finding, ...]:
        """Those that training would go wrong on."""
        return tuple(finding for finding in self.found if finding.fault)

    def __iter__(self) -> Iterator[Finding]:
        return iter(sorted(self.found, key=lambda finding: not finding.fault))

    def __len__(self) -> int:
        return len(self.found)

    def __str__(self) -> str:
        remarks = len(self.found) - len(self.faults)
        counted = f"{_count(len(self.faults), 'fault')}, {_count(remarks, 'remark')}"
        played = f"{_count(self.episodes, 'episode')} at random, {_count(self.turns, 'turn')}"
        head = f"{visible_text(self.subject)}: {played}, {self.won} won; {counted}"
        return "\n".join([head, *(f"- {finding}" for finding in self)])


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}{'' if number == 1 else 's'}"
