"""Groups as verl-agent's rows, one per turn, and advantages from the statistics of rows.

The functions are those of `compat`; only `verl_agent_compat` uses this file.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional

from rewardswap.core.returns import last_place_reward
from rewardswap.methods.compat import (
    gigpo_row_advantage,
    penalise_invalid_actions,
    row_advantage,
    row_leave_one_out,
    row_returns,
    whitened_row_scores,
    whitened_token_returns,
    whitened_turn_advantage,
)
from rewardswap.methods.credit import at_turns
from rewardswap.methods.gigpo import GroupInGroup
from rewardswap.types import Group


@dataclass(frozen=True)
class Rows:
    """A group as rows: turn after turn, trajectory after trajectory."""

    score: Float[Tensor, "R T"]
    """The whole episode's reward and the row's penalty, on the row's last action token."""
    step_return: Float[Tensor, "R"]
    """Discounted return of the turn, then the row's penalty."""
    mask: Bool[Tensor, "R T"]
    """True at the row's action tokens."""


@dataclass(frozen=True)
class RowReader:
    """Rows of a group with verl-agent's rewards, in float64."""

    outcome_scale: float = 10.0
    invalid_penalty: float = 0.1
    step_discount: float = 0.95

    def __call__(self, group: Group) -> Rows:
        turns, tokens = group.turn_mask, group.token_mask
        reward = self.outcome_scale * group.reward_in_force.double()
        score = last_place_reward(at_turns(reward.sum(dim=1), group), tokens)[turns]
        trajectory = torch.nonzero(turns)[:, 0]
        step_return = row_returns(reward[turns], trajectory, self.step_discount)
        valid = torch.tensor([turn.valid for t in group.trajectories for turn in t.turns])
        mask = tokens[turns]
        score, step_return = penalise_invalid_actions(
            score, step_return, mask, valid, self.invalid_penalty
        )
        return Rows(score, step_return, mask)


@dataclass(frozen=True)
class RowStatistics:
    """Advantages of turns from the rows of their own group: GRPO, GiGPO, RLOO."""

    rows: RowReader
    base: Literal["grpo", "gigpo", "rloo"]
    divide_by_std: bool
    step_weight: float
    anchors: GroupInGroup
    """Finds the turns that were taken in the same state."""

    def __call__(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K"]]:
        return [_at_turns(self._advantage(group), group) for group in groups]

    def _advantage(self, group: Group) -> Float[Tensor, "R"]:
        rows = self.rows(group)
        score = rows.score.sum(dim=1)
        one_group = torch.zeros(len(score), dtype=torch.int64)
        if self.base == "rloo":
            return row_leave_one_out(score, one_group)
        every = torch.ones(len(score)).bool()
        episode = row_advantage(score, one_group, every, divide_by_std=self.divide_by_std)
        if self.base == "grpo":
            return episode
        return gigpo_row_advantage(
            episode,
            rows.step_return,
            self.anchors.anchors(group)[group.turn_mask],
            step_weight=self.step_weight,
            divide_by_std=self.divide_by_std,
        )


@dataclass(frozen=True)
class WhitenedScores:
    """Scores of rows, less their group's mean if asked, whitened over all tokens: REINFORCE++."""

    rows: RowReader
    subtract_group_mean: bool = False

    def __call__(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K"]]:
        score, mask, group = _stacked(groups, self.rows)
        if self.subtract_group_mean:
            advantage = whitened_row_scores(score.sum(dim=1), group, mask)
        else:
            advantage, _ = whitened_token_returns(score, mask, discount=1.0)
        # without a discount all tokens of a row have the same
        parts = torch.split(advantage[:, 0], _row_counts(groups))
        return [_at_turns(part, group) for part, group in zip(parts, groups, strict=True)]


@dataclass(frozen=True)
class TurnValues:
    """GAE inside one turn, its trace and discount 1; groups have a column `value`: PPO."""

    rows: RowReader
    target: bool = False
    """Whether the value targets are returned in place of the whitened advantages."""

    def __call__(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K L"]]:
        score, mask, _ = _stacked(groups, self.rows)
        width = score.shape[1]
        values = [_padded(group.columns["value"][group.turn_mask], width) for group in groups]
        found = whitened_turn_advantage(
            score, torch.cat(values).double(), mask, discount=1.0, trace=1.0
        )
        # off the mask the advantages are whitened too, and no loss reads them
        chosen = torch.where(mask, found[int(self.target)], 0.0).float()
        placed = []
        for part, group in zip(torch.split(chosen, _row_counts(groups)), groups, strict=True):
            tokens = torch.zeros(group.token_mask.shape)
            tokens[group.turn_mask] = part[:, : group.token_count]
            placed.append(tokens)
        return placed


def _stacked(
    groups: Sequence[Group], rows: RowReader
) -> tuple[Float[Tensor, "R T"], Bool[Tensor, "R T"], Int[Tensor, "R"]]:
    """Scores of all groups' rows, the tokens of those that are trained on, and their group."""
    found = [rows(group) for group in groups]
    width = max(group.token_count for group in groups)
    selected = [at_turns(torch.tensor(g.selected).float(), g)[g.turn_mask] > 0 for g in groups]
    counts = torch.tensor(_row_counts(groups))
    return (
        torch.cat([_padded(part.score, width) for part in found]),
        torch.cat([_padded(p.mask, width) for p in found]) & torch.cat(selected)[:, None],
        torch.repeat_interleave(torch.arange(len(groups)), counts),
    )


def _padded(values: Tensor, width: int) -> Tensor:
    return functional.pad(values, (0, width - values.shape[1]))


def _row_counts(groups: Sequence[Group]) -> list[int]:
    return [int(group.turn_mask.sum()) for group in groups]


def _at_turns(values: Float[Tensor, "R"], group: Group) -> Float[Tensor, "N K"]:
    """Numbers of a group's rows at the turns that they are."""
    placed = torch.zeros(group.turn_mask.shape)
    placed[group.turn_mask] = values.float()
    return placed
