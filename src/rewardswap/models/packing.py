"""Rows of a micro-batch as a trunk reads them: padded side by side, or packed behind each other."""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn


@dataclass(frozen=True)
class Layout:
    """Where the tokens of B rows stand: as [B, T] with padding, or packed as one row [1, tokens].

    Packed, positions restart at each row. From them alone, without a mask of padding, transformers
    lets a token attend to its own row only (flash attention reads the rows' lengths in them).
    """

    lengths: Int[Tensor, "B"]
    width: int
    packing: bool

    @property
    def real(self) -> Bool[Tensor, "B T"]:
        """True where a row has a token."""
        return torch.arange(self.width, device=self.lengths.device) < self.lengths[:, None]

    def place(self, values: Tensor) -> Tensor:
        """[B, T] as the trunk reads it, rows in order."""
        return values[self.real][None] if self.packing else values

    def back(self, values: Tensor) -> Tensor:
        """What was said of every place, as [B, T] again, 0 where packing left padding out."""
        if not self.packing:
            return values
        blank = values.new_zeros(self.real.shape)
        return blank.masked_scatter(self.real, values[0])

    def read(self, trunk: Any, tokens: Int[Tensor, "B T"]) -> Float[Tensor, "rows places width"]:
        """The trunk's hidden states at every place."""
        if self.packing:
            count = torch.arange(self.width, device=tokens.device).expand(self.real.shape)
            attention = {"attention_mask": None, "position_ids": self.place(count)}
        else:
            attention = {"attention_mask": self.real}
        output = trunk(input_ids=self.place(tokens), use_cache=False, **attention)
        hidden: Tensor = output.last_hidden_state
        return hidden


@torch.no_grad()
def prove_packing(trunk: nn.Module) -> None:
    """Read three rows packed, and each alone; raises ValueError if the numbers differ.

    They would where a layer carries a state from token to token, where the attention cannot be
    masked, and where positions are counted by the trunk itself.
    """
    rows = [[5, 3, 4, 2, 6, 7], [3], [2, 6, 4, 5]]
    device = next(trunk.parameters()).device
    lengths = torch.tensor([len(row) for row in rows], device=device)
    tokens = torch.tensor([row + [0] * (6 - len(row)) for row in rows], device=device)
    name = type(trunk).__name__
    try:
        packed = Layout(lengths, 6, packing=True).read(trunk, tokens)[0]
        alone = [
            Layout(lengths[n : n + 1], len(row), packing=False).read(
                trunk, tokens[n : n + 1, : len(row)]
            )[0]
            for n, row in enumerate(rows)
        ]
    except Exception as error:
        raise ValueError(
            f"{name} cannot read packed rows ({type(error).__name__}: {error}); leave "
            "policy.packing out"
        ) from error
    expected = torch.cat(alone).float()
    gap = float((packed.float() - expected).abs().max() / expected.abs().max())
    if not gap <= math.sqrt(torch.finfo(packed.dtype).eps):
        raise ValueError(
            f"{name} says other things of packed rows than of each alone (relative gap {gap:.2g}); "
            "leave policy.packing out"
        )
