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
        self._rows: Tensor | None = None
        self._count = 0
        self._positions = torch.zeros(0, 0, dtype=torch.int64)
        self._end = 0
        self._slots = 0
        self._width = 0

    def reserve(self, slots: int, width: int) -> None:
        """Have room for `slots` episodes of `width` tokens; what is stored stays."""
        if slots > self._slots or width > self._width:
            self._slots = max(slots, self._slots)
            if width > self._width:
                self._width = max(width, self._width + self._width // 2)
            self._keys = [self._grown(kept) for kept in self._keys]
            self._values = [self._grown(kept) for kept in self._values]

    def _grown(self, kept: Tensor) -> Tensor:
        grown = kept.new_zeros(self._slots, kept.shape[1], self._width, kept.shape[3])
        grown[: kept.shape[0], :, : kept.shape[2]] = kept
        return grown

    def place(self, rows: Tensor | None, count: int, positions: Tensor) -> None:
        """Say where the next forward pass writes: slots `rows` (none: the first `count`)."""
        self._rows, self._count, self._positions = rows, count, positions
        self._end = int(positions.max()) + 1

    def permute(self, order: Tensor) -> None:
        """Move slot `order[i]` to slot i."""
        self._keys = [kept[order] for kept in self._keys]
        self._values = [kept[order] for kept in self._values]
        self._slots = len(order)

    def update(
        self, key_states: Tensor, value_states: Tensor, layer_idx: int, *_: Any, **__: Any
    ) -> tuple[Tensor, Tensor]:
        """Write the new keys and values; give all of the rows' keys and values back."""
        while len(self._keys) <= layer_idx:
            shape = (self._slots, key_states.shape[1], self._width, key_states.shape[3])
            self._keys.append(key_states.new_zeros(shape))
            shape = (self._slots, value_states.shape[1], self._width, value_states.shape[3])
            self._values.append(value_states.new_zeros(shape))
        return (
            self._write(self._keys[layer_idx], key_states),
            self._write(self._values[layer_idx], value_states),
        )

    def _write(self, kept: Tensor, new: Tensor) -> Tensor:
        rows = torch.arange(self._count, device=new.device) if self._rows is None else self._rows
        kept[rows[:, None], :, self._positions] = new.transpose(1, 2)
        if self._rows is None:
            return kept[: self._count, :, : self._end]
        return kept[self._rows, :, : self._end]
