"""The contract of an engine: token ids in, sampled token ids and their log-probs out."""

import hashlib
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from rewardswap.types import FloatArray, IntArray

RandomKey = tuple[int, int]
"""Two 64-bit words that name one stream of random numbers."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are drawn."""

    temperature: float = 1.0
    """0 is greedy; log-probs are then those at temperature 1."""
    max_tokens: int = 24
    """Most tokens of one action."""

    def __post_init__(self) -> None:
        if self.temperature < 0:
            raise ValueError(f"temperature must be at least 0, got {self.temperature}")
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")


@dataclass(frozen=True, slots=True)
class Request:
    """One action to sample."""

    session: str
    """Name of the live episode; what it has read and said is kept between its turns."""
    context_ids: IntArray
    """New tokens since the last sampled one, or the whole prompt if `extends` is False."""
    extends: bool
    """Whether the session's earlier tokens stand in front of `context_ids`."""
    random_key: RandomKey
    """The stream of random numbers of this action and of no other."""


@dataclass(frozen=True, slots=True)
class Completion:
    """One sampled action."""

    ids: IntArray
    """Sampled tokens, with the end token if it was sampled."""
    logprobs: FloatArray
    """log-probability of each token at the sampling temperature."""
    truncated: bool
    """Whether `max_tokens` came before an end token."""


@runtime_checkable
class RolloutEngine(Protocol):
    """Samples actions for many episodes at once."""

    @property
    def context_limit(self) -> int:
        """Most tokens of a session, prompts and actions together."""
        ...

    def generate(self, requests: Sequence[Request], sampling: SamplingParams) -> list[Completion]:
        """One completion per request, in their order; no request gives an empty list."""
        ...

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions that are over."""
        ...


def random_key(seed: int, policy_version: int, task_id: str, index: int, turn: int) -> RandomKey:
    """The stream that belongs to one turn of one episode, the same in every process."""
    text = f"{seed}\x1f{policy_version}\x1f{task_id}\x1f{index}\x1f{turn}"
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")


def uniforms(key: RandomKey, count: int) -> np.ndarray:
    """`count` numbers in [0, 1) of the stream `key`, one per token (Philox, counter-based)."""
    return np.random.Generator(np.random.Philox(key=np.array(key, dtype=np.uint64))).random(count)
