"""The engine of a run as a value."""

from dataclasses import dataclass
from typing import Literal

from rewardswap.checks import at_least
from rewardswap.rollout.episodes import CutActions
from rewardswap.rollout.hf import REFILL

EngineName = Literal["hugging_face"]


@dataclass(frozen=True)
class RolloutConfig:
    """What samples actions, and how many episodes it plays at once."""

    engine: EngineName = "hugging_face"
    """hugging_face: the very module that is trained."""
    slots: int | None = None
    """Most episodes that live at once, in episodes; none: all of a collection. Fewer need less
    memory for keys and values; they change no number beyond rounding."""
    refill: float = REFILL
    """Share of the actions in progress that end before their episodes go on (ours): a small one,
    and no episode waits long for another's action; 1: prompts are read in the largest batches."""

    cut_actions: CutActions = "sent"
    """Whether an action that the token cap cut is sent as it is (verl-agent), or ends the episode
    unsent (ours)."""
    episode_seconds: float | None = None
    """Most seconds of an episode, looked at behind every turn; none: any. With a limit the same
    seed may not give the same episodes."""

    def __post_init__(self) -> None:
        at_least(1, slots=1 if self.slots is None else self.slots)
        if not 0 < self.refill <= 1:
            raise ValueError(f"refill must be above 0 and at most 1, got {self.refill}")
        if self.episode_seconds is not None and not self.episode_seconds > 0:
            raise ValueError(f"episode_seconds must be above 0, got {self.episode_seconds}")
