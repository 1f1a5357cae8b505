"""ALFWorld: official games from a folder, or freshly generated ones."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from rewardswap.checks import at_least
from rewardswap.env_config.base import EnvironmentConfig, Wording
from rewardswap.envs.base import World

TaskType = Literal[
    "look_at_obj_in_light",
    "pick_and_place_simple",
    "pick_clean_then_place_in_recep",
    "pick_cool_then_place_in_recep",
    "pick_heat_then_place_in_recep",
    "pick_two_obj_and_place",
]
GENERATED = ("generated_games", "generated_seed", "generated_type")
"""Settings of the generator."""
HELD_OUT_GAMES = 400
"""Size of the generated held-out split where no number is set: standard error below .025."""


@dataclass(frozen=True)
class Alfworld(EnvironmentConfig):
    """ALFWorld's text games."""

    agent: ClassVar[str] = "base-agent"

    split: str | None = None
    """Split that is evaluated; none: valid_seen of official games, held_out of generated ones."""
    turn_limit: int | None = None
    """Most turns of an episode, in turns; none: 50 in official games (as the field), 12 in
    generated ones, whose rooms are small."""
    games: Path | None = None
    """Folder of official ALFWorld games (`json_2.1.1` of alfworld-download); none: generated."""
    wording: Wording | None = None
    """Observations in the engine's own words, or shortened for small models (ours); none: what
    `observation_wording` in the model's config.json says, full where it says nothing."""
    generated_games: int = 4000
    """Size of the generated training split, in games."""
    generated_seed: int = 0
    """Seed of the generated games."""
    generated_type: TaskType | None = None
    """Type of the generated games; none: all six, equally likely."""

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, generated_games=self.generated_games)

    @property
    def turns(self) -> int:
        """The turn cap in force, in turns."""
        if self.turn_limit is not None:
            return self.turn_limit
        return 12 if self.games is None else 50

    @property
    def panel_split(self) -> str:
        """The split that is evaluated."""
        return self.split or ("held_out" if self.games is None else "valid_seen")

    def world(self, wording: Wording) -> World:
        """The official games of a folder, or freshly generated ones."""
        from rewardswap.envs.alfworld.generator import GeneratedWorld
        from rewardswap.envs.alfworld.world import AlfworldWorld

        style = self.wording or wording
        if self.games is not None:
            return AlfworldWorld(self.games, style=style, turn_limit=self.turns)
        return GeneratedWorld(
            seed=self.generated_seed,
            train=self.generated_games,
            held_out=self.evaluation_tasks or HELD_OUT_GAMES,
            style=style,
            turn_limit=self.turns,
            task_type=self.generated_type,
        )

    def decided(self, wording: Wording) -> "Alfworld":
        """The same with split, turn cap and wording as they are in force."""
        return replace(
            self,
            split=self.panel_split,
            turn_limit=self.turns,
            wording=self.wording or wording,
        )

    def idle(self) -> Mapping[str, Collection[str]]:
        """Settings of the generator, where the games are official ones, and those of prompts."""
        if self.games is None:
            return super().idle()
        return {**super().idle(), "in official games": GENERATED}
