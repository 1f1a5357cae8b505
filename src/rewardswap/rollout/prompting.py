"""How an episode becomes prompts: the contract, and the choice of a style by name."""

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

from transformers import PreTrainedTokenizerBase

from rewardswap.envs.base import Observation, World
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.formats import Reading
from rewardswap.rollout.window import WindowContext
from rewardswap.types import IntArray

CHAT = "chat"
"""The style that every world has: the whole history as a growing chat."""


@runtime_checkable
class Conversation(Protocol):
    """One episode: hands out the tokens that stand in front of each action."""

    @property
    def context_ids(self) -> IntArray:
        """Tokens in front of the next action, since the last sampled one where `extends`."""
        ...

    @property
    def extends(self) -> bool:
        """Whether the next prompt is the previous prompt, its action, and `context_ids`."""
        ...

    @property
    def token_count(self) -> int:
        """Tokens of the next prompt, all in all."""
        ...

    @property
    def counted(self) -> tuple[str, ...]:
        """The counters of `episodes.COUNTERS` that the next prompt adds one to."""
        ...

    def reply(self, action_ids: IntArray, action: str, observation: Observation) -> None:
        """The agent said `action_ids`, of which `action` was sent; the world answered."""
        ...


@runtime_checkable
class Context(Protocol):
    """Makes prompts of episodes, and reads actions in what was sampled."""

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of results must know of how prompts are made, a sentence each."""
        ...

    def conversation(self, observation: Observation) -> Conversation:
        """A new episode that begins with `observation`."""
        ...

    def read(self, ids: IntArray) -> Reading:
        """The action to send, or why none is, and whether what was sampled has the form."""
        ...

    def following(self, action_ids: IntArray, observation: str) -> IntArray:
        """Tokens of an episode's last observation, behind its last sampled one."""
        ...


def make_context(
    tokenizer: PreTrainedTokenizerBase,
    world: World,
    style: str = CHAT,
    end_token_ids: Sequence[int] = (),
    *,
    window: int = 2,
    thinking: str = "template",
    action_format: str = "text",
) -> Context:
    """Prompts of a world in a style: CHAT, or one of its own that tells `window` past turns.

    `thinking` and `action_format` speak of the chat alone: a style of a world has its own.
    Raises ValueError for a style that the world does not have, and as the contexts do.
    """
    if style == CHAT:
        return ChatContext(
            tokenizer,
            world.instructions,
            end_token_ids,
            thinking=thinking,
            action_format=action_format,
        )
    if style not in world.prompt_styles:
        raise ValueError(
            f"this world has no prompt style {style!r} as it is worded; it has "
            f"{[CHAT, *world.prompt_styles]}; pages in short wording, which the small agents read, "
            "have no other: give a model that reads whole sentences"
        )
    return WindowContext(tokenizer, world.prompt_styles[style], end_token_ids, window=window)
