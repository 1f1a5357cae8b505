"""A prompt of its own for every turn, worded by a world's `PromptStyle`, token by token."""

from collections import deque
from collections.abc import Sequence

from transformers import PreTrainedTokenizerBase

from rewardswap.envs.base import Observation, PromptStyle
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.formats import Reading
from rewardswap.types import IntArray


class WindowContext:
    """Each turn is one message of the user that tells the latest `window` turns.

    Nothing of an earlier prompt stands in a later one, so every turn is a row of its own. Raises
    ValueError for a negative window and as `ChatContext` does.
    """

    remarks: tuple[str, ...] = ()
    """Nothing to say: there is no system's text, and no history for a template to rewrite."""

    def __init__(
        self,
        tokenizer: PreTrainedTokenizerBase,
        style: PromptStyle,
        end_token_ids: Sequence[int] = (),
        *,
        window: int = 2,
    ) -> None:
        if window < 0:
            raise ValueError(f"window is {window}, expected 0 or more past turns in a prompt")
        self.style = style
        self.window = window
        self._chat = ChatContext(tokenizer, "", end_token_ids)

    def conversation(self, observation: Observation) -> "WindowConversation":
        """A new episode that begins with `observation`."""
        return WindowConversation(self, observation)

    def read(self, ids: IntArray) -> Reading:
        """The action that the style finds in what was said; it is sent, well formed or not."""
        return Reading(*self.style.action(self._chat.said(ids)))

    def following(self, action_ids: IntArray, observation: str) -> IntArray:
        """Tokens that tell `observation` behind the last action, as in a chat."""
        return self._chat.following(action_ids, observation)

    def prompt(self, text: str) -> IntArray:
        """Tokens of a prompt of one message, with the header of the action."""
        template = self._chat.template
        return template.tokens(template.render(self._chat.opening(text)))


class WindowConversation:
    """One episode: hands out the whole prompt of each turn."""

    extends = False
    """No prompt continues another."""

    def __init__(self, context: WindowContext, observation: Observation) -> None:
        self._context = context
        self._first = observation.text
        self._now = observation
        self._taken = 0
        self._history: deque[tuple[str, str]] = deque(maxlen=context.window)
        self._tell()

    def reply(self, action_ids: IntArray, action: str, observation: Observation) -> None:
        """The agent's `action` was sent; the world answered `observation`."""
        self._history.append((self._now.text, action))
        self._now = observation
        self._taken += 1
        self._tell()

    def _tell(self) -> None:
        style, history = self._context.style, tuple(self._history)
        text = style.prompt(self._first, history, self._taken, self._now)
        most = style.most_characters
        too_long = bool(history) and most is not None and len(text) > most
        if too_long:
            text = style.prompt(self._first, (), self._taken, self._now)
        self.counted = ("dropped_history",) if too_long else ()
        """What the next prompt counts as: `dropped_history` where all turns were too long."""
        self.context_ids = self._context.prompt(text)
        """Tokens of the next prompt."""
        self.token_count = len(self.context_ids)
