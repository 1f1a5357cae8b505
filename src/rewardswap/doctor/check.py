"""What one check found."""

from dataclasses import dataclass
from typing import Literal

State = Literal["ok", "optional", "wrong"]
"""optional: not there, and needed only for what it gives."""


@dataclass(frozen=True)
class Check:
    """One thing that was looked at."""

    name: str
    state: State
    found: str
    """What there is, in one line."""
    advice: str = ""
    """What to do where it is not ok."""
    needed: bool = True
    """Whether nothing works without it; of the others a wrong one costs no exit code."""

    @property
    def fails(self) -> bool:
        """Whether something that is needed is wrong."""
        return self.needed and self.state == "wrong"
