"""Small groups and batches whose numbers can be worked out on paper."""

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

import numpy as np
import pytest
import torch
from torch import Tensor

from made import VOCABULARY
from rewardswap.methods.base import Method
from rewardswap.models.batching import Batch, TokenScores, collate
from rewardswap.task_stream import derived_seed
from rewardswap.types import Group, Task, Trajectory, Turn

EQUAL_VALUES = (0.1, 0.3, 0.7, 1 / 3)


def episode(
    task: str,
    index: int,
    tokens: Sequence[int],
    *,
    outcome: float = 0.0,
    states: Sequence[str] | None = None,
    observations: Sequence[str] | None = None,
    invalid: Sequence[int] = (),
    stop: Any = "done",
) -> Trajectory:
    """One turn per number of action tokens; `observations` has one more for the end."""
    stream = np.random.default_rng(derived_seed("worked", task, index))
    texts = observations or [f"saw {k}" for k in range(len(tokens) + 1)]
    keys = states or [str(k) for k in range(len(tokens))]
    turns = [
        Turn(
            observation=texts[k],
            context_ids=stream.integers(2, VOCABULARY, 2),
            extends=k > 0,
            action_ids=stream.integers(2, VOCABULARY, count),
            logprobs=np.full(count, -1.0, dtype=np.float32),
            action=f"do {k}",
            valid=k not in invalid,
            truncated=False,
            reward=0.0,
            state_key=keys[k],
        )
        for k, count in enumerate(tokens)
    ]
    return Trajectory(
        task=Task(task, "family"),
        index=index,
        turns=tuple(turns),
        final_observation=texts[-1],
        final_context_ids=stream.integers(2, VOCABULARY, 2),
        outcome=outcome,
        success=outcome == 1.0,
        stop=stop,
        policy_version=0,
        task_score=outcome,
    )


def group_of(
    rewards: Sequence[Sequence[float]],
    *,
    task: str = "a",
    tokens: Sequence[Sequence[int]] | None = None,
    outcomes: Sequence[float] | None = None,
    replayed: bool = False,
    members: Mapping[int, Mapping[str, Any]] | None = None,
) -> Group:
    """One sibling per list of turn rewards, one action token per turn unless `tokens` says more.

    `members` has further arguments of `episode` by the sibling's number.
    """
    counts = tokens or [[1] * len(turns) for turns in rewards]
    true = outcomes or [min(max(sum(turns), 0.0), 1.0) for turns in rewards]
    siblings = [
        episode(task, n, counts[n], outcome=true[n], **(members or {}).get(n, {}))
        for n in range(len(rewards))
    ]
    width = max(len(turns) for turns in rewards)
    reward = torch.tensor([[*turns, *[0.0] * (width - len(turns))] for turns in rewards])
    return Group(Task(task, "family"), tuple(siblings), replayed=replayed).with_rewards({}, reward)


def valued(group: Group, values: Sequence[Sequence[Sequence[float]]], last: float = 0.0) -> Group:
    """The group with a critic's values, and `last` behind trajectories that a limit cut."""
    column = torch.zeros(group.token_mask.shape)
    for n, turns in enumerate(values):
        for k, numbers in enumerate(turns):
            column[n, k, : len(numbers)] = torch.tensor(numbers)
    bootstrap = torch.zeros(group.turn_mask.shape)
    for n, trajectory in enumerate(group.trajectories):
        if trajectory.stop != "done":
            bootstrap[n, len(trajectory.turns) - 1] = last
    return group.with_column("value", column).with_column("bootstrap", bootstrap)


def worthless(group: Group) -> Group:
    """The group with values of 0 for the methods that read a critic's."""
    return valued(group, [[[0.0]]])


def each(method: Method, *groups: Group) -> list[float]:
    """Advantages of the first turns' first tokens, trajectory after trajectory."""
    found = method.algorithm().advantage(groups)
    return [float(row.flatten()[0]) for advantage in found for row in advantage]


def tokens_of(
    old: Sequence[Sequence[float]],
    behavior: Sequence[Sequence[float]],
    advantage: Sequence[float],
    replayed: Sequence[bool],
) -> Batch:
    """One row and one turn per trajectory, a context token in front, from probabilities."""
    width = 1 + max(len(row) for row in old)
    mask = torch.zeros(len(old), width).bool()
    columns = {name: torch.zeros(len(old), width) for name in ("old", "behavior", "advantage")}
    for b, row in enumerate(old):
        mask[b, 1 : 1 + len(row)] = True
        columns["old"][b, 1 : 1 + len(row)] = torch.tensor(row).log()
        columns["behavior"][b, 1 : 1 + len(row)] = torch.tensor(behavior[b]).log()
        columns["advantage"][b, 1 : 1 + len(row)] = advantage[b]
    return Batch(
        tokens=torch.zeros(mask.shape, dtype=torch.int64),
        lengths=mask.sum(dim=1) + 1,
        action_mask=mask,
        turn=torch.where(mask, 0, -1),
        trajectory=torch.arange(len(old)),
        group=torch.zeros(len(old), dtype=torch.int64),
        replayed=torch.tensor(list(replayed)),
        columns={
            "old_logprob": columns["old"],
            "behavior_logprob": columns["behavior"],
            "advantage": columns["advantage"],
        },
    )


