"""What is known of every slot of a cache: how far it is read, and the action in progress there."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from rewardswap.rollout.engine import Completion, Request, SamplingParams, uniforms
from rewardswap.types import FloatArray, IntArray

COLUMNS = ("stored", "last", "live", "_counts", "_caps")
TABLES = ("_ids", "_logprobs", "_drawn")


class Slots:
    """One row per slot; slots without an action in progress keep their last token."""

    def __init__(self, end_token_ids: Sequence[int]) -> None:
        self.end_token_ids = np.array(sorted(set(end_token_ids)), dtype=np.int64)
        self.stored: IntArray = np.zeros(0, dtype=np.int64)
        """Tokens whose keys and values are in the cache."""
        self.last: IntArray = np.zeros(0, dtype=np.int64)
        """The last sampled token, which the cache does not hold yet."""
        self.live: NDArray[np.bool_] = np.zeros(0, dtype=np.bool_)
        """Whether an action is in progress that has not ended."""
        self.sampling: list[SamplingParams] = []
        self._counts: IntArray = np.zeros(0, dtype=np.int64)
        self._caps: IntArray = np.zeros(0, dtype=np.int64)
        self._ids: IntArray = np.zeros((0, 0), dtype=np.int64)
        self._logprobs: FloatArray = np.zeros((0, 0), dtype=np.float32)
        self._drawn: NDArray[np.float64] = np.zeros((0, 0))

    def reserve(self, slots: int, tokens: int) -> None:
        """Have room for `slots` actions of `tokens` tokens; what is there stays."""
        more = max(0, slots - self._ids.shape[0])
        wider = max(0, tokens - self._ids.shape[1])
        for name in COLUMNS:
            setattr(self, name, np.pad(getattr(self, name), (0, more)))
        for name in TABLES:
            setattr(self, name, np.pad(getattr(self, name), ((0, more), (0, wider))))
        self.sampling += [SamplingParams()] * more

    def move(self, sources: Sequence[int], targets: Sequence[int]) -> None:
        """Copy row `sources[i]` to row `targets[i]`, all at once."""
        for name in (*COLUMNS, *TABLES):
            values = getattr(self, name)
            values[list(targets)] = values[list(sources)]
        moved = [self.sampling[source] for source in sources]
        for target, sampling in zip(targets, moved, strict=True):
            self.sampling[target] = sampling

    def begin(self, slot: int, request: Request, sampling: SamplingParams) -> None:
        """An action begins, behind what the slot holds or from the start."""
        if not request.extends:
            self.stored[slot] = 0
        self.live[slot] = True
        self.sampling[slot] = sampling
        self._counts[slot], self._caps[slot] = 0, sampling.max_tokens
        drawn = uniforms(request.random_key, sampling.max_tokens)
        self._drawn[slot, : sampling.max_tokens] = drawn

    def drawn(self, rows: IntArray) -> NDArray[np.float64]:
        """The number in [0, 1) of each row's next token."""
        numbers: NDArray[np.float64] = self._drawn[
            rows, np.minimum(self._counts[rows], self._drawn.shape[1] - 1)
        ]
        return numbers

    def say(
        self,
        rows: IntArray,
        tokens: IntArray,
        logprobs: FloatArray,
    ) -> None:
        """One more token of the rows in progress; the others' are nobody's."""
        live = self.live[rows]
        rows, tokens = rows[live], tokens[live]
        self._ids[rows, self._counts[rows]] = tokens
        self._logprobs[rows, self._counts[rows]] = logprobs[live]
        self._counts[rows] += 1
        self.last[rows] = tokens
        under_cap = self._counts[rows] < self._caps[rows]
        self.live[rows] = under_cap & ~np.isin(tokens, self.end_token_ids)

    def completion(self, session: str, slot: int) -> Completion:
        """The action that has ended in a slot."""
        count = self._counts[slot]
        return Completion(
            session,
            self._ids[slot, :count].copy(),
            self._logprobs[slot, :count].copy(),
            truncated=not bool(np.isin(self.last[slot], self.end_token_ids)),
        )
