"""A critic: a trunk of its own with a value head, read where an action token is predicted."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from rewardswap.models.adapter import has_adapter
from rewardswap.models.batching import Batch, collate, rows_of, uncollate
from rewardswap.models.learner import Learner, Metrics
from rewardswap.models.packing import Layout
from rewardswap.models.pretrained import load_values, save_values
from rewardswap.types import Group

ValueLoss = Callable[[Float[Tensor, "B T"], Batch], tuple[Tensor, Metrics]]
"""Like `Loss`, of the values of all action tokens."""


class ValueModel(nn.Module):
    """The trunk of a causal language model and a linear head that starts at V = 0.

    The trunk is a copy. Of one with an adapter only the adapter learns, and the head.
    """

    def __init__(self, language_model: nn.Module) -> None:
        super().__init__()
        source: Any = language_model
        self.trunk = copy.deepcopy(source.get_decoder())
        if not has_adapter(self.trunk):
            self.trunk.requires_grad_(True)
        first = next(self.trunk.parameters())
        self.head = nn.Linear(source.config.hidden_size, 1, device=first.device)
        nn.init.zeros_(self.head.weight)
        nn.init.zeros_(self.head.bias)

    def forward(
        self, tokens: Tensor, lengths: Tensor, *, packing: bool = False
    ) -> Float[Tensor, "B T"]:
        """V after each token, float32; what stands behind a row's length is not read."""
        layout = Layout(lengths, tokens.shape[1], packing)
        return layout.back(self.head(layout.read(self.trunk, tokens).float())[..., 0])


class Critic(Learner):
    """State values of every action token: V of everything in front of it."""

    @property
    def trunk(self) -> nn.Module:
        """The model without its head."""
        trunk: nn.Module = self.model.trunk  # type: ignore[assignment]
        return trunk

    def _forward(self, batch: Batch) -> Float[Tensor, "B T"]:
        after = self.model(batch.tokens, batch.lengths, packing=self.packing)
        before = torch.cat([torch.zeros_like(after[:, :1]), after[:, :-1]], dim=1)
        return torch.where(batch.action_mask, before, torch.zeros_like(before))

    @torch.no_grad()
    def score(self, batch: Batch) -> Float[Tensor, "B T"]:
        """Values of all action tokens, without gradient, on the CPU."""
        values = torch.zeros(batch.tokens.shape)
        for rows, counted in self._microbatches(batch):
            part = batch.take(rows).to(self.device)
            found = self._forward(part).cpu()
            if counted:
                values[rows, : part.tokens.shape[1]] = found
        self.ranks.add(values)
        return values

    def annotate(self, groups: Sequence[Group]) -> list[Group]:
        """The groups with columns `value` [N K L] and `bootstrap` [N K].

        `bootstrap` is V of the final observation at the last turn of a trajectory that a limit
        cut, and 0 everywhere else: an episode that the environment ended has no future.
        """
        whole = [replace(g, selected=(True,) * len(g.trajectories), columns={}) for g in groups]
        values = uncollate(whole, self.score(collate(whole)))
        return [
            group.with_column("value", value).with_column("bootstrap", self._bootstrap(group))
            for group, value in zip(groups, values, strict=True)
        ]

    @torch.no_grad()
    def _bootstrap(self, group: Group) -> Float[Tensor, "N K"]:
        column = torch.zeros(len(group.trajectories), group.turn_count)
        cut = [n for n, t in enumerate(group.trajectories) if t.stop != "done"]
        if not cut:
            return column
        rows = [_last_row(group, n) for n in cut]
        lengths = torch.tensor([len(row) for row in rows])
        tokens = torch.zeros(len(rows), int(lengths.max()), dtype=torch.int64)
        for b, row in enumerate(rows):
            tokens[b, : len(row)] = torch.from_numpy(row)
        after = self.model(
            tokens.to(self.device), lengths.to(self.device), packing=self.packing
        ).cpu()
        for b, n in enumerate(cut):
            column[n, len(group.trajectories[n].turns) - 1] = after[b, int(lengths[b]) - 1]
        return column

    def step(self, batch: Batch, loss: ValueLoss) -> Metrics:
        """One optimizer step over `batch`; see `Learner`."""
        return self._step(batch, lambda part: loss(self._forward(part), part))

    def save_pretrained(self, folder: Path | str) -> None:
        """Write the weights, an adapter's apart: what `from_pretrained` reads to the bit.

        The optimizer is not in it.
        """
        save_values(self.model, Path(folder))

    @classmethod
    def from_pretrained(
        cls, folder: Path | str, language_model: nn.Module, **settings: Any
    ) -> "Critic":
        """The critic of a folder; `settings` are those of a new critic.

        `language_model` is one of the make that the critic was made from, with an adapter where
        that had one; its weights do not matter. Raises ValueError naming the file that is missing,
        damaged, or of another make.
        """
        model = ValueModel(language_model)
        load_values(model, Path(folder))
        return cls(model, **settings)


def _last_row(group: Group, n: int) -> np.ndarray:
    """Tokens of a trajectory's last row with the final observation behind them."""
    trajectory = group.trajectories[n]
    return np.concatenate([rows_of(trajectory, 0)[-1].tokens, trajectory.final_context_ids])
