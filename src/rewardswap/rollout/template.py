"""What a tokenizer's chat template does with a chat."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from jinja2 import TemplateError
from transformers import PreTrainedTokenizerBase

from rewardswap.rollout.formats import Tool
from rewardswap.types import IntArray

MARK = "rewardswapmark"
"""Stands for a text while a template is read."""

Message = dict[str, str]


class ChatTemplate:
    """Renders chats as text; without `thinking` a switch `enable_thinking` of it is off.

    `tools` are told by the template where it can: `tells_tools` says whether.
    Raises ValueError for a tokenizer without a chat template.
    """

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        tools: Sequence[Tool] = (),
        *,
        thinking: bool = True,
    ) -> None:
        if not getattr(tokenizer, "chat_template", None):
            raise ValueError(
                f"tokenizer {tokenizer.name_or_path!r} has no chat template; save one as "
                "chat_template.jinja in the model's folder"
            )
        self.tokenizer: Any = tokenizer
        self.name: str = tokenizer.name_or_path
        self._switches: dict[str, Any] = {} if thinking else {"enable_thinking": False}
        self.tells_tools = bool(tools) and self._tells(tools)
        if self.tells_tools:
            self._switches["tools"] = [dict(tool) for tool in tools]

    def has_system_role(self) -> bool:
        """Whether a message of the system is told; some templates raise, some leave it out."""
        chat = [{"role": "system", "content": MARK}, {"role": "user", "content": "x"}]
        try:
            return MARK in self._apply(chat)
        except TemplateError:
            return False

    def render(self, messages: Sequence[Message]) -> str:
        """The chat up to the header of the next action, as text; ValueError for a bad template."""
        try:
            return self._apply(messages)
        except TemplateError as error:
            reason = (
                f"the chat template of {self.name!r}, or the one given in its place, cannot be "
                f"used: {error}"
            )
            raise ValueError(reason) from error

    def tokens(self, text: str) -> IntArray:
        """Tokens of rendered text; the template has put every special token itself."""
        return np.array(self.tokenizer.encode(text, add_special_tokens=False), dtype=np.int64)

    def _tells(self, tools: Sequence[Tool]) -> bool:
        marked = [{**t, "function": {**t["function"], "description": MARK}} for t in tools]
        try:
            return MARK in self._apply([{"role": "user", "content": "x"}], tools=marked)
        except TemplateError:
            return False

    def _apply(self, messages: Sequence[Message], **changes: Any) -> str:
        try:
            text: str = self.tokenizer.apply_chat_template(
                list(messages),
                tokenize=False,
                add_generation_prompt=True,
                **{**self._switches, **changes},
            )
        except Exception as error:  # a template raises whatever its expressions do
            raise TemplateError(str(error)) from error
        return text
