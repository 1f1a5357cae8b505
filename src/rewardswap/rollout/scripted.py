"""An engine that plays given texts: for tests, demonstrations and expert replay."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from rewardswap.rollout.engine import Completion, Request, SamplingParams
from rewardswap.types import IntArray

Script = Callable[[str, int], Sequence[int]]
"""(session, number of the turn) to the tokens of the action."""


class ScriptedEngine:
    """Plays `script` and gives every token the same log-probability, which no model computed.

    An action ends with its first end token and is cut at the token cap. Raises ValueError where
    the script says nothing, a prompt is extended that is not there, or the context is too short.
    """

    def __init__(
        self,
        script: Script,
        end_token_ids: Sequence[int],
        *,
        logprob: float = -1.0,
        context_limit: int = 4096,
    ) -> None:
        self.script = script
        self.end_token_ids = frozenset(end_token_ids)
        self.logprob = logprob
        self._limit = context_limit
        self.turns: dict[str, int] = {}
        self.lengths: dict[str, int] = {}
        """Tokens that each live session has read and said."""
        self.read: dict[str, list[IntArray]] = {}
        """Contexts that each session was given, in order."""

    @property
    def context_limit(self) -> int:
        """Most tokens of a session."""
        return self._limit

    def generate(self, requests: Sequence[Request], sampling: SamplingParams) -> list[Completion]:
        """The scripted action of each request, cut to `max_tokens`."""
        if len({request.session for request in requests}) != len(requests):
            raise ValueError("two requests of one call name the same session")
        return [self._complete(request, sampling) for request in requests]

    def _complete(self, request: Request, sampling: SamplingParams) -> Completion:
        session = request.session
        if request.extends and session not in self.turns:
            raise ValueError(f"session {session!r} extends a prompt that is not there")
        before = self.lengths[session] if request.extends else 0
        length = before + len(request.context_ids)
        if length + sampling.max_tokens > self._limit:
            raise ValueError(
                f"session {session!r} needs {length + sampling.max_tokens} tokens with its action, "
                f"the context holds {self._limit}; end the episode before"
            )
        turn = self.turns.get(session, 0)
        said = list(self.script(session, turn))[: sampling.max_tokens]
        if not said:
            raise ValueError(f"the script says nothing in turn {turn} of session {session!r}")
        ends = [place for place, token in enumerate(said) if token in self.end_token_ids]
        ids = np.array(said[: ends[0] + 1] if ends else said, dtype=np.int64)
        self.turns[session], self.lengths[session] = turn + 1, length + len(ids)
        self.read.setdefault(session, []).append(request.context_ids)
        logprobs = np.full(len(ids), self.logprob, dtype=np.float32)
        return Completion(ids, logprobs, truncated=not ends)

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions that are over; what they read is kept for inspection."""
        for session in sessions:
            self.turns.pop(session, None)
            self.lengths.pop(session, None)
