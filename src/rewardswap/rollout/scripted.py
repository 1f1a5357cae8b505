"""An engine that says what it is told to: for demonstrations, replays of experts, and tests."""

from collections.abc import Callable, Iterable, Sequence

import numpy as np

from rewardswap.rollout.engine import Completion, Request, SamplingParams
from rewardswap.types import IntArray

Script = Callable[[Request, IntArray], Sequence[int]]
"""What to say: from the request and all tokens of its session so far, prompt included."""


class ScriptedEngine:
    """Plays given tokens; each has the log-probability `logprob`, which no model computed.

    An action ends with its first end token and is cut at the token cap. Raises ValueError where
    the script says nothing or a session extends a prompt that is not there.
    """

    def __init__(
        self,
        script: Script,
        end_token_ids: Sequence[int],
        *,
        logprob: float = -1.0,
        context_limit: int = 4096,
    ) -> None:
        self._script = script
        self.end_token_ids = frozenset(end_token_ids)
        self.logprob = logprob
        self._context_limit = context_limit
        self._history: dict[str, IntArray] = {}

    @property
    def context_limit(self) -> int:
        """Most tokens of a session."""
        return self._context_limit

    @property
    def sessions(self) -> tuple[str, ...]:
        """Names of the sessions that live."""
        return tuple(self._history)

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions that are over."""
        for session in sessions:
            self._history.pop(session, None)

    def generate(self, requests: Sequence[Request], sampling: SamplingParams) -> list[Completion]:
        """What the script says, one action per request."""
        if len({request.session for request in requests}) != len(requests):
            raise ValueError("two requests of one call name the same session")
        return [self._say(request, sampling.max_tokens) for request in requests]

    def _say(self, request: Request, max_tokens: int) -> Completion:
        history = request.context_ids
        if request.extends:
            if request.session not in self._history:
                raise ValueError(f"session {request.session!r} extends a prompt that is not there")
            history = np.concatenate([self._history[request.session], history])
        if len(history) + max_tokens > self._context_limit:
            raise ValueError(
                f"session {request.session!r} needs {len(history) + max_tokens} tokens with its "
                f"action, the context holds {self._context_limit}; end the episode before"
            )
        ids = np.array(self._script(request, history), dtype=np.int64)[:max_tokens]
        ends = np.flatnonzero(np.isin(ids, sorted(self.end_token_ids)))
        ids = ids[: ends[0] + 1] if len(ends) else ids
        if len(ids) == 0:
            raise ValueError(f"the script says nothing in session {request.session!r}")
        self._history[request.session] = np.concatenate([history, ids])
        logprobs = np.full(len(ids), self.logprob, dtype=np.float32)
        return Completion(ids, logprobs, truncated=len(ends) == 0)
