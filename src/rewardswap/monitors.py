"""What the numbers of an update warn of, in words; the bounds are the specification's or ours."""

from collections.abc import Mapping

LEAST_EDIT_DISTANCE = 0.3
"""Mean edit distance of a buffer below which it is too homogeneous (the paper's review)."""
LARGEST_ENGINE_GAP = 0.1
"""Nats between engine and trainer at a token beyond which one of them is wrong (ours)."""


def warnings_of(metrics: Mapping[str, float]) -> dict[str, str]:
    """What is worth a warning, by its kind."""
    said: dict[str, str] = {}
    if metrics.get("turn_rewards_collapsed"):
        said["collapsed_dense_reward"] = (
            "after phase 1 every turn is paid the same: the dense reward teaches at most how long "
            "to play"
        )
    distance = metrics.get("replay_edit_distance")
    if distance is not None and distance < LEAST_EDIT_DISTANCE:
        said["homogeneous_replay"] = (
            f"stored trajectories of one task differ by an edit distance of {distance:.2f} in the "
            f"mean, below {LEAST_EDIT_DISTANCE}: replay shows the agent one way only"
        )
    if metrics.get("replay_size") and not metrics.get("replay_success_share", 1.0):
        said["replay_without_success"] = "no stored trajectory is a success: replay teaches little"
    gap = metrics.get("engine_gap_max", 0.0)
    if gap > LARGEST_ENGINE_GAP:
        said["engine_gap"] = (
            f"engine and trainer differ by {gap:.2f} nats at a token: one of them is wrong"
        )
    return said
