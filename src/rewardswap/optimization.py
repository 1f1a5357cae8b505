"""One pass of optimizer steps over an annotated batch: of the policy, and of its critic."""

from collections import Counter

import torch
from jaxtyping import Bool
from torch import Tensor

from rewardswap.algorithm import Algorithm
from rewardswap.errors import RunStoppedError
from rewardswap.models.batching import Batch, minibatches
from rewardswap.models.critic import Critic
from rewardswap.models.learner import Metrics
from rewardswap.models.policy import Policy
from rewardswap.seams import CriticLoss

MEANS = ("entropy", "kl_old")
"""Metrics of the loss that are weighted means over the rows that it reads, as all shares are."""


def fit_policy(
    policy: Policy,
    batch: Batch,
    read: Bool[Tensor, "B"],
    replay_share: float,
    algorithm: Algorithm,
    count: int,
) -> Metrics:
    """One pass over the batch; metrics are means over its optimizer steps."""
    totals: Counter[str] = Counter()
    for rows in minibatches(batch, count):
        part = algorithm.weigh(batch.take(rows), replay_share)
        part = part.take(torch.nonzero(read[rows])[:, 0])
        share = float(part.weights["policy"].sum())
        metrics = policy.step(
            part,
            algorithm.loss,
            whole_trajectories=algorithm.whole_trajectories,
            entropy_gradient=algorithm.entropy_gradient,
        )
        totals.update({n: v / share if _is_mean(n) else v for n, v in metrics.items()})
    means = {name: value / count for name, value in totals.items()}
    return {**means, "skipped_steps": float(totals["skipped_steps"])}


def fit_critic(critic: Critic, batch: Batch, loss: CriticLoss, count: int) -> Metrics:
    """One pass of the critic over the batch; means over its optimizer steps, and the fit before."""
    weighed = loss.weigh(batch)
    places = weighed.weights["value"] > 0
    value, target = weighed.column("value")[places], weighed.column("value_target")[places]
    spread = float(target.double().var(correction=0))
    error = float((target - value).double().var(correction=0))
    totals: Counter[str] = Counter()
    for rows in minibatches(batch, count):
        totals.update(critic.step(loss.weigh(batch.take(rows)), loss.loss))
    critic.version += 1
    return {
        "value_loss": totals["value_loss"] / count,
        "value_clip_share": totals["value_clip_share"] / count,
        "critic_gradient_norm": totals["gradient_norm"] / count,
        "critic_gradient_clipped": totals["gradient_clipped"] / count,
        "value_mean": float(value.mean()),
        "explained_variance": 1 - error / spread if spread > 0 else 0.0,
        "critic_skipped_steps": float(totals["skipped_steps"]),
    }


def check_minibatches(batch: Batch, count: int) -> None:
    """Raise RunStoppedError where some optimizer steps would see no rows of a kind."""
    for kind in (batch.replayed, ~batch.replayed):
        trajectories = len(torch.unique(batch.trajectory[kind]))
        if 0 < trajectories < count:
            raise RunStoppedError(
                f"{trajectories} trajectories of one kind are left for {count} "
                "minibatches; set policy.minibatches lower"
            )


def _is_mean(name: str) -> bool:
    return name in MEANS or name.endswith("_share")
