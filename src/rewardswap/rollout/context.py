"""The full history as a growing chat, token by token as it was read and sampled."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerBase

from rewardswap.types import IntArray

MARK = "rewardswapmark"
"""Stands for the assistant's text while a template is read."""
PROBES = ("go to shelf 1", "<think>where is it</think>go to shelf 1")
"""Assistant texts by which a template shows whether it rewrites history."""

Message = dict[str, str]


class ChatContext:
    """Prompts by a tokenizer's chat template.

    Between two actions stands what the template puts after the assistant's text: the end token
    exactly once (sampled, or in the context if the action was cut), the next observation, and the
    header of the next action. A template that rewrites history (such as one that strips earlier
    thinking) cannot extend a prompt: every turn then starts a row of its own with a whole prompt.
    """

    def __init__(
        self, tokenizer: PreTrainedTokenizerBase, system: str, end_token_ids: Sequence[int] = ()
    ) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ValueError(
                f"tokenizer {tokenizer.name_or_path!r} has no chat template; save one as "
                "chat_template.jinja in the model's folder"
            )
        self.tokenizer: Any = tokenizer
        self.system = system
        own = tokenizer.eos_token_id
        self.end_token_ids = frozenset([*end_token_ids, *([] if own is None else [own])])
        self.extends = all(self._extends(probe) for probe in PROBES)
        self._following = lru_cache(maxsize=65536)(self._tokenise_following)

    def conversation(self, observation: str) -> "Conversation":
        """A new episode that begins with `observation`."""
        return Conversation(self, observation)

    def action_text(self, ids: IntArray) -> str:
        """The sampled text, without end tokens and surrounding space."""
        kept = [int(token) for token in ids if int(token) not in self.end_token_ids]
        text: str = self.tokenizer.decode(kept, skip_special_tokens=True)
        return text.strip()

    def render(self, messages: Sequence[Message]) -> str:
        """The chat up to the header of the next action, as text."""
        text: str = self.tokenizer.apply_chat_template(
            list(messages), tokenize=False, add_generation_prompt=True
        )
        return text

    def tokens(self, text: str) -> IntArray:
        """Tokens of rendered text; the template has put every special token itself."""
        ids = self.tokenizer.encode(text, add_special_tokens=False)
        return np.array(ids, dtype=np.int64)

    def opening(self, observation: str) -> list[Message]:
        """The messages in front of the first action."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": observation}]

    def following(self, observation: str) -> tuple[int | None, tuple[int, ...]]:
        """The end token after an action, and the tokens from there to the next action."""
        result: tuple[int | None, tuple[int, ...]] = self._following(observation)
        return result

    def _tokenise_following(self, observation: str) -> tuple[int | None, tuple[int, ...]]:
        messages = [
            *self.opening("x"),
            {"role": "assistant", "content": MARK},
            {"role": "user", "content": observation},
        ]
        suffix = self.render(messages).split(MARK, 1)[1]
        ids = [int(token) for token in self.tokens(suffix)]
        if ids and ids[0] in self.end_token_ids:
            return ids[0], tuple(ids[1:])
        return None, tuple(ids)

    def _extends(self, said: str) -> bool:
        """Whether the prompt of turn two begins with prompt and action of turn one."""
        opening = self.opening("look")
        reply = [*opening, {"role": "assistant", "content": said}, {"role": "user", "content": "x"}]
        third = [*reply, {"role": "assistant", "content": said}, {"role": "user", "content": "y"}]
        first, second = self.render(opening), self.render(reply)
        return second.startswith(first + said) and self.render(third).startswith(second + said)


class Conversation:
    """One episode's chat: hands out the tokens that stand in front of each action."""

    def __init__(self, context: ChatContext, observation: str) -> None:
        self._context = context
        self._messages = context.opening(observation)
        self.context_ids = context.tokens(context.render(self._messages))
        """Tokens in front of the next action, since the last sampled one where `extends`."""
        self.extends = False
        """Whether the next prompt is the previous prompt, its action, and `context_ids`."""
        self.token_count = len(self.context_ids)
        """Tokens of the next prompt, all in all."""

    def reply(self, action_ids: IntArray, action: str, observation: str) -> None:
        """The agent said `action_ids`, the environment answered `observation`."""
        context = self._context
        if context.extends:
            end, rest = context.following(observation)
            ended = int(action_ids[-1]) in context.end_token_ids
            ids = rest if end is None or ended else (end, *rest)
            self.context_ids = np.array(ids, dtype=np.int64)
            self.extends = True
            self.token_count += len(action_ids) + len(ids)
            return
        self._messages += [
            {"role": "assistant", "content": action},
            {"role": "user", "content": observation},
        ]
        self.context_ids = context.tokens(context.render(self._messages))
        self.token_count = len(self.context_ids)
