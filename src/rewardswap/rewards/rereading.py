"""A trajectory's text in the tokens of another model than the one that acted."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from transformers import PreTrainedTokenizerBase

from rewardswap.types import IntArray, Trajectory, Turn

Message = dict[str, str]


def reread(trajectory: Trajectory, tokenizer: PreTrainedTokenizerBase) -> Trajectory:
    """The trajectory as if its text had been said in the tokens of `tokenizer`.

    Observations are the user's messages of a chat and actions the assistant's, the end of message
    included; what the policy was told besides (instructions, its thinking) is not retold. Where the
    template rewrites history, the next turn starts a row of its own. log-probs are 0: nothing was
    sampled. What was not read after the last action is not read here either, nor is it behind
    history that is rewritten. Raises ValueError naming the task for an action without any token,
    and for a template that fails.
    """
    chat = _Chat(tokenizer, trajectory)
    turns = tuple(_turn(chat, turn, k) for k, turn in enumerate(trajectory.turns))
    final = chat.context(trajectory.final_observation, len(turns))
    if not len(trajectory.final_context_ids) or not chat.extends:
        final = final[:0]
    return replace(trajectory, turns=turns, final_context_ids=final)


def _turn(chat: "_Chat", turn: Turn, k: int) -> Turn:
    context = chat.context(turn.observation, k)
    extends = chat.extends
    action = chat.action(turn.action, k)
    return replace(
        turn,
        context_ids=context,
        extends=extends,
        action_ids=action,
        logprobs=np.zeros(len(action), dtype=np.float32),
    )


class _Chat:
    """One episode told turn by turn; `extends` says whether the latest prompt continued the row."""

    def __init__(self, tokenizer: PreTrainedTokenizerBase, trajectory: Trajectory) -> None:
        self.tokenizer: Any = tokenizer
        self.special = set(tokenizer.all_special_ids)
        self.name = f"task {trajectory.task.id!r}, episode {trajectory.index}"
        self.messages: list[Message] = []
        self.told = ""
        self.extends = False
        self.ended: int | None = None

    def context(self, observation: str, turn: int) -> IntArray:
        """Tokens between the last action and the next one, or of the whole prompt."""
        self.messages.append({"role": "user", "content": observation})
        prompt = self._render(self.messages, turn)
        self.extends = bool(self.told) and prompt.startswith(self.told)
        ids = self._tokens(prompt.removeprefix(self.told) if self.extends else prompt)
        self.told = prompt
        if self.extends and self.ended is not None and ids[:1] == [self.ended]:
            ids = ids[1:]
        return np.array(ids, dtype=np.int64)

    def action(self, action: str, turn: int) -> IntArray:
        """Tokens of an action, with the special token that the template ends a message by."""
        self.messages.append({"role": "assistant", "content": action})
        following = self._render([*self.messages, {"role": "user", "content": "x"}], turn)
        self.told += _gap(self.told, action, following) + action
        behind = following.removeprefix(self.told)
        first = self._tokens(behind)[:1] if following.startswith(self.told) else []
        self.ended = first[0] if first and first[0] in self.special else None
        ids = self._tokens(action) + ([] if self.ended is None else [self.ended])
        if not ids:
            raise ValueError(
                f"turn {turn} of {self.name} says {action!r}, which has no token in the backbone's "
                "tokenizer, and its chat template ends a message by none"
            )
        return np.array(ids, dtype=np.int64)

    def _tokens(self, text: str) -> list[int]:
        ids: list[int] = self.tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _render(self, messages: Sequence[Message], turn: int) -> str:
        try:
            text: str = self.tokenizer.apply_chat_template(
                list(messages), tokenize=False, add_generation_prompt=True
            )
        except Exception as error:  # a template raises whatever its expressions do
            raise ValueError(
                f"the backbone's chat template fails at turn {turn} of {self.name}: {error}; give "
                "a backbone whose template takes a chat of user and assistant"
            ) from error
        return text


def _gap(prompt: str, action: str, told: str) -> str:
    """Space that a template writes between a header and what was said; a model says none."""
    said = told.removeprefix(prompt)
    gap = said[: len(said) - len(said.lstrip())]
    return gap if told.startswith(prompt + gap + action) else ""
