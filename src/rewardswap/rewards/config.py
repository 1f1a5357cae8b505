"""Settings of the process reward model, with the paper's reading and ours as presets."""

import math
from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class ProcessRewardConfig:
    """How the process reward model reads turns, what a turn's reward is, and how it is fitted.

    The defaults of `features`, `layers`, `head`, `aggregation`, `loss` and `loss_on` are the
    paper's (arXiv:2607.04713, Eq. 5-7). Everything else is ours: the paper's text at hand does not
    say it. Raises ValueError, with the reason, for settings that do not go together.
    """

    backbone: str = "policy"
    """The frozen language model that reads turns: `policy` for the start policy's trunk, which
    reads the sampled tokens, or a model's folder or short name, which reads the text anew as a
    chat in its own tokens (paper: Llama-3.2-3B-Instruct)."""
    features: Literal["action", "after_observation"] = "action"
    """Where a turn is read: at its action's last token (paper), or at the last token before the
    next action, when the observation has come back (ours)."""
    layers: Literal["last", "all"] = "last"
    """Which hidden states are read: the last layer's (paper), or those of the embedding and all
    layers side by side (ours)."""
    head: Literal["tanh", "sigmoid", "linear"] = "tanh"
    """Range of the MLP's output: (-1, 1) (paper), (0, 1), or all numbers."""
    aggregation: Literal["sum", "mean", "telescoping"] = "sum"
    """How the outputs of turns make R_hat: their sum (paper), their mean, or the last of them,
    each a value of the state after its turn. A turn's reward is what it changes in R_hat of the
    turns so far, which is 0 before the first."""
    loss: Literal["mse", "bce", "margin", "pairwise"] = "mse"
    """What R_hat is fitted by: squared error (paper), cross-entropy, or a comparison of pairs of a
    higher and a lower target: hinge of `margin`, or the logistic of their difference."""
    margin: float = 0.5
    """By how much the better one of a pair must lead in R_hat to cost nothing; `margin` only."""
    loss_on: Literal["total", "prefixes"] = "total"
    """What the loss speaks of: R_hat of all turns (paper), or R_hat of the turns so far after every
    turn (ours); pairs are then compared after as many turns each, among those that have them."""
    target: Literal["outcome", "success", "task_score"] = "outcome"
    """What is predicted: the outcome in [0, 1] (paper), 1 for success and 0 for failure, or the
    benchmark's own score in [0, 1] (WebShop: its reward)."""
    balance: Literal["outcome", "none"] = "outcome"
    """Whether successes and failures carry half of the loss each, by weights on trajectories; one
    whose target is y in between counts as y of a success and 1 - y of a failure. Pairs have one
    of each as they are."""
    positive_weight: float = 1.0
    """How many times a success weighs what it weighs by `balance`; for `mse` and `bce`."""
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
    seed: int = 0
    """Seed of the split, the initial weights, and the order of trajectories."""
    tokens_per_batch: int = 8192
    """Most tokens, with padding, of one forward pass of the backbone."""

    def __post_init__(self) -> None:
        for name in ("hidden_size", "epochs", "patience", "batch_size", "tokens_per_batch"):
            if getattr(self, name) < 1:
                raise ValueError(f"`{name}` is {getattr(self, name)}, it must be at least 1")
        for name in ("learning_rate", "margin", "positive_weight"):
            if not getattr(self, name) > 0:
                raise ValueError(f"`{name}` is {getattr(self, name)}, it must be above 0")
        if not self.weight_decay >= 0:
            raise ValueError(f"`weight_decay` is {self.weight_decay}, it must be at least 0")
        shares = (self.held_out_share, self.validation_share)
        if min(shares) <= 0 or sum(shares) >= 1:
            raise ValueError(
                f"`held_out_share` {shares[0]} and `validation_share` {shares[1]} must be above 0 "
                "and leave a share of the tasks to train on"
            )
        if not self.backbone:
            raise ValueError("`backbone` is empty; take policy, or a model's folder")
        self._refuse_forbidden()

    @property
    def compares_pairs(self) -> bool:
        """Whether the loss reads differences of R_hat between trajectories, not R_hat itself."""
        return self.loss in ("margin", "pairwise")

    def _refuse_forbidden(self) -> None:
        """Raise ValueError with the reason where settings do not go together."""
        if self.head == "sigmoid" and self.aggregation == "sum":
            raise ValueError(
                "`head` sigmoid with `aggregation` sum pays for length: every further turn adds "
                "something above 0; take aggregation telescoping or mean, or head tanh"
            )
        if self.loss == "bce" and self.head != "sigmoid":
            raise ValueError(
                f"`loss` bce needs a probability, and R_hat of head {self.head} is none: it can "
                "lie outside [0, 1]; take head sigmoid with aggregation telescoping or mean"
            )
        reach = {"sigmoid": 1.0, "tanh": 2.0}.get(self.head, math.inf)
        bounded = self.loss == "margin" and self.aggregation != "sum"
        if bounded and self.margin >= reach:
            raise ValueError(
                f"`margin` is {self.margin}, and no two R_hat of head {self.head} with "
                f"aggregation {self.aggregation} are {reach:g} apart; take a smaller one"
            )
        default = ProcessRewardConfig.__dataclass_fields__["margin"].default
        if self.loss != "margin" and self.margin != default:
            raise ValueError(f"`margin` is {self.margin}, and does nothing with loss {self.loss}")
        if self.compares_pairs and (self.balance != "outcome" or self.positive_weight != 1.0):
            raise ValueError(
                f"`balance` is {self.balance} and `positive_weight` {self.positive_weight}, and "
                f"loss {self.loss} reads neither: a pair has one of each kind; leave them out"
            )


PRESETS = {
    "action": ProcessRewardConfig(),
    "after_observation": ProcessRewardConfig(
        features="after_observation", layers="all", loss_on="prefixes"
    ),
}
"""The paper's process reward model, and ours."""
