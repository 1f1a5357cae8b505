"""What a rule is, and what it says."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from rewardswap.diagnosis.observed import Observed

Severity = Literal["serious", "warning", "note"]

SEVERITIES: tuple[Severity, ...] = ("serious", "warning", "note")
"""serious: alone enough that nothing is learned, or that numbers are wrong; warning: it costs
learning, or nothing can be told; note: worth knowing (ours)."""


@dataclass(frozen=True)
class Advice:
    """Something to try."""

    settings: str
    """Words behind `rewardswap train RECIPE`; empty: it is no setting."""
    why: str


@dataclass(frozen=True)
class Seen:
    """What a rule saw in a run."""

    severity: Severity
    words: str
    """The cause in a sentence."""
    evidence: tuple[str, ...]
    """Numbers and where they are, a sentence each."""
    advice: tuple[Advice, ...]


@dataclass(frozen=True)
class Rule:
    """One known cause: what it reads, when it is seen, and by whose threshold."""

    cause: str
    """Its name."""
    about: str
    """What it looks at, in a few words."""
    seen: str
    """When it is seen."""
    whose: str
    """Where the threshold comes from."""
    look: Callable[[Observed], Seen | None]
    """Pure; raises NoDataError or DoesNotApplyError where it cannot tell."""


@dataclass(frozen=True)
class Finding:
    """A cause that was seen."""

    rule: Rule
    seen: Seen
