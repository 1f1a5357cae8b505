"""Settings of the process reward model, with the paper's reading and ours as presets."""

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ProcessRewardConfig:
    """How the process reward model reads turns and how it is fitted.

    The defaults of `features`, `layers` and `loss_on` are the paper's (arXiv:2607.04713, Eq. 5-7).
    Everything else is ours: the paper's text at hand does not say it.
    """

    features: Literal["action", "after_observation"] = "action"
    """Where a turn is read: at its action's last token (paper), or at the last token before the
    next action, when the observation has come back (ours)."""
    layers: Literal["last", "all"] = "last"
    """Which hidden states are read: the last layer's (paper), or those of the embedding and all
    layers side by side (ours)."""
    loss_on: Literal["total", "prefixes"] = "total"
    """What is fitted to the outcome: the sum over all turns (paper), or the partial sum after
    every turn (ours)."""
    target: Literal["outcome", "success", "task_score"] = "outcome"
    """What is predicted: the outcome in [0, 1] (paper), 1 for success and 0 for failure, or the
    benchmark's own score in [0, 1] (WebShop: its reward)."""
    balance: Literal["outcome", "none"] = "outcome"
    """Whether successes and failures carry half of the loss each, by weights on trajectories; one
    whose target is y in between counts as y of a success and 1 - y of a failure."""
    hidden_size: int = 128
    """Width of the MLP's one hidden layer."""
    epochs: int = 40
    """Most passes over the training trajectories."""
    patience: int = 8
    """Passes without a lower validation loss after which fitting stops."""
    batch_size: int = 64
    """Trajectories per optimizer step."""
    learning_rate: float = 1e-3
    """AdamW's learning rate."""
    weight_decay: float = 1e-2
    """AdamW's weight decay."""
    held_out_share: float = 0.2
    """Share of the tasks that only the report of quality sees."""
    validation_share: float = 0.15
    """Share of the tasks that only early stopping sees."""
    noise: float = 0.0
    """Standard deviation of Gaussian noise on every turn reward that `score` gives."""
    seed: int = 0
    """Seed of the split, the initial weights, the order of trajectories, and the noise."""
    tokens_per_batch: int = 8192
    """Most tokens, with padding, of one forward pass of the backbone."""

    def __post_init__(self) -> None:
        for name in ("hidden_size", "epochs", "patience", "batch_size", "tokens_per_batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` is {getattr(self, name)}, it must be at least 1")
        if self.learning_rate <= 0:
            raise ValueError(f"`learning_rate` is {self.learning_rate}, it must be above 0")
        for name in ("weight_decay", "noise"):
            if getattr(self, name) < 0:
                raise ValueError(f"`{name}` is {getattr(self, name)}, it must be at least 0")
        shares = (self.held_out_share, self.validation_share)
        if min(shares) <= 0 or sum(shares) >= 1:
            raise ValueError(
                f"`held_out_share` {shares[0]} and `validation_share` {shares[1]} must be above 0 "
                "and leave a share of the tasks to train on"
            )


PRESETS = {
    "action": ProcessRewardConfig(),
    "after_observation": ProcessRewardConfig(
        features="after_observation", layers="all", loss_on="prefixes"
    ),
}
"""The paper's process reward model, and ours."""
