"""Where an episode is cut off."""

from dataclasses import dataclass
from typing import Literal

CutActions = Literal["sent", "end"]
"""Whether an action that the token cap cut is sent as it is, or ends the episode unsent."""


@dataclass(frozen=True)
class Limits:
    """Where an episode is cut off."""

    turns: int
    cut_actions: CutActions
    seconds: float | None

    def __post_init__(self) -> None:
        if self.turns < 1:
            raise ValueError(f"turn_limit must be at least 1, got {self.turns}")
        if self.seconds is not None and not self.seconds > 0:
            raise ValueError(f"episode_seconds must be above 0, got {self.seconds}")
