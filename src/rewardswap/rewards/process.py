"""The dense process reward model: frozen language model, MLP, tanh; one reward per turn.

Paper: arXiv:2607.04713, Eq. 5-7, the preset `action`. Ours: the preset `after_observation`.
"""

import hashlib
import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

import numpy as np
import torch
from jaxtyping import Float
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.features import TurnFeatures, fingerprint, freeze, turn_features
from rewardswap.rewards.quality import ProcessRewardQuality, judge
from rewardswap.rewards.training import FitHistory, RewardHead, fit_head, padded, split_by_task
from rewardswap.types import Group, Trajectory

WEIGHTS = "process_reward.safetensors"
SETTINGS = "process_reward.json"


class ProcessRewardModel:
    """A learned reward source: r_t = tanh(MLP(h_t)), with sum_t r_t fitted to the outcome.

    The backbone belongs to the model from then on: it is cast to float32 and frozen. Give it
    `frozen_copy(policy_model)`, not the model that is being trained.
    """

    name = "process"

    def __init__(self, backbone: nn.Module, config: ProcessRewardConfig) -> None:
        self.backbone = freeze(backbone)
        self.config = config
        self.fingerprint = fingerprint(self.backbone)
        self.head: RewardHead | None = None
        self.history: FitHistory | None = None

    def fit(self, trajectories: Sequence[Trajectory]) -> ProcessRewardQuality:
        """Fit the head and say how good it is on the tasks held out from it.

        Tasks are split in three by seed and task id: training, early stopping, quality. Raises
        ValueError with fewer than three tasks, or when the training part has one target only.
        """
        features = turn_features(trajectories, self.backbone, self.config)
        split = split_by_task(trajectories, self.config)
        self.head, self.history = fit_head(trajectories, features, split, self.config)
        held_out = [trajectories[n] for n in split.held_out]
        return judge(
            held_out,
            [row.tolist() for row in self._rewards(features.of(split.held_out))],
            trained_on_trajectories=len(split.training),
            validation_trajectories=len(split.validation),
        )

    def rewards(self, trajectories: Sequence[Trajectory]) -> list[Float[Tensor, "_"]]:
        """Reward of each turn of each trajectory, without noise."""
        return self._rewards(turn_features(trajectories, self.backbone, self.config))

    def score(self, group: Group) -> Float[Tensor, "N K"]:
        """Reward of every turn, 0 where a trajectory has none, with `config.noise` if any.

        The noise of a turn belongs to (seed, policy version, task, episode, turn), so it does not
        depend on which siblings are scored together.
        """
        rows = self.rewards(group.trajectories)
        if self.config.noise:
            rows = [
                row + self.config.noise * _standard_normal(trajectory, self.config.seed)
                for row, trajectory in zip(rows, group.trajectories, strict=True)
            ]
        return padded(torch.cat(rows), [len(row) for row in rows])

    @torch.no_grad()
    def _rewards(self, features: TurnFeatures) -> list[Tensor]:
        if self.head is None:
            raise ValueError(
                "this process reward model has no head yet; call `fit` or use `from_pretrained`"
            )
        return list(torch.split(self.head(features.values), list(features.lengths)))

    def save_pretrained(self, folder: Path) -> None:
        """Write the head and its settings into `folder`; the backbone is named by fingerprint."""
        if self.head is None:
            raise ValueError("a process reward model that was never fitted cannot be saved")
        folder.mkdir(parents=True, exist_ok=True)
        save_file(self.head.state_dict(), folder / WEIGHTS)
        settings = {"config": asdict(self.config), "backbone_sha256": self.fingerprint}
        (folder / SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")

    @classmethod
    def from_pretrained(cls, folder: Path, backbone: nn.Module) -> "ProcessRewardModel":
        """Read what `save_pretrained` wrote; the backbone must be the one it was fitted on.

        Raises ValueError when the backbone's weights differ.
        """
        settings = json.loads((folder / SETTINGS).read_text(encoding="utf-8"))
        model = cls(backbone, ProcessRewardConfig(**settings["config"]))
        if model.fingerprint != settings["backbone_sha256"]:
            raise ValueError(
                f"the process reward model in {folder} was fitted on a backbone with sha256 "
                f"{settings['backbone_sha256'][:12]}, this one has {model.fingerprint[:12]}; "
                "load that backbone, or fit anew"
            )
        weights = load_file(folder / WEIGHTS)
        model.head = RewardHead(len(weights["mean"]), model.config.hidden_size)
        model.head.load_state_dict(weights)
        model.head.eval().requires_grad_(False)
        return model


def _standard_normal(trajectory: Trajectory, seed: int) -> Float[Tensor, "K"]:
    """One draw per turn from a stream of the trajectory's own."""
    key = f"{seed} {trajectory.policy_version} {trajectory.task.id} {trajectory.index}"
    stream = int.from_bytes(hashlib.sha256(key.encode()).digest()[:16], "little")
    draws = np.random.Generator(np.random.Philox(key=stream)).standard_normal(len(trajectory.turns))
    return torch.from_numpy(draws.astype(np.float32))
