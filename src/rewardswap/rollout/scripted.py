"""An engine that plays given texts: for tests, demonstrations and expert replay."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from rewardswap.rollout.engine import Completion, Request, SamplingParams
from rewardswap.types import IntArray

Script = Callable[[str, int], Sequence[int]]
"""(session, number of the turn) to the tokens of the action."""


class ScriptedEngine:
    """Plays `script` and gives every token the same log-probability."""

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
        turn = self.turns.get(session, 0)
        self.turns[session] = turn + 1
        self.read.setdefault(session, []).append(request.context_ids)
        ids = np.array(self.script(session, turn), dtype=np.int64)[: sampling.max_tokens]
        logprobs = np.full(len(ids), self.logprob, dtype=np.float32)
        return Completion(ids, logprobs, truncated=int(ids[-1]) not in self.end_token_ids)

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions that are over; what they read is kept for inspection."""
        for session in sessions:
            self.turns.pop(session, None)
