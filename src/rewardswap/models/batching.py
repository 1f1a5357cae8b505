"""The bridge between the two views: groups [N, K, L] to rows of tokens [B, T] and back.

Letters: B rows, T tokens of a row. Entry t of every [B, T] tensor speaks of token t; the shift by
one between a token and the position that predicts it happens in the policy and nowhere else.
"""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rewardswap.types import Group, IntArray, Trajectory


@dataclass(frozen=True, slots=True)
class Row:
    """Tokens of consecutive turns whose prompts extend each other.

    Two turns with contexts P0, P1 and actions A0, A1 that extend each other are one row
    `P0 A0 P1 A1` with spans `(0, |P0|)` and `(1, |P0| + |A0| + |P1|)`.
    """

    trajectory: int
    """Index of the trajectory among all trajectories of the batch."""
    tokens: IntArray
    spans: tuple[tuple[int, int], ...]
    """(turn, position of the turn's first action token), in order."""


def rows_of(trajectory: Trajectory, index: int) -> list[Row]:
    """Lay a trajectory out in as few rows as its contexts allow; every token stands once."""
    rows: list[Row] = []
    pieces: list[IntArray] = []
    spans: list[tuple[int, int]] = []
    length = 0
    for k, turn in enumerate(trajectory.turns):
        if not pieces or not turn.extends:
            _check_start(trajectory, k)
        if pieces and not turn.extends:
            rows.append(Row(index, np.concatenate(pieces), tuple(spans)))
            pieces, spans, length = [], [], 0
        pieces += [turn.context_ids, turn.action_ids]
        spans.append((k, length + len(turn.context_ids)))
        length += len(turn.context_ids) + len(turn.action_ids)
    rows.append(Row(index, np.concatenate(pieces), tuple(spans)))
    return rows


def _check_start(trajectory: Trajectory, k: int) -> None:
    """An action needs a token before it: nothing predicts the first token of a row."""
    if len(trajectory.turns[k].context_ids) == 0:
        raise ValueError(
            f"turn {k} of a trajectory of task {trajectory.task.id!r} starts a row without "
            "context; give the agent at least one token to read before it acts"
        )


@dataclass(frozen=True)
class Batch:
    """Rows of tokens with everything that a loss reads; 0 off the action mask."""

    tokens: Int[Tensor, "B T"]
    lengths: Int[Tensor, "B"]
    """Real tokens of each row; what follows is padding."""
    action_mask: Bool[Tensor, "B T"]
    turn: Int[Tensor, "B T"]
    """Turn of each action token, -1 elsewhere."""
    trajectory: Int[Tensor, "B"]
    group: Int[Tensor, "B"]
    replayed: Bool[Tensor, "B"]
    columns: Mapping[str, Float[Tensor, "B T"]] = field(default_factory=dict)
    """advantage, old_logprob, behavior_logprob, and what a method declares."""
    weights: Mapping[str, Float[Tensor, "B T"]] = field(default_factory=dict)
    """Weights of each loss term; each sums to one over one optimizer step."""

    def __len__(self) -> int:
        return len(self.lengths)

    def column(self, name: str) -> Float[Tensor, "B T"]:
        """The named column; raises KeyError with the names that exist."""
        if name not in self.columns:
            raise KeyError(f"no column {name!r} in this batch; it has {sorted(self.columns)}")
        return self.columns[name]

    def take(self, rows: Int[Tensor, "R"]) -> "Batch":
        """The given rows, cut to the longest of them."""
        width = int(self.lengths[rows].max()) if len(rows) else 0

        def cut(values: Mapping[str, Tensor]) -> dict[str, Tensor]:
            return {name: value[rows, :width] for name, value in values.items()}

        return Batch(
            tokens=self.tokens[rows, :width],
            lengths=self.lengths[rows],
            action_mask=self.action_mask[rows, :width],
            turn=self.turn[rows, :width],
            trajectory=self.trajectory[rows],
            group=self.group[rows],
            replayed=self.replayed[rows],
            columns=cut(self.columns),
            weights=cut(self.weights),
        )

    def with_columns(self, columns: Mapping[str, Tensor]) -> "Batch":
        """The same rows with some columns added or replaced."""
        return replace(self, columns={**self.columns, **columns})

    def with_weights(self, weights: Mapping[str, Tensor]) -> "Batch":
        """The same rows with other loss weights."""
        return replace(self, weights=dict(weights))

    def without_weight(self) -> "Batch":
        """The same rows, none of which counts."""
        return self.with_weights({n: torch.zeros_like(w) for n, w in self.weights.items()})

    def to(self, device: torch.device) -> "Batch":
        """The same batch on another device."""
        moved = {
            name: getattr(self, name).to(device)
            for name in (
                "tokens",
                "lengths",
                "action_mask",
                "turn",
                "trajectory",
                "group",
                "replayed",
            )
        }
        return Batch(
            **moved,
            columns={name: value.to(device) for name, value in self.columns.items()},
            weights={name: value.to(device) for name, value in self.weights.items()},
        )


@dataclass(frozen=True)
class TokenScores:
    """What the policy says of every action token; 0 elsewhere."""

    logprob: Float[Tensor, "B T"]
    """log pi_theta of the token at the sampling temperature, float32, with gradient in training."""
    entropy: Float[Tensor, "B T"]
    """Entropy of the distribution that the token was drawn from, in nats."""


