"""Keys and values of many live episodes of different lengths, kept between their turns."""

from typing import Any

import torch
from torch import Tensor
from transformers import Cache
from transformers.cache_utils import DynamicLayer


class SlotCache(Cache):  # type: ignore[misc]
    """One slot per episode; every forward pass writes each row at its own positions.

    Padding is on the right: what a padding token writes lies beyond its row's length, is never
    attended to, and is overwritten by the row's next real token.
    """

    def __init__(self) -> None:
        super().__init__(layer_class_to_replicate=DynamicLayer)
        self._keys: list[Tensor] = []
        self._values: list[Tensor] = []
        self._slots = 0
        self._width = 0
        self._rows: Tensor | None = None
        self._count = 0
        self._end = 0
        self._written = torch.zeros(0, dtype=torch.int64)

    def reserve(self, slots: int, width: int) -> None:
        """Have room for `slots` episodes of `width` tokens; what is stored stays."""
        if slots <= self._slots and width <= self._width:
            return
        self._slots = max(slots, self._slots)
        if width > self._width:
            self._width = max(width, self._width + self._width // 2)
        self._keys = [self._grown(kept) for kept in self._keys]
        self._values = [self._grown(kept) for kept in self._values]

    def move(self, sources: Tensor, targets: Tensor) -> None:
        """Copy slot `sources[i]` to slot `targets[i]`, all at once."""
        for kept in (*self._keys, *self._values):
            kept[targets] = kept[sources]

    def place(self, rows: Tensor | None, positions: Tensor) -> None:
        """Say where the next forward pass writes: slots `rows`, or the first ones in order."""
        self._rows, self._count = rows, len(positions)
        slots = torch.arange(self._count, device=positions.device) if rows is None else rows
        self._written = (slots[:, None] * self._width + positions).flatten()
        self._end = int(positions.max()) + 1

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the new keys and values; give all of the rows' keys and values back."""
        if len(self._keys) == layer_idx:
            self._keys.append(self._empty(key_states))
            self._values.append(self._empty(value_states))
        return (
            self._write(self._keys[layer_idx], key_states),
            self._write(self._values[layer_idx], value_states),
        )

    def _empty(self, new: Tensor) -> Tensor:
        return new.new_zeros(self._slots, self._width, new.shape[1], new.shape[3])

    def _grown(self, kept: Tensor) -> Tensor:
        grown = kept.new_zeros(self._slots, self._width, *kept.shape[2:])
        grown[: kept.shape[0], : kept.shape[1]] = kept
        return grown

    def _write(self, kept: Tensor, new: Tensor) -> Tensor:
        heads = kept.shape[2:]
        kept.view(-1, *heads).index_copy_(0, self._written, new.transpose(1, 2).reshape(-1, *heads))
        stored = kept[:, : self._end]
        read = stored[: self._count] if self._rows is None else stored[self._rows]
        return read.transpose(1, 2)
