"""Sessions of an engine that reads whole prompts: all their tokens, and what vLLM must be asked."""

from collections.abc import Iterable, Sequence

import numpy as np

from rewardswap.rollout.engine import Completion, RandomKey, Request, SamplingParams
from rewardswap.rollout.sessions import Sessions
from rewardswap.types import IntArray

LEAST_TEMPERATURE, MOST_TEMPERATURE = 0.01, 2.0
"""vLLM takes a lower one for this and refuses a higher one."""


class Transcripts:
    """The tokens of every live session, and which actions are awaited, in the order of asking.

    Raises ValueError without an end token.
    """

    def __init__(self, context_limit: int, end_token_ids: Sequence[int]) -> None:
        if not end_token_ids:
            raise ValueError("an engine needs at least one end token, got none")
        self.sessions = Sessions(context_limit)
        self.end_token_ids = tuple(dict.fromkeys(end_token_ids))
        self.awaited: dict[str, int] = {}
        """Token cap of the action that a session waits for."""
        self._tokens: dict[str, list[IntArray]] = {}

    def ask(self, requests: Sequence[Request], sampling: SamplingParams) -> list[list[int]]:
        """Take the requests' prompts in; each one whole. Raises ValueError and then takes none."""
        refuse_other_numbers(sampling)
        self.sessions.ask(requests, sampling.max_tokens)
        return [self._read(request, sampling.max_tokens) for request in requests]

    def answer(self, session: str, ids: Sequence[int], logprobs: Sequence[float]) -> Completion:
        """Take an action in; raises ValueError where it does not stop at its first end token."""
        cap = self.awaited.pop(session)
        ended = [place for place, token in enumerate(ids, 1) if token in self.end_token_ids]
        if len(ids) != len(logprobs) or (ended or [cap])[0] != len(ids):
            raise ValueError(
                f"the action of session {session!r} has {len(ids)} tokens, {len(logprobs)} "
                f"log-probs and end tokens {self.end_token_ids} at {ended} under a cap of {cap}; "
                "let nothing but its first end token and the cap end an action"
            )
        said = np.array(ids, dtype=np.int64)
        self._tokens[session].append(said)
        return self.sessions.answer(
            Completion(session, said, np.array(logprobs, dtype=np.float32), truncated=not ended)
        )

    def release(self, sessions: Iterable[str]) -> list[str]:
        """Forget sessions; those of them that waited for an action."""
        gone = self.sessions.release(sessions)
        for session in gone:
            del self._tokens[session]
        return [session for session in gone if self.awaited.pop(session, None) is not None]

    def _read(self, request: Request, max_tokens: int) -> list[int]:
        before = self._tokens.get(request.session, []) if request.extends else []
        self._tokens[request.session] = [*before, request.context_ids]
        self.awaited[request.session] = max_tokens
        whole: list[int] = np.concatenate(self._tokens[request.session]).tolist()
        return whole


def refuse_other_numbers(sampling: SamplingParams) -> None:
    """Raise ValueError for what vLLM would draw from another distribution than the contract says.

    vLLM cuts by min_p, then top_k, then top_p: with the mass that min_p took away, top_p keeps
    fewer tokens than ours. Greedy, it drops all three, and log-probs are not normalised again.
    """
    temperature = sampling.temperature
    if temperature and not LEAST_TEMPERATURE <= temperature <= MOST_TEMPERATURE:
        raise ValueError(
            f"temperature {temperature} is not one that vLLM takes; use 0 or one from "
            f"{LEAST_TEMPERATURE} to {MOST_TEMPERATURE:g}"
        )
    if temperature == 0 and sampling.truncates:
        raise ValueError(
            "temperature 0 with top_k, top_p or min_p: vLLM would leave these out of the "
            "log-probs; leave them out, the greedy token is the same"
        )
    if sampling.min_p > 0 and sampling.top_p < 1:
        raise ValueError(
            f"min_p {sampling.min_p} with top_p {sampling.top_p}: vLLM cuts by min_p first, the "
            "other engines by top_p; use one of them"
        )


def seed_of(key: RandomKey) -> int:
    """A seed of 63 bits for one action: vLLM's own generator starts from it."""
    return (key[0] ^ key[1]) >> 1
