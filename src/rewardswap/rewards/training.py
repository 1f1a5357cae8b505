"""Fitting the head of the process reward model: split by task, balance, early stopping.

Letters: N trajectories, K turns, S turns of all trajectories together, F features.
"""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.features import TurnFeatures
from rewardswap.rewards.heads import RewardHead
from rewardswap.rewards.losses import fit_loss
from rewardswap.types import Trajectory


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


def target_of(trajectory: Trajectory, config: ProcessRewardConfig) -> float:
    """What R_hat, the sum of a trajectory's turn rewards, is fitted to, in [0, 1]."""
    if config.target == "success":
        return float(trajectory.success)
    return trajectory.outcome if config.target == "outcome" else trajectory.task_score


def balance_weights(
    targets: Sequence[float], lengths: Sequence[int], config: ProcessRewardConfig
) -> tuple[float, float]:
    """Weights of a target of 1 and of one of 0, with which each end carries half of the loss.

    With `positive_weight` a target of 1 weighs so many times that. A target y between them counts
    as y of a 1 and 1 - y of a 0, and weighs as that mixture (ours).
    What is balanced is what the loss counts: trajectories for `total`, prefixes for `prefixes`.
    Raises ValueError when all targets are equal: there is nothing to tell apart.
    """
    if len(set(targets)) < 2:
        raise ValueError(
            f"all {len(targets)} trajectories have {config.target} {targets[0]:g}: a process "
            "reward model needs different ones; collect more tasks or at other temperatures"
        )
    if config.balance == "none":
        return config.positive_weight, 1.0
    counts = [1] * len(targets) if config.loss_on == "total" else lengths
    total = sum(counts)
    of_ones = sum(count * target for count, target in zip(counts, targets, strict=True))
    return config.positive_weight * total / (2 * of_ones), total / (2 * (total - of_ones))


@dataclass(frozen=True)
class _Examples:
    features: TurnFeatures
    target: Float[Tensor, "N"]
    weight: Float[Tensor, "N"]
    task: Int[Tensor, "N"]
    """Number of each trajectory's task."""

    def loss(self, head: RewardHead, config: ProcessRewardConfig) -> Tensor:
        output = padded(head(self.features.values), self.features.lengths)
        lengths = torch.tensor(self.features.lengths)
        return fit_loss(output, lengths, self.target, self.weight, self.task, config)

    def of(self, rows: Tensor) -> "_Examples":
        features = self.features.of(rows.tolist())
        return _Examples(features, self.target[rows], self.weight[rows], self.task[rows])

    def batches(self, config: ProcessRewardConfig, order: torch.Generator) -> Iterator[Tensor]:
        """Rows of one pass in random order; where pairs are compared, whole tasks at once."""
        if not config.compares_pairs:
            shuffled = torch.randperm(len(self.target), generator=order)
            yield from torch.split(shuffled, config.batch_size)
            return
        tasks = torch.unique(self.task)
        rows = torch.empty(0, dtype=torch.int64)
        for number in tasks[torch.randperm(len(tasks), generator=order)]:
            rows = torch.cat([rows, torch.nonzero(self.task == number)[:, 0]])
            if len(rows) >= config.batch_size:
                yield rows
                rows = rows[:0]
        if len(rows):
            yield rows


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

    Raises ValueError when the training part has one target only, and for a loss of pairs also when
    the validation part has.
    """
    targets = [target_of(trajectory, config) for trajectory in trajectories]
    one, zero = balance_weights(
        [targets[n] for n in split.training], [features.lengths[n] for n in split.training], config
    )
    weights = [target * one + (1 - target) * zero for target in targets]
    if config.compares_pairs and len({targets[n] for n in split.validation}) < 2:
        raise ValueError(
            f"the {len(split.validation)} trajectories kept for early stopping have one "
            f"{config.target} only, so loss {config.loss} has no pair there; collect more tasks"
        )
    names = sorted({trajectory.task.id for trajectory in trajectories})
    number = {name: n for n, name in enumerate(names)}
    task = [number[trajectory.task.id] for trajectory in trajectories]
    every = _Examples(features, torch.tensor(targets), torch.tensor(weights), torch.tensor(task))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(config.seed)
        head = RewardHead(features.values.shape[1], config.hidden_size, config.head)
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
        for rows in training.batches(config, order):
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