def scores_of(batch: Batch, new: Sequence[Sequence[float]]) -> TokenScores:
    """The scores of a policy that gives these probabilities to the sampled tokens."""
    logprob = torch.zeros(batch.action_mask.shape)
    for b, row in enumerate(new):
        logprob[b, 1 : 1 + len(row)] = torch.tensor(row).log()
    return TokenScores(logprob.requires_grad_(), torch.zeros_like(logprob))


TWO_TRAJECTORIES = tokens_of(
    old=[[0.25, 0.5], [0.5]],
    behavior=[[0.5, 0.5], [0.5]],
    advantage=[1.0, -1.0],
    replayed=[True, False],
)
"""X is replayed, two tokens, A = 1: c = .5 and 1. Y is fresh, one token, A = -1."""
MOVED = [[0.325, 0.8], [0.9]]
"""pi_theta. X: r = 1.3 and 1.6, q = .65 and 1.6. Y: r = q = 1.8."""


def two_trajectories_loss(method: Method, replay_share: float = 0.25) -> tuple[float, Any]:
    """The loss of X and Y, and its metrics; replay has a quarter of the weight."""
    algorithm = method.algorithm()
    batch = algorithm.weigh(TWO_TRAJECTORIES, replay_share)
    value, metrics = algorithm.loss(scores_of(batch, MOVED), batch)
    return float(value.detach()), metrics


def fixed_groups() -> list[Group]:
    """A fresh and a replayed group, ragged in turns and tokens, with dense rewards."""
    fresh = group_of(
        [[0.5, 0.5], [0.0, 0.25, 0.0], [0.75]],
        tokens=[[2, 1], [1, 2, 1], [3]],
        outcomes=[1.0, 0.0, 0.0],
        members={1: {"invalid": [1], "stop": "turn_limit"}},
    )
    replayed = group_of(
        [[0.0, 0.0], [0.0, 1.0], [0.25], [0.0, 0.5]],
        task="b",
        tokens=[[1, 1], [2, 2], [1], [3, 1]],
        outcomes=[0.0, 1.0, 0.0, 0.0],
        replayed=True,
        members={0: {"invalid": [0]}, 2: {"states": ["1"]}},
    )
    selected = (True, True, False, True)
    return [with_values(fresh), replace(with_values(replayed), selected=selected)]


def with_values(group: Group) -> Group:
    """Values that rise by 1/16 from token to token, .5 behind what a limit cut."""
    values = []
    for trajectory in group.trajectories:
        counts = [len(turn.action_ids) for turn in trajectory.turns]
        starts = [0, *accumulate(counts)]
        values.append(
            [[(s + i) / 16 for i in range(c)] for s, c in zip(starts, counts, strict=False)]
        )
    return valued(group, values, last=0.5)


def waves(mask: Tensor, phase: float, size: float) -> Tensor:
    """Numbers within `size` that no two tokens share, in order of the masked places."""
    place = torch.arange(1, int(mask.sum()) + 1, dtype=torch.float64)
    return torch.zeros(mask.shape).masked_scatter(mask, (size * (place + phase).sin()).float())


def chain_loss(method: Method) -> float:
    """The loss from the rewards of `fixed_groups` to its value, at made-up log-probs."""
    algorithm = method.algorithm()
    groups = fixed_groups()
    advantages = algorithm.advantage(groups)
    batch = collate(
        [g.with_column("advantage", a) for g, a in zip(groups, advantages, strict=True)]
    )
    mask = batch.action_mask
    old = torch.where(mask, -1.0, 0.0) + waves(mask, 0.0, 0.5)
    stored = mask & batch.replayed[:, None]
    columns = {
        "old_logprob": old,
        "behavior_logprob": old + torch.where(stored, waves(mask, 1.0, 0.4), 0.0),
        "reference_logprob": old + waves(mask, 2.0, 0.2),
    }
    batch = algorithm.weigh(batch.with_columns(columns), 0.25)
    logprob = (old + waves(mask, 3.0, 0.4)).requires_grad_()
    entropy = torch.where(mask, torch.ones(()), torch.zeros(()))
    value, _ = algorithm.loss(TokenScores(logprob, entropy), batch)
    return float(value.detach())


def near(value: float, precision: float = 1e-6) -> Any:
    """`value` up to the rounding of float32."""
    return pytest.approx(value, abs=precision, rel=precision)


def logistic(x: float) -> float:
    return 1 / (1 + math.exp(-x))
