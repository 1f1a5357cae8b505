"""The dense process reward model: frozen language model, MLP, tanh; one reward per turn.

Paper: arXiv:2607.04713, Eq. 5-7, the preset `action`. Ours: the preset `after_observation`, and
every other head, aggregation and loss.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import torch
from jaxtyping import Float
from torch import Tensor, nn

from rewardswap.ranks import ALONE, Ranks
from rewardswap.rewards.backbone import make_backbone
from rewardswap.rewards.cache import FeatureCache
from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.features import TurnFeatures, fingerprint, turn_features
from rewardswap.rewards.heads import RewardHead, turn_rewards
from rewardswap.rewards.online import Collected, Refit, refit
from rewardswap.rewards.quality import ProcessRewardQuality, judge
from rewardswap.rewards.saving import SavedHead, read_head, write_head
from rewardswap.rewards.training import FitHistory, Split, fit_head, padded, split_by_task
from rewardswap.types import Group, Trajectory


class ProcessRewardModel:
    """A learned reward source: what each turn changes in R_hat, which is fitted to the outcome.

    `backbone` is the start policy. Where `config.backbone` is `policy` it belongs to the model from
    then on: it is cast to float32 and frozen, so give `frozen_copy(policy_model)`, not the model
    that is being trained. Where it names another model, that one is loaded onto the same device and
    reads the trajectories' text. Hidden states are kept in `cache`, if there is one.
    """

    name = "process"

    def __init__(
        self,
        backbone: nn.Module,
        config: ProcessRewardConfig,
        cache: FeatureCache | None = None,
    ) -> None:
        self._reader = make_backbone(config.backbone, backbone)
        self.backbone = self._reader.model
        self.config = config
        self.cache = cache
        self.ranks: Ranks = ALONE
        self.fingerprint = fingerprint(self.backbone)
        self.head: RewardHead | None = None
        self.history: FitHistory | None = None
        self.collected = Collected()
        """What the head was fitted on, for `refit`."""
        self.version = 0
        """How many refits were accepted."""

    def divide(self, ranks: Ranks, shard: Callable[[nn.Module], None] | None) -> None:
        """Read by `ranks` together from now on; `shard` divides the backbone's weights too.

        Every rank calls what follows with the same trajectories, and knows all features.
        """
        self.ranks = ranks
        if shard is not None:
            shard(self.backbone)

    def fit(self, trajectories: Sequence[Trajectory]) -> ProcessRewardQuality:
        """Fit the head and say how good it is on the tasks held out from it.

        Tasks are split in three by seed and task id: training, early stopping, quality. Raises
        ValueError with fewer than three tasks, or when the training part has one target only.
        """
        features = self.features(trajectories)
        split = split_by_task(trajectories, self.config)
        self.head, self.history = fit_head(trajectories, features, split, self.config)
        self.collected = Collected.first(trajectories, split)
        return self.judged(self.head, trajectories, features, split)

    def refit(self, trajectories: Sequence[Trajectory]) -> Refit:
        """Fit anew on these and all earlier trajectories; keep the result if it is no worse."""
        return refit(self, trajectories)

    def features(self, trajectories: Sequence[Trajectory]) -> TurnFeatures:
        """What the backbone says of each turn."""
        return turn_features(
            self._reader.readable(trajectories),
            self.backbone,
            self.config,
            cache=self.cache,
            backbone_sha256=self.fingerprint,
            ranks=self.ranks,
        )

    def judged(
        self,
        head: RewardHead,
        trajectories: Sequence[Trajectory],
        features: TurnFeatures,
        split: Split,
    ) -> ProcessRewardQuality:
        """Quality of a head on the held-out part of trajectories that have these features."""
        rewards = self._rewards(head, features.of(split.held_out))
        return judge(
            [trajectories[n] for n in split.held_out],
            [row.tolist() for row in rewards],
            trained_on_trajectories=len(split.training),
            validation_trajectories=len(split.validation),
        )

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[Float[Tensor, "_"]]:
        """Reward of each turn of each trajectory; each row sums to R_hat."""
        return self._rewards(self._fitted_head(), self.features(trajectories))

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """Reward of every turn, 0 where a trajectory has none."""
        rows = self.rewards(group.trajectories)
        return padded(torch.cat(rows), [len(row) for row in rows])

    def _fitted_head(self) -> RewardHead:
        if self.head is None:
            raise ValueError(
                "this process reward model has no head yet; call `fit` or use `from_pretrained`"
            )
        return self.head

    @torch.no_grad()
    def _rewards(self, head: RewardHead, features: TurnFeatures) -> list[Tensor]:
        outputs = torch.split(head(features.values), list(features.lengths))
        return [turn_rewards(output, self.config.aggregation) for output in outputs]

    def state(self) -> dict[str, Any]:
        """Head, version, and what was fitted on: the settings and the backbone are not in it."""
        weights = {} if self.head is None else dict(self.head.state_dict())
        return {"weights": weights, "version": self.version, "collected": self.collected}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state` of a model with the same settings and backbone."""
        weights, self.version = state["weights"], state["version"]
        saved = SavedHead(self.config, weights, self.fingerprint, self.version)
        self.head = saved.head() if weights else None
        self.collected = state["collected"]

    def save_pretrained(self, folder: Path) -> None:
        """Write the head and its settings into `folder`; the backbone is named by fingerprint."""
        if self.head is None:
            raise ValueError("a process reward model that was never fitted cannot be saved")
        weights = self.head.state_dict()
        write_head(folder, SavedHead(self.config, weights, self.fingerprint, self.version))

    @classmethod
    def from_pretrained(
        cls, folder: Path, backbone: nn.Module, cache: FeatureCache | None = None
    ) -> "ProcessRewardModel":
        """Read what `save_pretrained` wrote; the backbone must be the one it was fitted on.

        `backbone` is the start policy, as for a new model. Raises ValueError when the backbone's
        weights differ, and naming the file when one is missing, damaged or of another format.
        """
        saved = read_head(folder)
        model = cls(backbone, saved.config, cache)
        if model.fingerprint != saved.backbone_sha256:
            raise ValueError(
                f"the process reward model in {folder} was fitted on a backbone with sha256 "
                f"{saved.backbone_sha256[:12]}, this one has {model.fingerprint[:12]}; "
                "load that backbone, or fit anew"
            )
        model.head = saved.head()
        model.version = saved.version
        return model
