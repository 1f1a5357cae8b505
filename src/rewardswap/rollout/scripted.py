"""An engine that plays given texts: for tests, demonstrations and expert replay."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from rewardswap.rollout.engine import Completion, Request, SamplingParams, Weights
from rewardswap.rollout.sessions import Sessions
from rewardswap.types import IntArray

Script = Callable[[str, int], Sequence[int]]
"""(session, number of the turn) to the tokens of the action."""


class ScriptedEngine:
    """Plays `script` and gives every token the same log-probability, which no model computed.

    An action ends with its first end token and is cut at the token cap. Of what is asked for,
    `at_once` actions end at a time, the last ones first; none: all, in order. Raises ValueError
    where the script says nothing.
    """

    def __init__(
        self,
        script: Script,
        end_token_ids: Sequence[int],
        *,
        logprob: float = -1.0,
        context_limit: int = 4096,
        at_once: int | None = None,
    ) -> None:
        self.script = script
        self.end_token_ids = frozenset(end_token_ids)
        self.logprob = logprob
        self.at_once = at_once
        self.sessions = Sessions(context_limit)
        self.turns: dict[str, int] = {}
        self.read: dict[str, list[IntArray]] = {}
        """Contexts that each session was given, in order."""
        self._ended: list[Completion] = []

    @property
    def context_limit(self) -> int:
        """Most tokens of a session."""
        return self.sessions.context_limit

    def submit(self, requests: Sequence[Request], sampling: SamplingParams) -> None:
        """Ask for the scripted actions, each cut to `max_tokens`."""
        self.sessions.ask(requests, sampling.max_tokens)
        for request in requests:
            turn = self.turns.get(request.session, 0)
            self.turns[request.session] = turn + 1
            self.read.setdefault(request.session, []).append(request.context_ids)
            self._ended.append(self._complete(request.session, turn, sampling.max_tokens))

    def wait(self) -> list[Completion]:
        """The next actions that end."""
        if self.at_once is None:
            ended, self._ended = self._ended, []
        else:
            ended = self._ended[: -self.at_once - 1 : -1]
            del self._ended[-self.at_once :]
        return [self.sessions.answer(completion) for completion in ended]

    def _complete(self, session: str, turn: int, max_tokens: int) -> Completion:
        said = list(self.script(session, turn))[:max_tokens]
        if not said:
            raise ValueError(f"the script says nothing in turn {turn} of session {session!r}")
        ends = [place for place, token in enumerate(said) if token in self.end_token_ids]
        ids = np.array(said[: ends[0] + 1] if ends else said, dtype=np.int64)
        logprobs = np.full(len(ids), self.logprob, dtype=np.float32)
        return Completion(session, ids, logprobs, truncated=not ends)

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions that are over; what they read is kept for inspection."""
        gone = self.sessions.release(sessions)
        for session in gone:
            self.turns.pop(session, None)  # none where the script raised
        self._ended = [completion for completion in self._ended if completion.session not in gone]

    def update_weights(self, weights: Weights) -> None:
        """Nothing changes: the script has no weights."""
        self.sessions.refuse_live()

    def close(self) -> None:
        """There is nothing to give back."""
