"""The full history as a growing chat, token by token as it was read and sampled."""

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from rewardswap.envs.base import Observation
from rewardswap.types import IntArray

MARK = "rewardswapmark"
"""Stands for the assistant's text while a template is read."""
PLAIN, THINKING = "go to shelf 1", "<think>where is it</think>go to shelf 1"
"""Assistant texts by which a template shows whether it rewrites history."""

Message = dict[str, str]


class ChatContext:
    """Prompts by a tokenizer's chat template.

    Between two actions stands what the template puts after the assistant's text: the end token
    exactly once (sampled, or in the context if the action was cut), the next observation, and the
    header of the next action. Where a template rewrites history (such as one that strips earlier
    thinking) the next turn starts anew with a whole prompt.

    Raises ValueError for a tokenizer without a chat template, and for a template whose own end of
    a message is not among the end tokens.
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
        self.may_extend = self._extends(PLAIN)
        """Whether the template keeps the history of plain actions."""
        self.always_extends = self.may_extend and self._extends(THINKING)
        """Whether it keeps any history, so that no prompt needs to be looked at again."""
        self._following = lru_cache(maxsize=65536)(self._tokenise_following)
        self._refuse_unknown_end()

    def conversation(self, observation: Observation) -> "ChatConversation":
        """A new episode that begins with `observation`."""
        return ChatConversation(self, observation.text)

    def read(self, ids: IntArray) -> tuple[str, bool]:
        """What was said, without surrounding space, is the action; every text is in form."""
        return self.said(ids).strip(), True

    def said(self, ids: IntArray) -> str:
        """The sampled text, without special tokens."""
        kept = [int(token) for token in ids if int(token) not in self.end_token_ids]
        text: str = self.tokenizer.decode(kept, skip_special_tokens=True)
        return text

    def opening(self, observation: str) -> list[Message]:
        """The messages in front of the first action."""
        system = [{"role": "system", "content": self.system}] if self.system else []
        return [*system, {"role": "user", "content": observation}]

    def render(self, messages: Sequence[Message]) -> str:
        """The chat up to the header of the next action, as text; ValueError for a bad template."""
        try:
            text: str = self.tokenizer.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=True
            )
        except TemplateError as error:
            name = self.tokenizer.name_or_path
            raise ValueError(f"the chat template of {name!r} cannot be used: {error}") from error
        return text

    def tokens(self, text: str) -> IntArray:
        """Tokens of rendered text; the template has put every special token itself."""
        return np.array(self.tokenizer.encode(text, add_special_tokens=False), dtype=np.int64)

    def following(self, action_ids: IntArray, observation: str) -> IntArray:
        """Tokens after the last sampled one: the end token unless sampled, what was said, header.

        The same observation is tokenised once.
        """
        end, rest = self._following(observation)
        ended = int(action_ids[-1]) in self.end_token_ids
        return np.array(rest if end is None or ended else (end, *rest), dtype=np.int64)

    def _tokenise_following(self, observation: str) -> tuple[int | None, tuple[int, ...]]:
        ids = tuple(int(token) for token in self.tokens(self._text_following(observation)))
        if ids and ids[0] in self.end_token_ids:
            return ids[0], ids[1:]
        return None, ids

    def _text_following(self, observation: str) -> str:
        text = self.render([*self.opening("x"), *_exchange(MARK, observation)])
        if MARK not in text:
            raise ValueError(
                f"the chat template of tokenizer {self.tokenizer.name_or_path!r} leaves out what "
                "the assistant said; use one that keeps the whole chat"
            )
        return text.split(MARK, 1)[1]

    def _extends(self, said: str) -> bool:
        """Whether the prompts of turns two and three begin with all that was read and said."""
        chat = self.opening("look")
        prompt = self.render(chat)
        for observation in ("x", "y"):
            chat += _exchange(said, observation)
            if self.render(chat) != prompt + said + self._text_following(observation):
                return False
            prompt = self.render(chat)
        return True

    def _refuse_unknown_end(self) -> None:
        """The special token behind an action must be an end token or the next message's header."""
        first = self.tokens(self._text_following("x"))[:1].tolist()
        special = set(self.tokenizer.all_special_ids)
        header = self.tokens(self.render(self.opening(MARK)).split(MARK, 1)[0]).tolist()
        known = self.end_token_ids | set([token for token in header if token in special][-1:])
        if first and first[0] in special - known:
            name = self.tokenizer.convert_ids_to_tokens(first[0])
            raise ValueError(
                f"the chat template ends an action with {name!r}, which is no end token, so no "
                f"action would ever end; add {first[0]} to eos_token_id of the model's "
                "generation_config.json"
            )


class ChatConversation:
    """One episode's chat: hands out the tokens that stand in front of each action."""

    def __init__(self, context: ChatContext, observation: str) -> None:
        self._context = context
        self._messages = context.opening(observation)
        self._prompt = context.render(self._messages)
        self.context_ids = context.tokens(self._prompt)
        """Tokens in front of the next action, since the last sampled one where `extends`."""
        self.extends = False
        """Whether the next prompt is the previous prompt, its action, and `context_ids`."""
        self.token_count = len(self.context_ids)
        """Tokens of the next prompt, all in all."""
        self.counted: tuple[str, ...] = ()
        """What the next prompt counts as: `rewritten_history` where it does not extend the last."""

    def reply(self, action_ids: IntArray, action: str, observation: Observation) -> None:
        """The agent said `action_ids`, which reads `action`; the world answered `observation`."""
        context = self._context
        self.extends = context.always_extends or self._kept(action, observation.text)
        self.counted = () if self.extends else ("rewritten_history",)
        if self.extends:
            self.context_ids = context.following(action_ids, observation.text)
            self.token_count += len(action_ids) + len(self.context_ids)
        else:
            self.context_ids = context.tokens(self._prompt)
            self.token_count = len(self.context_ids)

    def _kept(self, action: str, observation: str) -> bool:
        """Whether the template keeps what stood before `observation` as it was."""
        before = self._prompt + action
        self._messages += _exchange(action, observation)
        self._prompt = self._context.render(self._messages)
        return self._context.may_extend and self._prompt.startswith(before)


def _exchange(said: str, observation: str) -> list[Message]:
    return [
        {"role": "assistant", "content": said},
        {"role": "user", "content": observation},
    ]
