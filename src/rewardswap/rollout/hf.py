"""Sampling from a Hugging Face causal LM, with the cache of every live episode kept."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor, nn

from rewardswap.rollout.engine import Completion, Request, SamplingParams, uniforms
from rewardswap.rollout.slot_model import SlotModel
from rewardswap.types import IntArray


@dataclass(slots=True)
class _Session:
    """What the cache holds of one live episode."""

    slot: int
    length: int = 0
    """Tokens whose keys and values are stored."""
    pending: int = -1
    """The last sampled token: it is read with the next turn."""


class HuggingFaceEngine:
    """Samples from the very module that is trained: there is no copy that could grow stale.

    Only new tokens are fed at a turn. A session belongs to the weights it began with, so release
    all sessions before the weights change. Raises ValueError for a model that cannot be served
    so, and for a request that does not fit the context.
    """

    def __init__(self, model: nn.Module, end_token_ids: Sequence[int]) -> None:
        if not end_token_ids:
            raise ValueError("an engine needs at least one end token, got none")
        self.end_token_ids = torch.tensor(sorted(set(end_token_ids)))
        self._model = SlotModel(model)
        self._sessions: dict[str, _Session] = {}
        self.fed_tokens = 0
        """Tokens that the model has read so far, padding not counted."""

    @property
    def context_limit(self) -> int:
        """Most tokens of a session: the model's positions."""
        return self._model.context_limit

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions that are over; without any left the cache itself goes."""
        for session in sessions:
            self._sessions.pop(session, None)
        if not self._sessions:
            self._model.forget()

    def generate(self, requests: Sequence[Request], sampling: SamplingParams) -> list[Completion]:
        """One sampled action per request, in their order."""
        if not requests:
            return []
        if len({request.session for request in requests}) != len(requests):
            raise ValueError("two requests of one call name the same session")
        reads = {request.session: self._new_tokens(request) for request in requests}
        self._refuse_too_long(requests, reads, sampling.max_tokens)
        self._line_up(requests, reads, sampling.max_tokens)
        rows = sorted(requests, key=lambda request: self._sessions[request.session].slot)
        with self._model.serving():
            completions = self._complete(rows, [reads[r.session] for r in rows], sampling)
        by_session = {r.session: c for r, c in zip(rows, completions, strict=True)}
        return [by_session[request.session] for request in requests]

    def _new_tokens(self, request: Request) -> IntArray:
        """The tokens that the cache has not seen: the last sampled one and what came after it."""
        if not request.extends:
            tokens = request.context_ids
        elif request.session not in self._sessions:
            raise ValueError(f"session {request.session!r} extends a prompt that is not there")
        else:
            last = np.array([self._sessions[request.session].pending], dtype=np.int64)
            tokens = np.concatenate([last, request.context_ids])
        if len(tokens) == 0:
            raise ValueError(f"session {request.session!r} has no token to read")
        return tokens

    def _start(self, request: Request) -> int:
        return self._sessions[request.session].length if request.extends else 0

    def _refuse_too_long(
        self, requests: Sequence[Request], reads: dict[str, IntArray], max_tokens: int
    ) -> None:
        for request in requests:
            needed = self._start(request) + len(reads[request.session]) + max_tokens
            if needed > self.context_limit:
                raise ValueError(
                    f"session {request.session!r} needs {needed} tokens with its action, the "
                    f"context holds {self.context_limit}; end the episode before"
                )

    def _line_up(
        self, requests: Sequence[Request], reads: dict[str, IntArray], max_tokens: int
    ) -> None:
        """The asked sessions get the first slots; few slots are copied, only where one is free."""
        widest = max(len(tokens) for tokens in reads.values())
        width = max(self._start(request) for request in requests) + widest + max_tokens
        asked = [request.session for request in requests]
        others = sorted(self._sessions.keys() - set(asked))
        old = {name: session.slot for name, session in self._sessions.items()}
        count = len(asked)
        new = {
            **_placed(asked, old, range(count)),
            **_placed(others, old, range(count, count + len(others))),
        }
        self._model.reserve(max([count + len(others), *(slot + 1 for slot in old.values())]), width)
        moved = [name for name, slot in old.items() if new[name] != slot]
        if moved:
            self._model.move([old[name] for name in moved], [new[name] for name in moved])
        for request in requests:
            if not request.extends:
                self._sessions[request.session] = _Session(slot=-1)
        for name, slot in new.items():
            self._sessions[name].slot = slot

    def _complete(
        self, requests: Sequence[Request], reads: Sequence[IntArray], sampling: SamplingParams
    ) -> list[Completion]:
        """Row i is slot i: read the new tokens, sample an action, remember where it ended."""
        starts = torch.tensor([self._sessions[request.session].length for request in requests])
        lengths = starts + torch.tensor([len(tokens) for tokens in reads])
        self.fed_tokens += int((lengths - starts).sum())
        hidden = self._model.read(reads, starts)
        drawn = np.stack([uniforms(r.random_key, sampling.max_tokens) for r in requests])
        ids, logprobs, counts = self._decode(hidden, lengths, torch.from_numpy(drawn), sampling)
        ends = torch.isin(ids[torch.arange(len(requests)), counts - 1], self.end_token_ids)
        completions: list[Completion] = []
        for n, request in enumerate(requests):
            count, session = int(counts[n]), self._sessions[request.session]
            session.length = int(lengths[n]) + count - 1
            session.pending = int(ids[n, count - 1])
            sampled, logprob = ids[n, :count].numpy().copy(), logprobs[n, :count].numpy().copy()
            completions.append(Completion(sampled, logprob, truncated=not bool(ends[n])))
        return completions

    def _decode(
        self, hidden: Tensor, lengths: Tensor, drawn: Tensor, sampling: SamplingParams
    ) -> tuple[Tensor, Tensor, Tensor]:
        """Token after token until every row has ended: ids, log-probs, tokens per row.

        Rows that have ended stay in the batch until fewer than half are left, because a whole
        block of slots is read without copying it.
        """
        count = len(lengths)
        ids = torch.zeros(count, sampling.max_tokens, dtype=torch.int64)
        logprobs = torch.zeros(count, sampling.max_tokens)
        counts = torch.zeros(count, dtype=torch.int64)
        active = torch.ones(count, dtype=torch.bool)
        rows = torch.arange(count)
        for step in range(sampling.max_tokens):
            logits = self._model.logits(hidden)
            token, logprob = _sample(logits, drawn[rows, step], sampling.temperature)
            live = active[rows]
            ids[rows[live], step] = token[live]
            logprobs[rows[live], step] = logprob[live]
            counts[rows[live]] += 1
            active[rows] &= ~torch.isin(token, self.end_token_ids)
            if step + 1 == sampling.max_tokens or not active.any():
                break
            if 2 * int(active.sum()) < len(rows):
                kept = active[rows]
                rows, token = rows[kept], token[kept]
            positions = (lengths[rows] + counts[rows] - 1)[:, None]
            block = len(rows) == count
            hidden = self._model.forward(token[:, None], positions, None if block else rows)[:, 0]
            self.fed_tokens += int(active.sum())
        return ids, logprobs, counts


def _placed(sessions: Sequence[str], old: dict[str, int], slots: range) -> dict[str, int]:
    """A slot of `slots` for each session: its own where it has one of them."""
    staying = {name: old[name] for name in sessions if old.get(name, -1) in slots}
    free = iter(sorted(set(slots) - set(staying.values())))
    return {name: staying[name] if name in staying else next(free) for name in sessions}


def _sample(logits: Tensor, drawn: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Inverse CDF in float64; the log-prob in float32 at the sampling temperature."""
    distribution = torch.log_softmax(logits.float() / (temperature or 1.0), dim=-1)
    if temperature == 0:
        token = distribution.argmax(dim=-1)
    else:
        cumulative = distribution.double().exp().cumsum(dim=-1)
        level = drawn.to(logits.device)[:, None] * cumulative[:, -1:]
        token = torch.searchsorted(cumulative, level, right=True)[:, 0]
        token = token.clamp(max=logits.shape[-1] - 1)
    return token.cpu(), distribution.gather(-1, token[:, None])[:, 0].cpu()
