"""Environments of Gymnasium's registry; only this file imports gymnasium (extra `gymnasium`)."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class GymnasiumMaker:
    """Makes the environment of an id: give it to `SeededWorld`, `check_environment`, a factory.

    Its observations and actions must be of `gymnasium.spaces.Text`; an action that the space does
    not hold is not sent, and the turn is spent (ours).
    """

    id: str
    """Name in the registry, with the module in front that registers it: `my_games:Guess-v0`."""
    settings: Mapping[str, Any] = field(default_factory=dict)
    """Further arguments of `gymnasium.make`."""

    @property
    def label(self) -> str:
        """What the world is called."""
        return self.id

    def __call__(self) -> Any:
        """A new environment; raises ValueError without gymnasium."""
        try:
            import gymnasium
        except ImportError as error:
            raise ValueError(
                f"{self.id} needs gymnasium; pip install 'rewardswap[gymnasium]'"
            ) from error
        return gymnasium.make(self.id, **self.settings)
