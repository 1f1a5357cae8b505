"""What of a model learns, read off the module itself on torch's meta device."""

from dataclasses import dataclass

import torch
from torch import nn

from rewardswap.configuration import Run
from rewardswap.models.adapter import add_adapter
from rewardswap.models.critic import ValueModel
from rewardswap.models.optimizers import OptimizerName
from rewardswap.models.precision import round_weights
from rewardswap.plan.memory import (
    branch_bytes,
    gradient_bytes,
    master_bytes,
    moment_bytes,
    passing_gradient_bytes,
)
from rewardswap.plan.shapes import Blueprint


@dataclass(frozen=True)
class Learned:
    """The weights of one learner."""

    bytes: int
    """Of all weights, frozen ones too."""
    trained_bytes: int
    sizes: tuple[int, ...]
    """Numbers of each trained tensor."""
    rounded: int
    """Trained numbers that the model holds in bfloat16."""

    @staticmethod
    def of(model: nn.Module) -> "Learned":
        """What a model's parameters are, on whatever device."""
        every = list(model.parameters())
        trained = [weight for weight in every if weight.requires_grad]
        return Learned(
            bytes=sum(weight.nbytes for weight in every),
            trained_bytes=sum(weight.nbytes for weight in trained),
            sizes=tuple(weight.numel() for weight in trained),
            rounded=sum(w.numel() for w in trained if w.dtype != torch.float32),
        )

    @property
    def trained(self) -> int:
        """Trained numbers."""
        return sum(self.sizes)

    def state(self, optimizer: OptimizerName) -> dict[str, int]:
        """Bytes that are there all the time, by what they are."""
        return {
            "weights": self.bytes,
            "masters": master_bytes(self.rounded),
            "moments": moment_bytes(self.sizes, optimizer),
            "gradients": gradient_bytes(self.trained),
        }

    def passing(self) -> int:
        """Bytes of gradients that one backward pass leaves before they are summed."""
        return passing_gradient_bytes(self.rounded)

    def branch(self, optimizer: OptimizerName) -> int:
        """Bytes of the copy that comes back when the explorer is thrown away."""
        return branch_bytes(self.trained_bytes, self.rounded, moment_bytes(self.sizes, optimizer))


@dataclass(frozen=True)
class Models:
    """The models of a run."""

    policy: Learned
    critic: Learned | None
    copied: int
    """Bytes of the start policy, as reference or as what the process reward is made from."""
    backbone: int
    """Bytes of the process reward's trunk, float32."""

    @staticmethod
    def of(run: Run, blueprint: Blueprint) -> "Models":
        """Built as a run builds them, without weights; raises ValueError as the adapter does."""
        model, policy = blueprint.build(), run.policy
        if policy.precision == "bfloat16":
            round_weights(model)
        whole = Learned.of(model).bytes
        trunk = sum(weight.numel() for weight in model.get_decoder().parameters())
        if policy.lora_rank is not None:
            with torch.device("meta"):
                add_adapter(model, policy.lora_rank, policy.lora_alpha, policy.lora_targets)
        algorithm = run.method.algorithm()
        learned = learns_reward(run)
        copied = learned or (algorithm.needs_reference and policy.lora_rank is None)
        return Models(
            policy=Learned.of(model),
            critic=None if algorithm.critic is None else Learned.of(ValueModel(model)),
            copied=whole if copied else 0,
            backbone=4 * trunk if learned else 0,
        )


def learns_reward(run: Run) -> bool:
    """Whether the run fits a process reward model."""
    return run.uses_dense_reward and run.reward.learned