def collate(groups: Sequence[Group]) -> Batch:
    """All selected trajectories of `groups` as rows, with the groups' columns at action tokens.

    A column [N, K] speaks of whole turns: each of the turn's action tokens gets its value.
    """
    if not groups:
        raise ValueError("cannot make a batch of no groups")
    names = sorted(groups[0].columns)
    placed: list[tuple[Row, Group, int, int]] = []
    index = 0
    for g, group in enumerate(groups):
        if sorted(group.columns) != names:
            raise ValueError(
                f"the group of task {group.task.id!r} has columns {sorted(group.columns)}, "
                f"the first group has {names}; all groups of a batch need the same"
            )
        for n, trajectory in enumerate(group.trajectories):
            if group.selected[n]:
                placed += [(row, group, n, g) for row in rows_of(trajectory, index)]
                index += 1
    return _fill(placed, names)


def _fill(placed: Sequence[tuple[Row, Group, int, int]], names: Sequence[str]) -> Batch:
    count = len(placed)
    width = max((len(row.tokens) for row, *_ in placed), default=0)
    tokens = np.zeros((count, width), dtype=np.int64)
    turn = np.full((count, width), -1, dtype=np.int64)
    columns = {name: np.zeros((count, width), dtype=np.float32) for name in names}
    values: dict[int, dict[str, np.ndarray]] = {}
    for b, (row, group, n, g) in enumerate(placed):
        tokens[b, : len(row.tokens)] = row.tokens
        source = values.setdefault(g, {name: group.columns[name].numpy() for name in names})
        for k, start in row.spans:
            length = len(group.trajectories[n].turns[k].action_ids)
            turn[b, start : start + length] = k
            for name in names:
                value = source[name][n, k]
                columns[name][b, start : start + length] = value[:length] if value.ndim else value
    return Batch(
        tokens=torch.from_numpy(tokens),
        lengths=torch.tensor([len(row.tokens) for row, *_ in placed], dtype=torch.int64),
        action_mask=torch.from_numpy(turn >= 0),
        turn=torch.from_numpy(turn),
        trajectory=torch.tensor([row.trajectory for row, *_ in placed], dtype=torch.int64),
        group=torch.tensor([g for *_, g in placed], dtype=torch.int64),
        replayed=torch.tensor([group.replayed for _, group, *_ in placed], dtype=torch.bool),
        columns={name: torch.from_numpy(column) for name, column in columns.items()},
    )


def uncollate(
    groups: Sequence[Group], values: Float[Tensor, "B T"]
) -> list[Float[Tensor, "N K L"]]:
    """Numbers at the action tokens of `collate(groups)`, back in each group's own shape.

    Trajectories that are not selected have no row: their entries are 0.
    """
    array = values.detach().cpu().numpy()
    columns: list[Tensor] = []
    b = index = 0
    for group in groups:
        column = np.zeros(
            (len(group.trajectories), group.turn_count, group.token_count), dtype=np.float32
        )
        for n, trajectory in enumerate(group.trajectories):
            if not group.selected[n]:
                continue
            for row in rows_of(trajectory, index):
                for k, start in row.spans:
                    length = len(trajectory.turns[k].action_ids)
                    column[n, k, :length] = array[b, start : start + length]
                b += 1
            index += 1
        columns.append(torch.from_numpy(column))
    return columns


def minibatches(batch: Batch, count: int) -> Iterator[Int[Tensor, "R"]]:
    """Rows of `count` optimizer steps: whole trajectories, fresh and replayed spread evenly.

    Trajectories are dealt in order, so every minibatch sees every group; raises ValueError when
    there are fewer trajectories than minibatches.
    """
    rank = torch.zeros(len(batch), dtype=torch.int64)
    for replayed in (False, True):
        rows = batch.replayed == replayed
        _, order = torch.unique(batch.trajectory[rows], return_inverse=True)
        rank[rows] = order
    total = len(torch.unique(batch.trajectory))
    if count < 1 or count > total:
        raise ValueError(
            f"cannot cut {total} trajectories into {count} minibatches; "
            f"set `policy.minibatches` between 1 and {total}"
        )
    for part in range(count):
        yield torch.nonzero(rank % count == part)[:, 0]


def microbatches(
    batch: Batch, tokens: int, *, whole_trajectories: bool = False, packing: bool = False
) -> Iterator[Int[Tensor, "R"]]:
    """Rows in order of length, cut so that rows x longest row stays within `tokens`.

    With `packing` it is their real tokens that do. With `whole_trajectories` all rows of one
    trajectory stay together. What is longer than the budget stands alone: nothing is cut.
    """
    units: dict[int, list[int]] = {}
    for row, trajectory in enumerate(batch.trajectory.tolist()):
        units.setdefault(trajectory if whole_trajectories else row, []).append(row)
    lengths = batch.lengths.tolist()
    longest = {unit: max(lengths[row] for row in rows) for unit, rows in units.items()}
    part: list[int] = []
    for unit in sorted(units, key=lambda unit: longest[unit]):
        joined = part + units[unit]
        size = sum(lengths[r] for r in joined) if packing else len(joined) * longest[unit]
        if part and size > tokens:
            yield torch.tensor(part)
            joined = units[unit]
        part = joined
    if part:
        yield torch.tensor(part)
