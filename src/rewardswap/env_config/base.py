"""An environment as a value: the settings that all of them share, and the world they make."""

from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping
from dataclasses import dataclass, fields
from typing import ClassVar, Literal

from rewardswap.checks import at_least
from rewardswap.envs.base import World

Prompt = Literal["chat", "verl_agent"]
Thinking = Literal["template", "kept", "stripped", "forbidden"]
ActionFormat = Literal["text", "tags", "tools"]
Wording = Literal["full", "short"]
"""How a model was trained to read observations: in the environment's own words or shortened."""


@dataclass(frozen=True)
class EnvironmentConfig(ABC):
    """What every environment has to choose; an environment's own file adds what it alone has."""

    agent: ClassVar[str]
    """Name of the small agent that ships for this environment."""
    origin: ClassVar[str] = "origin"
    """What a task's origin is called here."""
    scored: ClassVar[bool] = False
    """Whether the benchmark has a score of its own beside success."""

    split: str | None = None
    """Split that is evaluated; none: the environment's own for it."""
    train_split: str = "train"
    """Split that is trained on."""
    turn_limit: int | None = None
    """Most turns of an episode, in turns; none: the field's."""
    evaluation_tasks: int | None = None
    """How many tasks of the split are evaluated, from its first on; none: every task."""
    prompt: Prompt = "chat"
    """chat: the whole history as a growing chat, actions in `action_format` (ours);
    verl_agent: a fresh prompt each turn with the last turns in it, the action in tags."""
    window: int = 2
    """How many past turns a prompt of verl_agent tells, in turns (verl-agent)."""
    thinking: Thinking = "template"
    """What later prompts of a chat hold of <think>..</think>: template: what the template has;
    kept: all; stripped: none; forbidden: thinking is switched off and not in form (ours)."""
    action_format: ActionFormat = "text"
    """How an action is said in a chat: text: all behind the thinking; tags: <action>..</action>
    behind <think>..</think>; tools: one JSON call of the tool `act` (ours)."""

    def __post_init__(self) -> None:
        at_least(1, turn_limit=self.turns)
        at_least(0, window=self.window)
        if self.evaluation_tasks is not None:
            at_least(1, evaluation_tasks=self.evaluation_tasks)
        default = {setting.name: setting.default for setting in fields(self)}
        for reason, idle in self.idle().items():
            for name in sorted(idle):
                if getattr(self, name) != default[name]:
                    raise ValueError(f"{name} does nothing {reason}")

    @property
    @abstractmethod
    def panel_split(self) -> str:
        """The split that is evaluated."""

    @property
    @abstractmethod
    def turns(self) -> int:
        """The turn cap in force, in turns."""

    @property
    def shares_origins(self) -> bool:
        """Whether the splits are known to share what their tasks are made from."""
        return False

    @abstractmethod
    def world(self, wording: Wording) -> World:
        """The world for a model of this wording; imports what it needs only now.

        Raises ValueError naming what is missing and the way out.
        """

    @abstractmethod
    def decided(self, wording: Wording) -> "EnvironmentConfig":
        """The same with the settings that were left open as a model of this wording has them."""

    def idle(self) -> Mapping[str, Collection[str]]:
        """Settings that do nothing beside the others, by the reason; to set one is an error."""
        if self.prompt == "chat":
            return {"in the chat prompt, which tells every turn": ("window",)}
        return {f"in the prompt {self.prompt}, which has its own": ("thinking", "action_format")}
