"""A Hugging Face causal LM that reads rows of different lengths behind what it has read before."""

import inspect
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from rewardswap.rollout.slot_cache import SlotCache
from rewardswap.types import IntArray

MASKED_ATTENTION = ("eager", "sdpa")
"""Attention implementations of transformers that take a mask of our own."""


def _rotation_limits(config: Any) -> list[int]:
    """Positions up to which rotations are the same whatever else a pass reads.

    Behind the original positions of `longrope` all keys are rotated otherwise, those of earlier
    tokens and of other rows too: what was kept of them would be stale.
    """
    rope = getattr(config, "rope_parameters", None) or {}
    kinds = [rope, *(part for part in rope.values() if isinstance(part, dict))]
    return [
        int(kind["original_max_position_embeddings"])
        for kind in kinds
        if kind.get("rope_type") == "longrope"
    ]


class SlotModel:
    """Trunk, head and cache of a model; the trunk runs on new tokens only, the head where asked.

    Raises ValueError if the model's attention takes no mask, or if two rows read in two pieces do
    not get the logits that the model itself gives them.
    """

    def __init__(self, model: nn.Module) -> None:
        self._model = cast(Any, model)
        config: Any = self._model.config.get_text_config()
        self._name = type(model).__name__
        if config._attn_implementation not in MASKED_ATTENTION:
            raise ValueError(
                f"attention {config._attn_implementation!r} of {self._name} takes no mask per row; "
                f"load the model with attn_implementation one of {MASKED_ATTENTION}"
            )
        self._trunk: Any = self._model.get_decoder()
        self._head: Any = self._model.get_output_embeddings()
        accepted = inspect.signature(self._trunk.forward).parameters
        self._cache_name = "cache" if "cache" in accepted else "past_key_values"
        positions = getattr(config, "max_position_embeddings", None)
        if positions is None:
            raise ValueError(
                f"{self._name} names no max_position_embeddings; use a decoder that does"
            )
        self.context_limit = min([int(positions), *_rotation_limits(config)])
        windowed = getattr(config, "use_sliding_window", True)
        self._window = getattr(config, "sliding_window", None) if windowed else None
        self._layer_types = set(getattr(config, "layer_types", None) or ())
        self._cache = SlotCache()
        self._prove()

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        device: torch.device = next(self._model.parameters()).device
        return device

    @contextmanager
    def serving(self) -> Iterator[None]:
        """No gradient and no dropout within."""
        training = self._model.training
        self._model.eval()
        try:
            with torch.inference_mode():
                yield
        finally:
            self._model.train(training)

    def forget(self) -> None:
        """Give the memory of all slots back."""
        self._cache = SlotCache()

    def reserve(self, slots: int, width: int) -> None:
        """Have room for `slots` rows of `width` tokens."""
        self._cache.reserve(slots, width)

    def move(self, sources: Sequence[int], targets: Sequence[int]) -> None:
        """Copy what slot `sources[i]` holds to slot `targets[i]`."""
        device = self.device
        self._cache.move(torch.tensor(sources, device=device), torch.tensor(targets, device=device))

    def read(
        self, reads: Sequence[IntArray], starts: IntArray, rows: IntArray | None = None
    ) -> Tensor:
        """Run row i's new tokens behind `starts[i]` old ones: hidden state at its last token."""
        counts = np.array([len(tokens) for tokens in reads])
        ids = np.zeros((len(reads), counts.max()), dtype=np.int64)
        for row, tokens in zip(ids, reads, strict=True):
            row[: len(tokens)] = tokens
        hidden = self.forward(ids, starts[:, None] + np.arange(ids.shape[1]), rows)
        return hidden[np.arange(len(reads)), counts - 1]

    def forward(self, ids: IntArray, positions: IntArray, rows: IntArray | None) -> Tensor:
        """Hidden states of new tokens of slots `rows`, or of the first slots in order."""
        device = self.device
        placed = torch.from_numpy(positions).to(device)
        self._cache.place(None if rows is None else torch.from_numpy(rows).to(device), placed)
        output = self._trunk(
            input_ids=torch.from_numpy(ids).to(device),
            attention_mask=self._masks(placed),
            position_ids=placed.clamp(max=self.context_limit - 1),
            use_cache=True,
            **{self._cache_name: self._cache},
        )
        hidden: Tensor = output.last_hidden_state
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Scores of the next token."""
        logits: Tensor = self._head(hidden)
        return logits

    def _masks(self, positions: Tensor) -> Tensor | dict[str, Tensor]:
        """What is added to attention scores: per layer type where the model has several."""
        seen = torch.arange(int(positions.max()) + 1, device=positions.device)
        distance = positions[:, None, :, None] - seen
        full = self._additive(distance >= 0)
        if self._window is None:
            return full
        sliding = self._additive((distance >= 0) & (distance < self._window))
        if not self._layer_types:
            return sliding
        return {"full_attention": full, "sliding_attention": sliding}

    def _additive(self, attends: Tensor) -> Tensor:
        dtype = self._model.dtype
        mask = torch.zeros(attends.shape, dtype=dtype, device=attends.device)
        return mask.masked_fill_(~attends, torch.finfo(dtype).min)

    def _prove(self) -> None:
        """Read two rows in two ragged pieces, and compare with the model's own forward pass."""
        rows = [np.arange(1, 6, dtype=np.int64), np.arange(2, 5, dtype=np.int64)]
        try:
            with self.serving():
                self.reserve(2, 8)
                self.read([rows[0][:2], rows[1][:1]], np.array([0, 0]))
                hidden = self.read([rows[0][2:], rows[1][1:]], np.array([2, 1]))
                ours = self.logits(hidden).float()
                inputs = [torch.from_numpy(row)[None].to(self.device) for row in rows]
                theirs = [self._model(ids, use_cache=False).logits[0, -1] for ids in inputs]
        except Exception as error:
            raise ValueError(
                f"{self._name} cannot read turns behind each other with a cache of slots "
                f"({type(error).__name__}: {error}); use a decoder such as Llama, Qwen or Gemma 3"
            ) from error
        finally:
            self.forget()
        expected = torch.stack(theirs).float()
        gap = float((ours - expected).abs().max() / expected.abs().max())
        if not gap <= math.sqrt(torch.finfo(self._model.dtype).eps):
            raise ValueError(
                f"{self._name} gives other logits from a cache of slots than in one pass (relative "
                f"gap {gap:.2g}): its head may scale logits, its layers keep a state of their own; "
                "use a decoder such as Llama, Qwen or Gemma 3"
            )
