"""Update time of merged rows against one row per turn, each with its whole prompt.

Both train the same tokens with the same weights: gradients are compared, and must be equal.
"""

from collections.abc import Sequence
from dataclasses import replace
from statistics import median
from typing import Any

import numpy as np
import torch
from players import Place, interleaved, make_chat, make_player, make_policy, ratio
from recorded import WORLDS, trajectory

from rewardswap.annotation import annotated
from rewardswap.methods.grpo import GRPO
from rewardswap.models.batching import collate
from rewardswap.models.policy import Policy
from rewardswap.optimization import fit_policy
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.trainer import label
from rewardswap.types import Group, Trajectory

GROUP_SIZE = 4
MICROBATCH = 8192
"""Tokens with padding; the package's default."""
MERGED, PER_TURN = "merged rows", "one row per turn"


def row_per_turn(trajectory: Trajectory) -> Trajectory:
    """The same turns, each with all that was read and said before in its own prompt."""
    read, turns = np.zeros(0, dtype=np.int64), []
    for turn in trajectory.turns:
        prompt = np.concatenate([read, turn.context_ids]) if turn.extends else turn.context_ids
        turns.append(replace(turn, context_ids=prompt, extends=False))
        read = np.concatenate([prompt, turn.action_ids])
    return replace(trajectory, turns=tuple(turns))


def groups_of(world: str, turns: int, player: Any) -> list[Group]:
    """One group of recorded episodes; each is of another task, so that their lengths differ."""
    recorded = WORLDS[world](GROUP_SIZE, turns, player.wording)
    context = make_chat(player, recorded.instructions)
    task = recorded.tasks("train")[0]
    members = [
        replace(trajectory(recording, index, context, player.tokenizer), task=task)
        for index, recording in enumerate(recorded.recordings.values())
    ]
    return [label(Group(task, tuple(members)), OutcomeReward())]


def update(policy: Policy, groups: Sequence[Group]) -> None:
    """All that a training run does with collected groups: old log-probs, and one step."""
    algorithm = GRPO().algorithm()
    batch, read, _ = annotated(groups, algorithm, policy, None, None)
    fit_policy(policy, batch, read, 0.0, algorithm, 1)


def gradient(policy: Policy) -> torch.Tensor:
    """What the latest update left."""
    return torch.cat([weight.grad.flatten().float() for weight in policy.masters.weights])


def compare(model: str, world: str, turns: int, place: Place, repeats: int) -> dict[str, Any]:
    """Seconds of both, their tokens, and how far their gradients are apart."""
    player = make_player(model, world, place)
    policy = make_policy(player, MICROBATCH)
    merged = groups_of(world, turns, player)
    layouts = {
        MERGED: merged,
        PER_TURN: [
            replace(group, trajectories=tuple(map(row_per_turn, group.trajectories)))
            for group in merged
        ],
    }
    gradients, batches = [], [collate(groups) for groups in layouts.values()]
    for groups in layouts.values():
        update(policy, groups)
        gradients.append(gradient(policy).cpu())
    apart = float((gradients[0] - gradients[1]).abs().max())
    trained = [int(batch.action_mask.sum()) for batch in batches]
    assert trained[0] == trained[1], trained
    if place.dtype == "float32":
        assert apart < 1e-5, f"gradients of {model} in {world} at {turns} turns differ by {apart}"
    ways = {
        name: (lambda groups=groups: update(policy, groups)) for name, groups in layouts.items()
    }
    taken = interleaved(ways, repeats, place.device)
    return {
        "world": world,
        "turns": turns,
        "trained_tokens": trained[0],
        "tokens": [int(batch.lengths.sum()) for batch in batches],
        "seconds": [median(taken[name]) for name in layouts],
        "ratio": ratio(taken[PER_TURN], taken[MERGED]),
        "gradient_gap": apart,
        "largest_gradient": float(gradients[0].abs().max()),
    }
