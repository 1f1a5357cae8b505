"""How different the trajectories of an update are, and how spread the turn rewards are."""

from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import combinations

import torch
from rapidfuzz.distance import Levenshtein

from rewardswap.models.learner import Metrics
from rewardswap.types import Group, Trajectory

COLLAPSED = 1e-3
"""Turn rewards whose deviation is at most this share of their root mean square are one number."""


def diversity(groups: Sequence[Group]) -> Metrics:
    """Counts of states, and the mean edit distance of siblings, over the selected trajectories.

    - `repeated_states`: distinct states, by (task, state key), in which at least two actions were
      taken, by one trajectory or by several (the specification's "seen more than once across the
      trajectories of an update"; to count states, not visits, is our reading);
    - `distinct_states`: distinct states in which an action was taken;
    - `revisit_share`: share of all visits that were not the first to their state;
    - `edit_distance`: mean over pairs of trajectories of one task of Levenshtein(a, b) /
      max(len a, len b), a and b their sequences of actions; 0: all alike, 1: nothing in common.
      Pairs of different tasks would measure the tasks. Left out where no task has a pair;
    - `edit_distance_pairs`: how many pairs that is.

    The state after a trajectory's last action has no key and is not counted.
    """
    trajectories = list(_selected(groups))
    visits = Counter((t.task.id, turn.state_key) for t in trajectories for turn in t.turns)
    total = visits.total()
    distances = [d for siblings in _by_task(trajectories) for d in _edit_distances(siblings)]
    metrics = {
        "repeated_states": float(sum(count > 1 for count in visits.values())),
        "distinct_states": float(len(visits)),
        "revisit_share": 1 - len(visits) / total if total else 0.0,
        "edit_distance_pairs": float(len(distances)),
    }
    if distances:
        metrics["edit_distance"] = sum(distances) / len(distances)
    return metrics


def turn_reward_spread(groups: Sequence[Group], source_name: str) -> Metrics:
    """Distribution of the turn rewards of a source over the turns of the selected trajectories.

    - `turn_rewards_mean`, `turn_rewards_deviation`: over turns, without correction;
    - `turn_rewards_equal_share`: share of the turns that have the most common reward (float32);
    - `turn_rewards_collapsed`: 1 where the deviation is at most a thousandth of the root mean
      square (the threshold is ours): the reward says the same of every turn.

    Raises ValueError without groups, or if a group was not scored by the source.
    """
    if not groups:
        raise ValueError(f"the spread of {source_name!r} rewards needs at least one group")
    rewards = torch.cat([_turn_rewards(group, source_name) for group in groups]).double()
    deviation = float(rewards.std(correction=0))
    root_mean_square = float(rewards.square().mean().sqrt())
    most_common = int(torch.unique(rewards, return_counts=True)[1].max())
    return {
        "turn_rewards_mean": float(rewards.mean()),
        "turn_rewards_deviation": deviation,
        "turn_rewards_equal_share": most_common / len(rewards),
        "turn_rewards_collapsed": float(deviation <= COLLAPSED * root_mean_square),
    }


def _turn_rewards(group: Group, source_name: str) -> torch.Tensor:
    if source_name not in group.rewards:
        raise ValueError(
            f"the group of task {group.task.id!r} has no {source_name!r} rewards, only "
            f"{sorted(group.rewards)}; score it with that source first"
        )
    chosen = torch.tensor(group.selected)[:, None] & group.turn_mask
    return group.rewards[source_name][chosen]


def _selected(groups: Sequence[Group]) -> Iterator[Trajectory]:
    for group in groups:
        for trajectory, selected in zip(group.trajectories, group.selected, strict=True):
            if selected:
                yield trajectory


def _by_task(trajectories: Sequence[Trajectory]) -> list[list[Trajectory]]:
    """Trajectories of one task together, also those of different groups."""
    found: dict[str, list[Trajectory]] = {}
    for trajectory in trajectories:
        found.setdefault(trajectory.task.id, []).append(trajectory)
    return list(found.values())


def _edit_distances(siblings: Sequence[Trajectory]) -> list[float]:
    """Of every pair; actions are numbered, so that equal numbers are equal texts."""
    numbers: dict[str, int] = {}
    actions = [
        [numbers.setdefault(turn.action, len(numbers)) for turn in trajectory.turns]
        for trajectory in siblings
    ]
    return [Levenshtein.normalized_distance(a, b) for a, b in combinations(actions, 2)]
