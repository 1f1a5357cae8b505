"""Padded responses, one row a trajectory, as our groups and batches; for trainers that keep these.

Letters: B rows, L tokens of a response. A turn is a run of tokens with mask 1; what lies between
two of them is an observation.
"""

from collections.abc import Hashable, Sequence

import numpy as np
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from rewardswap.models.batching import Batch
from rewardswap.task import Task
from rewardswap.types import Group, Trajectory, Turn


def turns_of(mask: Bool[Tensor, "B L"]) -> Int[Tensor, "B L"]:
    """The turn of each action token, -1 elsewhere."""
    before = torch.nn.functional.pad(mask[:, :-1], (1, 0), value=False)
    turn = (mask & ~before).long().cumsum(dim=1) - 1
    return turn.masked_fill(~mask, -1)


def groups_of(
    rewards: Float[Tensor, "B L"], mask: Bool[Tensor, "B L"], tasks: Sequence[Hashable]
) -> tuple[list[Group], list[list[int]]]:
    """Groups of rows of one task in order of appearance, and which rows they are.

    What a token is paid belongs to the last turn that began before it or at it. A row without an
    action token has no turn: it is in no group. Raises ValueError for a reward before the first
    action, or in such a row, and where there are not as many tasks as rows.
    """
    if len(tasks) != len(mask):
        raise ValueError(f"{len(mask)} rows need as many tasks, got {len(tasks)}")
    turn = turns_of(mask)
    paid = turn.cummax(dim=1).values
    lost = (rewards != 0) & (paid < 0)
    if lost.any():
        row = int(lost.any(dim=1).nonzero()[0])
        raise ValueError(
            f"row {row} is paid before its first action token, where no turn can be credited; "
            "place rewards on action tokens, or behind them"
        )
    rows: dict[Hashable, list[int]] = {}
    for row, task in enumerate(tasks):
        if mask[row].any():
            rows.setdefault(task, []).append(row)
    groups = []
    for name, members in rows.items():
        task = Task(str(name), "")
        made = tuple(_trajectory(task, n, turn[row]) for n, row in enumerate(members))
        reward = torch.zeros(len(members), max(len(t.turns) for t in made))
        for n, row in enumerate(members):
            known = paid[row] >= 0
            reward[n].index_add_(0, paid[row][known].cpu(), rewards[row][known].float().cpu())
        groups.append(Group(task, made, reward=reward))
    return groups, list(rows.values())


def _trajectory(task: Task, index: int, turn: Int[Tensor, "L"]) -> Trajectory:
    """A trajectory that says how many turns and tokens there were, and nothing else."""
    nothing = np.zeros(0, dtype=np.int64)
    counts = torch.bincount(turn[turn >= 0]).tolist()
    turns = tuple(
        Turn(
            observation="",
            context_ids=nothing,
            extends=k > 0,
            action_ids=np.zeros(count, dtype=np.int64),
            logprobs=np.zeros(count, dtype=np.float32),
            action="",
            valid=True,
            truncated=False,
            reward=0.0,
            state_key="",
        )
        for k, count in enumerate(counts)
    )
    return Trajectory(
        task=task,
        index=index,
        turns=turns,
        final_observation="",
        final_context_ids=nothing,
        outcome=0.0,
        success=False,
        stop="done",
        policy_version=0,
        task_score=0.0,
    )


def spread(
    advantages: Sequence[Tensor], members: Sequence[Sequence[int]], mask: Bool[Tensor, "B L"]
) -> Float[Tensor, "B L"]:
    """Advantages [N K] or [N K T] of groups at the action tokens of their rows, 0 elsewhere."""
    values = torch.zeros(mask.shape, dtype=torch.float32)
    turn, mask = turns_of(mask).cpu(), mask.cpu()
    for advantage, rows in zip(advantages, members, strict=True):
        for n, row in enumerate(rows):
            turns = turn[row][mask[row]]
            if advantage.dim() == 2:
                values[row, mask[row]] = advantage[n, turns].float()
                continue
            counts = torch.bincount(turns).tolist()
            parts = [advantage[n, k, :count] for k, count in enumerate(counts)]
            values[row, mask[row]] = torch.cat(parts).float()
    return values


def batch_of(
    mask: Bool[Tensor, "B L"],
    *,
    advantage: Float[Tensor, "B L"],
    old_logprob: Float[Tensor, "B L"],
    behavior_logprob: Float[Tensor, "B L"],
) -> Batch:
    """The responses as rows of our batch, each a trajectory of its own; tokens unknown."""
    rows = torch.arange(len(mask), device=mask.device)
    columns = {
        "advantage": advantage,
        "old_logprob": old_logprob,
        "behavior_logprob": behavior_logprob,
    }
    return Batch(
        tokens=torch.zeros_like(mask, dtype=torch.int64),
        lengths=torch.full_like(rows, mask.shape[1]),
        action_mask=mask,
        turn=turns_of(mask),
        trajectory=rows,
        group=rows,
        replayed=torch.zeros_like(rows, dtype=torch.bool),
        columns={n: torch.where(mask, v, torch.zeros_like(v)) for n, v in columns.items()},
    )
