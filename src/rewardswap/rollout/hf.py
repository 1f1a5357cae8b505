"""Sampling from a Hugging Face causal LM, with the cache of every live episode kept."""

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from rewardswap.rollout.engine import Completion, Request, SamplingParams, uniforms
from rewardswap.rollout.slot_cache import SlotCache
from rewardswap.types import IntArray


class HuggingFaceEngine:
    """Samples from the very module that is trained: there is no copy that could grow stale.

    Only new tokens are fed at a turn. A session belongs to the weights it began with, so release
    all sessions before the weights change.
    """

    def __init__(self, model: nn.Module, end_token_ids: Sequence[int]) -> None:
        if not end_token_ids:
            raise ValueError("an engine needs at least one end token, got none")
        self.model = model
        self.end_token_ids = torch.tensor(sorted(set(end_token_ids)))
        self._trunk: Any = model.get_decoder()  # type: ignore[operator]
        self._head: Any = model.get_output_embeddings()  # type: ignore[operator]
        accepted = inspect.signature(self._trunk.forward).parameters
        self._cache_name = "cache" if "cache" in accepted else "past_key_values"
        self._cache = SlotCache()
        self._slot: dict[str, int] = {}
        self._length: dict[str, int] = {}
        self._pending: dict[str, int] = {}
        self.fed_tokens = 0

    @property
    def context_limit(self) -> int:
        """Most tokens of a session: the model's positions, or its attention window if shorter."""
        config: Any = self.model.config
        limits = [getattr(config, "max_position_embeddings", None)]
        if getattr(config, "use_sliding_window", True):
            limits.append(getattr(config, "sliding_window", None))
        return min(int(limit) for limit in limits if limit)

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions that are over; without any left the cache itself goes."""
        for session in sessions:
            self._slot.pop(session, None)
            self._length.pop(session, None)
            self._pending.pop(session, None)
        if not self._slot:
            self._cache = SlotCache()

    @torch.inference_mode()
    def generate(self, requests: Sequence[Request], sampling: SamplingParams) -> list[Completion]:
        """Sample one action per request; order is kept."""
        if not requests:
            return []
        if len({request.session for request in requests}) != len(requests):
            raise ValueError("two requests of one call name the same session")
        training = self.model.training
        self.model.eval()
        try:
            return self._generate(requests, sampling)
        finally:
            self.model.train(training)

    def _generate(self, requests: Sequence[Request], sampling: SamplingParams) -> list[Completion]:
        fed = [self._new_tokens(request) for request in requests]
        starts = [self._length.get(r.session, 0) if r.extends else 0 for r in requests]
        self._line_up(requests, fed, starts, sampling.max_tokens)
        lengths = torch.tensor([s + len(f) for s, f in zip(starts, fed, strict=True)])
        hidden = self._feed(fed, starts)
        drawn = np.stack([uniforms(r.random_key, sampling.max_tokens) for r in requests])
        ids, logprobs, counts = self._decode(hidden, lengths, torch.from_numpy(drawn), sampling)
        ends = torch.isin(ids[torch.arange(len(requests)), counts - 1], self.end_token_ids)
        completions: list[Completion] = []
        for n, request in enumerate(requests):
            count = int(counts[n])
            self._length[request.session] = int(lengths[n]) + count - 1
            self._pending[request.session] = int(ids[n, count - 1])
            completions.append(
                Completion(
                    ids=ids[n, :count].numpy().copy(),
                    logprobs=logprobs[n, :count].numpy().copy(),
                    truncated=not bool(ends[n]),
                )
            )
        return completions

    def _new_tokens(self, request: Request) -> IntArray:
        """The tokens that the cache has not seen: the last sampled one and what came after it."""
        if not request.extends:
            tokens = request.context_ids
        elif request.session not in self._pending:
            raise ValueError(f"session {request.session!r} extends a prompt that is not there")
        else:
            last = np.array([self._pending[request.session]], dtype=np.int64)
            tokens = np.concatenate([last, request.context_ids])
        if len(tokens) == 0:
            raise ValueError(f"session {request.session!r} has no token to read")
        return tokens

    def _line_up(
        self,
        requests: Sequence[Request],
        fed: Sequence[IntArray],
        starts: Sequence[int],
        max_tokens: int,
    ) -> None:
        """Slot i belongs to request i; sessions that are not asked for move behind."""
        widest = max(len(tokens) for tokens in fed)
        ends = max(starts) + widest + max_tokens
        asked = [request.session for request in requests]
        others = [session for session in self._slot if session not in set(asked)]
        count = len(asked) + len(others)
        free = iter(sorted(set(range(count)) - set(self._slot.values())))
        self._cache.reserve(max([count, *(slot + 1 for slot in self._slot.values())]), ends)
        order = [self._slot[s] if s in self._slot else next(free) for s in (*asked, *others)]
        if order != list(range(len(order))):
            self._cache.permute(torch.tensor(order))
        self._slot = {session: n for n, session in enumerate((*asked, *others))}

    def _feed(self, fed: Sequence[IntArray], starts: Sequence[int]) -> Tensor:
        """Run the new tokens of all rows; the hidden state at each row's last real token."""
        widest = max(len(tokens) for tokens in fed)
        ids = np.zeros((len(fed), widest), dtype=np.int64)
        for row, tokens in zip(ids, fed, strict=True):
            row[: len(tokens)] = tokens
        self.fed_tokens += sum(len(tokens) for tokens in fed)
        positions = torch.tensor(starts)[:, None] + torch.arange(widest)
        hidden = self._forward(torch.from_numpy(ids), positions, None)
        last = torch.tensor([len(tokens) - 1 for tokens in fed])
        return hidden[torch.arange(len(fed)), last.to(hidden.device)]

    def _forward(self, ids: Tensor, positions: Tensor, rows: Tensor | None) -> Tensor:
        """Hidden states of new tokens at their positions, attending to all before them."""
        device = next(self.model.parameters()).device
        placed = positions.to(device)
        self._cache.place(None if rows is None else rows.to(device), len(ids), placed)
        seen = torch.arange(int(positions.max()) + 1, device=device)
        attends = seen[None, None, None, :] <= placed[:, None, :, None]
        output = self._trunk(
            input_ids=ids.to(device),
            attention_mask=attends,
            position_ids=placed,
            use_cache=True,
            **{self._cache_name: self._cache},
        )
        hidden: Tensor = output.last_hidden_state
        return hidden

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
            token, logprob = _sample(self._head(hidden), drawn[rows, step], sampling.temperature)
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
            hidden = self._forward(token[:, None], positions, None if block else rows)[:, 0]
            self.fed_tokens += int(active.sum())
        return ids, logprobs, counts


def _sample(logits: Tensor, drawn: Tensor, temperature: float) -> tuple[Tensor, Tensor]:
    """Inverse CDF in float64; the log-prob in float32 at the sampling temperature."""
    scaled = logits.float().cpu() / (temperature or 1.0)
    distribution = torch.log_softmax(scaled, dim=-1)
    if temperature == 0:
        token = distribution.argmax(dim=-1)
    else:
        cumulative = distribution.double().exp().cumsum(dim=-1)
        level = drawn[:, None] * cumulative[:, -1:]
        token = torch.searchsorted(cumulative, level, right=True)[:, 0]
        token = token.clamp(max=logits.shape[-1] - 1)
    return token, distribution.gather(-1, token[:, None])[:, 0]
