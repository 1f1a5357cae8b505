"""Fitting the head of the process reward model: split by task, balance, losses, early stopping.

Letters: N trajectories, K turns, S turns of all trajectories together, F features.
"""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn
from torch.nn.utils.rnn import pad_sequence

from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.features import TurnFeatures
from rewardswap.types import Trajectory


class RewardHead(nn.Module):
    """Standardised features to a turn reward: r_t = tanh(MLP(h_t)) in (-1, 1) (Eq. 6).

    Standardising by the training turns' mean and deviation is ours.
    """

    mean: Tensor
    deviation: Tensor

    def __init__(self, feature_size: int, hidden_size: int) -> None:
        super().__init__()
        self.register_buffer("mean", torch.zeros(feature_size))
        self.register_buffer("deviation", torch.ones(feature_size))
        self.layers = nn.Sequential(
            nn.Linear(feature_size, hidden_size), nn.GELU(), nn.Linear(hidden_size, 1)
        )

    def standardize_by(self, values: Float[Tensor, "S F"]) -> None:
        """Store mean and deviation of these features; a constant feature keeps deviation 1."""
        deviation = values.std(dim=0, correction=0)
        self.mean.copy_(values.mean(dim=0))
        self.deviation.copy_(torch.where(deviation > 1e-6, deviation, torch.ones(())))

    def forward(self, values: Float[Tensor, "S F"]) -> Float[Tensor, "S"]:
        """Reward of each turn."""
        rewards: Tensor = self.layers((values - self.mean) / self.deviation)
        return torch.tanh(rewards[:, 0])


@dataclass(frozen=True, slots=True)
class Split:
    """Indices of trajectories for fitting, for early stopping, and for the report of quality."""

    training: tuple[int, ...]
    validation: tuple[int, ...]
    held_out: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class FitHistory:
    """Losses of each epoch, and the epoch whose weights were kept."""

    training: tuple[float, ...]
    validation: tuple[float, ...]
    kept_epoch: int


