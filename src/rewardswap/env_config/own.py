"""An environment of one's own, named as `module:attribute`."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from rewardswap.adapters.named import maker_of, world_of
from rewardswap.adapters.seeded import TURN_LIMIT, SeededWorld
from rewardswap.checks import at_least
from rewardswap.env_config.base import EnvironmentConfig, Wording
from rewardswap.envs.base import World
from rewardswap.outside import name_of

HELD_OUT_TASKS = 100
"""Size of the held-out split where no number is set, in seeds (ours)."""


@dataclass(frozen=True)
class Own(EnvironmentConfig):
    """Any environment: in Gymnasium's style (a task is a seed), or a `World`."""

    agent: ClassVar[str] = ""

    split: str | None = None
    """Split that is evaluated; none: held_out."""
    turn_limit: int | None = None
    """Most turns of an episode, in turns; none: the environment's own, 20 where it has none."""
    make: str | None = None
    """MODULE:NAME of a class or function that gives an environment when it is called; modules are
    looked for in the working directory too (docs/environments.md)."""
    train_tasks: int = 1000
    """Size of the training split, in seeds; a `World` has its own."""

    @classmethod
    def of(cls, make: Callable[[], Any], **settings: Any) -> "Own":
        """The settings of what `make` gives; raises ValueError where it cannot be found by name."""
        return cls(make=name_of(make), **settings)

    def __post_init__(self) -> None:
        super().__post_init__()
        at_least(1, train_tasks=self.train_tasks)

    @property
    def turns(self) -> int:
        """The turn cap in force, in turns; 20 where only the environment knows it."""
        return TURN_LIMIT if self.turn_limit is None else self.turn_limit

    @property
    def panel_split(self) -> str:
        """The split that is evaluated."""
        return self.split or "held_out"

    def world(self, wording: Wording) -> World:
        """The world that `make` names; raises ValueError where it names none."""
        if self.make is None:
            raise ValueError(
                "env.make names no environment; give --env.make MODULE:NAME, a class or function "
                "that makes one"
            )
        world = world_of(
            maker_of("env.make", self.make),
            train_tasks=self.train_tasks,
            held_out_tasks=self.evaluation_tasks or HELD_OUT_TASKS,
        )
        if self.train_tasks != type(self).train_tasks and not isinstance(world, SeededWorld):
            raise ValueError(
                f"env.train_tasks does nothing for {type(world).__name__}, which has its own tasks"
            )
        if self.turn_limit is not None:
            world.turn_limit = self.turn_limit
        return world

    def decided(self, wording: Wording) -> "Own":
        """The same with the split and the turn cap in force."""
        limit = self.turn_limit if self.make is None else self.world(wording).turn_limit
        return replace(self, split=self.panel_split, turn_limit=limit)
