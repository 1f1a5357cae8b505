"""The full history as a growing chat, token by token as it was read and sampled."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache

import numpy as np
from transformers import PreTrainedTokenizerBase

from rewardswap.envs.base import Observation
from rewardswap.rollout.formats import Reading, make_format
from rewardswap.rollout.template import MARK, ChatTemplate, Message
from rewardswap.rollout.thinking import checked_thinking, thinks, without_thinking
from rewardswap.types import IntArray

PLAIN, THINKING = "go to shelf 1", "<think>where is it</think>go to shelf 1"
"""Assistant texts by which a template shows whether it rewrites history."""


class ChatContext:
    """Prompts by a tokenizer's chat template.

    Between two actions stands what the template puts after the assistant's text: the end token
    exactly once (sampled, or in the context if the action was cut), the next observation, and the
    header of the next action. Where history is rewritten (by a template that strips earlier
    thinking, or as `thinking` asks) the next turn starts anew with a whole prompt. Where a
    template has no system role, the system's text stands in front of the first observation.

    Raises ValueError for a tokenizer without a chat template, for a template whose own end of a
    message is not among the end tokens, for unknown names of `thinking` and `action_format`, and
    where thinking is to be kept by a template that rewrites even plain history.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        system: str,
        end_token_ids: Sequence[int] = (),
        *,
        thinking: str = "template",
        action_format: str = "text",
    ) -> None:
        self.thinking = checked_thinking(thinking)
        allowed = self.thinking != "forbidden"
        self.format = make_format(action_format, thinking=allowed)
        self.template = ChatTemplate(tokenizer, self.format.tools, thinking=allowed)
        request = "" if self.template.tells_tools else self.format.request
        self.system = "\n\n".join(part for part in (system, request) if part)
        self.system_apart = not self.system or self.template.has_system_role()
        """Whether the system's text, if there is any, is a message of its own."""
        own = tokenizer.eos_token_id
        self.end_token_ids = frozenset([*end_token_ids, *([] if own is None else [own])])
        self.may_extend = self._extends(PLAIN)
        """Whether the template keeps the history of plain actions."""
        if self.thinking == "kept" and not self.may_extend:
            raise ValueError(
                f"thinking 'kept' needs a chat template that keeps history, that of "
                f"{self.template.name!r} rewrites even plain actions; take 'template'"
            )
        self.always_extends = self.thinking == "kept" or self._extends(THINKING)
        """Whether any history is kept, so that no prompt needs to be looked at again."""
        self._following = lru_cache(maxsize=65536)(self._tokenise_following)
        self._refuse_unknown_end()

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of results must know of the template, a sentence each."""
        apart = "The chat template has no system role: the instructions are in the first message."
        anew = "The chat template rewrites its history: every turn is a row of its own."
        said = ((not self.system_apart, apart), (not self.may_extend, anew))
        return tuple(remark for holds, remark in said if holds)

    def conversation(self, observation: Observation) -> "ChatConversation":
        """A new episode that begins with `observation`."""
        return ChatConversation(self, observation.text)

    def read(self, ids: IntArray) -> Reading:
        """The action in what was sampled; where thinking is forbidden, it is not in form."""
        said = self.said(ids)
        reading = self.format.read(said)
        if self.thinking == "forbidden" and thinks(said):
            return replace(reading, well_formed=False)
        return reading

    def said(self, ids: IntArray) -> str:
        """The sampled text, without special tokens."""
        kept = [int(token) for token in ids if int(token) not in self.end_token_ids]
        text: str = self.template.tokenizer.decode(kept, skip_special_tokens=True)
        return text

    def opening(self, observation: str) -> list[Message]:
        """The messages in front of the first action."""
        if not self.system:
            return [{"role": "user", "content": observation}]
        if not self.system_apart:
            return [{"role": "user", "content": f"{self.system}\n\n{observation}"}]
        system = {"role": "system", "content": self.system}
        return [system, {"role": "user", "content": observation}]

    def exchange(self, said: str, observation: str) -> list[Message]:
        """What the agent said, as later prompts tell it, and the observation behind it."""
        told = without_thinking(said) if self.thinking == "stripped" else said
        return [
            {"role": "assistant", "content": told},
            {"role": "user", "content": observation},
        ]

    def following(self, action_ids: IntArray, observation: str) -> IntArray:
        """Tokens after the last sampled one: the end token unless sampled, what was said, header.

        The same observation is tokenised once.
        """
        end, rest = self._following(observation)
        ended = int(action_ids[-1]) in self.end_token_ids
        return np.array(rest if end is None or ended else (end, *rest), dtype=np.int64)

    def _tokenise_following(self, observation: str) -> tuple[int | None, tuple[int, ...]]:
        ids = tuple(int(token) for token in self.template.tokens(self._text_following(observation)))
        if ids and ids[0] in self.end_token_ids:
            return ids[0], ids[1:]
        return None, ids

    def _text_following(self, observation: str) -> str:
        text = self.template.render([*self.opening("x"), *self.exchange(MARK, observation)])
        if MARK not in text:
            raise ValueError(
                f"the chat template of tokenizer {self.template.name!r} leaves out what "
                "the assistant said; use one that keeps the whole chat"
            )
        return text.split(MARK, 1)[1]

    def _extends(self, said: str) -> bool:
        """Whether the prompts of turns two and three begin with all that was read and said."""
        chat = self.opening("look")
        prompt = self.template.render(chat)
        for observation in ("x", "y"):
            chat += self.exchange(said, observation)
            told = self.template.render(chat)
            if behind(prompt, told) != said + self._text_following(observation):
                return False
            prompt = told
        return True

    def _refuse_unknown_end(self) -> None:
        """The special token behind an action must be an end token or the next message's header."""
        tokenizer = self.template.tokenizer
        first = self.template.tokens(self._text_following("x"))[:1].tolist()
        special = set(tokenizer.all_special_ids)
        opening = self.template.render(self.opening(MARK)).split(MARK, 1)[0]
        header = self.template.tokens(opening).tolist()
        known = self.end_token_ids | set([token for token in header if token in special][-1:])
        if first and first[0] in special - known:
            name = tokenizer.convert_ids_to_tokens(first[0])
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
        self._prompt = context.template.render(self._messages)
        self.context_ids = context.template.tokens(self._prompt)
        """Tokens in front of the next action, since the last sampled one where `extends`."""
        self.extends = False
        """Whether the next prompt is the previous prompt, its action, and `context_ids`."""
        self.token_count = len(self.context_ids)
        """Tokens of the next prompt, all in all."""
        self.counted: tuple[str, ...] = ()
        """What the next prompt counts as: `rewritten_history` where it does not extend the last."""

    def reply(self, action_ids: IntArray, action: str, observation: Observation) -> None:
        """The agent said `action_ids`, with `action` in it; the world answered `observation`."""
        context = self._context
        self.extends = context.always_extends or self._kept(action_ids, observation.text)
        self.counted = () if self.extends else ("rewritten_history",)
        if self.extends:
            self.context_ids = context.following(action_ids, observation.text)
            self.token_count += len(action_ids) + len(self.context_ids)
        else:
            self.context_ids = context.template.tokens(self._prompt)
            self.token_count = len(self.context_ids)

    def _kept(self, action_ids: IntArray, observation: str) -> bool:
        """Whether what stood before `observation` is told as it was."""
        context, prompt = self._context, self._prompt
        said = context.said(action_ids).strip()
        self._messages += context.exchange(said, observation)
        self._prompt = context.template.render(self._messages)
        told = behind(prompt, self._prompt)
        return context.may_extend and told is not None and told.startswith(said)


def behind(prompt: str, told: str) -> str | None:
    """What `told` says behind `prompt`; None if it does not begin with it.

    Space between a header and what was said is the sampled text's own: some templates write one.
    """
    return told.removeprefix(prompt).lstrip() if told.startswith(prompt) else None