def split_by_task(trajectories: Sequence[Trajectory], config: ProcessRewardConfig) -> Split:
    """No task in two parts; which part is decided by sha256 of seed and task id, not by order.

    Raises ValueError when there are fewer than three tasks.
    """
    tasks = sorted(
        {t.task.id for t in trajectories},
        key=lambda task: hashlib.sha256(f"{config.seed} {task}".encode()).hexdigest(),
    )
    if len(tasks) < 3:
        raise ValueError(
            f"{len(tasks)} tasks cannot be split into training, validation and held out; "
            "collect trajectories of at least 3 tasks"
        )
    held_out = min(max(1, round(config.held_out_share * len(tasks))), len(tasks) - 2)
    last = min(max(1, round(config.validation_share * len(tasks))), len(tasks) - held_out - 1)
    part = {task: min(place // held_out, 1) for place, task in enumerate(tasks)}
    for task in tasks[len(tasks) - last :]:
        part[task] = 2
    members = [[n for n, t in enumerate(trajectories) if part[t.task.id] == p] for p in range(3)]
    return Split(
        held_out=tuple(members[0]), training=tuple(members[1]), validation=tuple(members[2])
    )


def total_loss(
    reward: Float[Tensor, "N K"], target: Float[Tensor, "N"], weight: Float[Tensor, "N"]
) -> Float[Tensor, ""]:
    """mean_i (sum_t r_{i,t} - R_i)^2, weighted by trajectory (arXiv:2607.04713, Eq. 7).

    `reward` is 0 where a trajectory has no turn.
    """
    error = (reward.sum(dim=1) - target).square()
    return (weight * error).sum() / weight.sum()


def prefix_loss(
    reward: Float[Tensor, "N K"],
    mask: Bool[Tensor, "N K"],
    target: Float[Tensor, "N"],
    weight: Float[Tensor, "N"],
) -> Float[Tensor, ""]:
    """mean over prefixes (i, t) of (sum_{s<=t} r_{i,s} - R_i)^2, weighted by trajectory (ours).

    Every prefix is one example, so partial sums learn the chance of success at that turn, and a
    turn's reward is how much the turn changed it.
    """
    error = (reward.cumsum(dim=1) - target[:, None]).square()
    share = weight[:, None] * mask
    return (share * error).sum() / share.sum()


def target_of(trajectory: Trajectory, config: ProcessRewardConfig) -> float:
    """What the sum of a trajectory's turn rewards is fitted to, in [0, 1]."""
    if config.target == "success":
        return float(trajectory.success)
    return trajectory.outcome if config.target == "outcome" else trajectory.task_score


def balance_weights(
    targets: Sequence[float], lengths: Sequence[int], config: ProcessRewardConfig
) -> tuple[float, float]:
    """Weights of a target of 1 and of one of 0, with which each end carries half of the loss.

    A target y between them counts as y of a 1 and 1 - y of a 0, and weighs as that mixture (ours).
    What is balanced is what the loss counts: trajectories for `total`, prefixes for `prefixes`.
    Raises ValueError when all targets are equal: there is nothing to tell apart.
    """
    if len(set(targets)) < 2:
        raise ValueError(
            f"all {len(targets)} trajectories have {config.target} {targets[0]:g}: a process "
            "reward model needs different ones; collect more tasks or at other temperatures"
        )
    if config.balance == "none":
        return 1.0, 1.0
    counts = [1] * len(targets) if config.loss_on == "total" else lengths
    total = sum(counts)
    of_ones = sum(count * target for count, target in zip(counts, targets, strict=True))
    return total / (2 * of_ones), total / (2 * (total - of_ones))


@dataclass(frozen=True)
class _Examples:
    features: TurnFeatures
    target: Float[Tensor, "N"]
    weight: Float[Tensor, "N"]

    def loss(self, head: RewardHead, config: ProcessRewardConfig) -> Tensor:
        reward = padded(head(self.features.values), self.features.lengths)
        if config.loss_on == "total":
            return total_loss(reward, self.target, self.weight)
        lengths = torch.tensor(self.features.lengths)
        mask = torch.arange(reward.shape[1])[None, :] < lengths[:, None]
        return prefix_loss(reward, mask, self.target, self.weight)

    def of(self, rows: Tensor) -> "_Examples":
        return _Examples(self.features.of(rows.tolist()), self.target[rows], self.weight[rows])


def padded(rewards: Float[Tensor, "S"], lengths: Sequence[int]) -> Float[Tensor, "N K"]:
    """Ragged turn rewards as rows of trajectories, 0 where a trajectory has no turn."""
    return pad_sequence(list(torch.split(rewards, list(lengths))), batch_first=True)


def fit_head(
    trajectories: Sequence[Trajectory],
    features: TurnFeatures,
    split: Split,
    config: ProcessRewardConfig,
) -> tuple[RewardHead, FitHistory]:
    """Fit on the training part, keep the epoch of lowest validation loss.

    Raises ValueError when the training part has one target only.
    """
    targets = [target_of(trajectory, config) for trajectory in trajectories]
    one, zero = balance_weights(
        [targets[n] for n in split.training], [features.lengths[n] for n in split.training], config
    )
    weights = [target * one + (1 - target) * zero for target in targets]
    every = _Examples(features, torch.tensor(targets), torch.tensor(weights))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        head = RewardHead(features.values.shape[1], config.hidden_size)
    training = every.of(torch.tensor(split.training))
    head.standardize_by(training.features.values)
    history = _descend(head, training, every.of(torch.tensor(split.validation)), config)
    return head.eval().requires_grad_(False), history


def _descend(
    head: RewardHead, training: _Examples, validation: _Examples, config: ProcessRewardConfig
) -> FitHistory:
    optimizer = torch.optim.AdamW(
        head.parameters(), lr=config.learning_rate, weight_decay=config.weight_decay
    )
    order = torch.Generator().manual_seed(config.seed)
    losses: list[float] = []
    checks: list[float] = []
    best, kept_epoch = {name: v.clone() for name, v in head.state_dict().items()}, 0
    for epoch in range(config.epochs):
        total = 0.0
        shuffled = torch.randperm(len(training.target), generator=order)
        for rows in torch.split(shuffled, config.batch_size):
            optimizer.zero_grad(set_to_none=True)
            loss = training.of(rows).loss(head, config)
            loss.backward()  # type: ignore[no-untyped-call]
            optimizer.step()
            total += float(loss.detach()) * len(rows)
        losses.append(total / len(training.target))
        with torch.no_grad():
            checks.append(float(validation.loss(head, config)))
        if checks[-1] <= min(checks):
            best, kept_epoch = {name: v.clone() for name, v in head.state_dict().items()}, epoch
        if epoch - kept_epoch >= config.patience:
            break
    head.load_state_dict(best)
    return FitHistory(tuple(losses), tuple(checks), kept_epoch)
