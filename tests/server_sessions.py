"""Sessions that servers are asked about at once, and what they say with the weights of a seed."""

from collections.abc import Sequence

import numpy as np

from made import small_llama
from rewardswap.rollout.engine import Completion, Request, SamplingParams, complete
from rewardswap.rollout.hf import HuggingFaceEngine

ENDS = (1, 2)
SAMPLING = SamplingParams(temperature=0.7, max_tokens=4)
SESSIONS = [f"episode {n}" for n in range(12)]


def asking(sessions: Sequence[str]) -> list[Request]:
    words = np.array([3, 4, 5], dtype=np.int64)
    return [Request(session, words, False, (n, 40)) for n, session in enumerate(sessions)]


def tokens(completions: Sequence[Completion]) -> dict[str, list[int]]:
    return {one.session: one.ids.tolist() for one in completions}


def wanted(seed: int = 0) -> dict[str, list[int]]:
    reading = HuggingFaceEngine(small_llama(seed), ENDS)
    found = {}
    for request in asking(SESSIONS):
        key = ((request.random_key[0] ^ request.random_key[1]) >> 1, 0)  # as the server draws
        one = Request(request.session, request.context_ids, False, key)
        found |= tokens(complete(reading, [one], SAMPLING))
        reading.release([request.session])
    return found
