"""The contract of an engine, filled by transformers' `generate` over the whole prompt of a turn."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import numpy as np
import torch

from rewardswap.rollout.engine import Completion, RandomKey, Request, SamplingParams
from rewardswap.types import IntArray


class ScratchEngine:
    """All that is asked for is one batch, padded on the left, and ends when its last action ends.

    It draws tokens as `generate` does, but only what `said` has of each action can be drawn, so
    that another engine's episodes are played again. Log-probs are left out (all 0).
    """

    def __init__(
        self,
        model: Any,
        end_token_ids: Sequence[int],
        pad_token_id: int,
        said: Mapping[RandomKey, IntArray],
    ) -> None:
        self._model = model
        self._end, self._pad = list(end_token_ids), pad_token_id
        self._said = said
        self._told: dict[str, IntArray] = {}
        self._asked: list[Request] = []
        self._sampling = SamplingParams()

    @property
    def context_limit(self) -> int:
        """Most tokens of an episode."""
        return int(self._model.config.max_position_embeddings)

    def submit(self, requests: Sequence[Request], sampling: SamplingParams) -> None:
        """Put what is new behind all that was read and said."""
        for request in requests:
            before = self._told[request.session] if request.extends else []
            ids = np.concatenate([before, request.context_ids]).astype(np.int64)
            self._told[request.session] = ids
            self._asked.append(request)
        self._sampling = sampling

    @torch.inference_mode()
    def wait(self) -> list[Completion]:
        """The actions of all that was asked for."""
        asked, self._asked = self._asked, []
        prompts = [self._told[request.session] for request in asked]
        width = max(map(len, prompts))
        ids = torch.full((len(asked), width), self._pad)
        mask = torch.zeros_like(ids)
        for row, prompt in enumerate(prompts):
            ids[row, width - len(prompt) :] = torch.from_numpy(prompt)
            mask[row, width - len(prompt) :] = 1
        device = self._model.device
        script = torch.full((len(asked), self._sampling.max_tokens), self._pad)
        for row, request in enumerate(asked):
            action = self._said[request.random_key]
            script[row, : len(action)] = torch.from_numpy(action)
        script = script.to(device)

        def only_said(tokens: torch.Tensor, scores: torch.Tensor) -> torch.Tensor:
            allowed = script[:, tokens.shape[1] - width, None]
            return torch.full_like(scores, -torch.inf).scatter(1, allowed, 0.0)

        said = self._model.generate(
            input_ids=ids.to(device),
            attention_mask=mask.to(device),
            max_new_tokens=self._sampling.max_tokens,
            do_sample=True,
            temperature=self._sampling.temperature,
            top_k=0,
            top_p=1.0,
            eos_token_id=self._end,
            pad_token_id=self._pad,
            logits_processor=[only_said],
        )
        rows = said[:, width:].cpu()
        return [self._completion(r.session, row) for r, row in zip(asked, rows, strict=True)]

    def _completion(self, session: str, row: torch.Tensor) -> Completion:
        ends = torch.isin(row, torch.tensor(self._end)).nonzero()
        ids = (row[: int(ends[0]) + 1] if len(ends) else row).numpy().copy()
        self._told[session] = np.concatenate([self._told[session], ids])
        logprobs = np.zeros(len(ids), dtype=np.float32)
        return Completion(session, ids, logprobs, truncated=not len(ends))

    def release(self, sessions: Iterable[str]) -> None:
        """Forget episodes that are over."""
        for session in sessions:
            self._told.pop(session, None)

    def update_weights(self, weights: object) -> None:
        """Nothing is kept of the weights."""
