"""The contract of an engine: token ids in, sampled token ids and their log-probs out."""

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
from torch import Tensor

from rewardswap.checks import LEAST_TEMPERATURE
from rewardswap.types import FloatArray, IntArray

RandomKey = tuple[int, int]
"""Two 64-bit words that name one stream of random numbers."""

Weights = Path | Iterable[tuple[str, Tensor]]
"""A folder as `save_pretrained` writes it, or all weights by the names that they have in it."""


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How tokens are drawn: what survives top_k, then top_p, then min_p, is normalised again."""

    temperature: float = 1.0
    """0 is greedy; log-probs are then those at temperature 1."""
    max_tokens: int = 24
    """Most tokens of one action."""
    top_p: float = 1.0
    """Only the most probable tokens whose probabilities add up to this; 1: all."""
    top_k: int = 0
    """Only this many most probable tokens; 0: all."""
    min_p: float = 0.0
    """Only tokens that have at least this share of the most probable one's probability; 0: all."""

    def __post_init__(self) -> None:
        greedy = self.temperature == 0
        if not (greedy or LEAST_TEMPERATURE <= self.temperature < float("inf")):
            raise ValueError(
                f"temperature must be 0 or at least {LEAST_TEMPERATURE}, got {self.temperature}"
            )
        if self.max_tokens < 1:
            raise ValueError(f"max_tokens must be at least 1, got {self.max_tokens}")
        if not 0 < self.top_p <= 1:
            raise ValueError(f"top_p must be above 0 and at most 1, got {self.top_p}")
        if self.top_k < 0:
            raise ValueError(f"top_k must be at least 0, got {self.top_k}")
        if not 0 <= self.min_p < 1:
            raise ValueError(f"min_p must be at least 0 and below 1, got {self.min_p}")

    @property
    def truncates(self) -> bool:
        """Whether some tokens are never drawn: then log-probs are not the policy's own."""
        return self.top_p < 1 or self.top_k > 0 or self.min_p > 0

    @property
    def text(self) -> str:
        """The temperature, and what truncates."""
        kept = {"top_p": self.top_p < 1, "top_k": self.top_k > 0, "min_p": self.min_p > 0}
        names = ["temperature", *(name for name, truncates in kept.items() if truncates)]
        return ", ".join(f"{name} {getattr(self, name):g}" for name in names)


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

    session: str
    ids: IntArray
    """Sampled tokens, with the end token if it was sampled."""
    logprobs: FloatArray
    """log-probability of each token in the distribution that it was drawn from."""
    truncated: bool
    """Whether `max_tokens` came before an end token."""


@runtime_checkable
class RolloutEngine(Protocol):
    """Samples actions for many episodes at once; none waits for the others' actions to end.

    What a session samples depends on its tokens, its random key and the weights alone, beyond
    rounding: not on what else is asked for, nor on what ends first.
    """

    @property
    def context_limit(self) -> int:
        """Most tokens of a session, prompts and actions together."""
        ...

    def submit(self, requests: Sequence[Request], sampling: SamplingParams) -> None:
        """Ask for actions.

        Raises ValueError, and then takes none of the requests, for a session that is asked for
        already, for one that extends a prompt that is not there, and for a prompt that leaves no
        room for a whole action.
        """
        ...

    def wait(self) -> list[Completion]:
        """What has ended by now, at least one action while any is asked for."""
        ...

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions, also in the middle of an action."""
        ...

    def update_weights(self, weights: Weights) -> None:
        """Sample from these weights from now on; what was kept of earlier ones is forgotten.

        Raises ValueError while a session lives.
        """
        ...

    def close(self) -> None:
        """Give memory and connections back; the engine is not used again."""
        ...


@runtime_checkable
class CountsTroubles(Protocol):
    """An engine that counts what went wrong and was put right."""

    def counted(self) -> Mapping[str, int]:
        """How often what happened since this was asked last, by the metric that counts it."""
        ...


def complete(
    engine: RolloutEngine, requests: Sequence[Request], sampling: SamplingParams
) -> list[Completion]:
    """One action per request, in their order, when all of them have ended."""
    engine.submit(requests, sampling)
    ended: dict[str, Completion] = {}
    while len(ended) < len(requests):
        ended |= {completion.session: completion for completion in engine.wait()}
    return [ended[request.session] for request in requests]


def random_key(seed: int, policy_version: int, task_id: str, index: int, turn: int) -> RandomKey:
    """The stream that belongs to one turn of one episode, the same in every process."""
    text = f"{seed}\x1f{policy_version}\x1f{task_id}\x1f{index}\x1f{turn}"
    digest = hashlib.sha256(text.encode()).digest()
    return int.from_bytes(digest[:8], "little"), int.from_bytes(digest[8:16], "little")


def uniforms(key: RandomKey, count: int) -> np.ndarray:
    """`count` numbers in [0, 1) of the stream `key`, one per token (Philox, counter-based)."""
    return np.random.Generator(np.random.Philox(key=np.array(key, dtype=np.uint64))).random(count)
