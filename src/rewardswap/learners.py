"""What learns in a run, made from its settings: the policy, and beside it reference and critic."""

from collections.abc import Callable
from dataclasses import dataclass, replace

import torch
from torch import nn

from rewardswap.algorithm import Algorithm
from rewardswap.configuration import Run
from rewardswap.loops.dense_credit import RewardToGo
from rewardswap.loops.replay_credit import replay_credit
from rewardswap.models.critic import Critic, ValueModel
from rewardswap.models.optimizers import make_adamw
from rewardswap.models.policy import Policy, Reference
from rewardswap.policy_config import PolicyConfig
from rewardswap.ranks import ALONE, Ranks


@dataclass(frozen=True)
class Learners:
    """The policy of a run, and what its method needs beside it."""

    policy: Policy
    reference: Policy | None
    """The start policy, where the method needs it."""
    critic: Critic | None
    """With a trunk of its own, a copy of the start policy's; none where the method has none."""


def make_learners(
    config: PolicyConfig,
    model: nn.Module,
    start_model: nn.Module | None,
    algorithm: Algorithm,
    *,
    ranks: Ranks = ALONE,
    shard: Callable[[nn.Module], None] | None = None,
) -> Learners:
    """Policy, reference and critic of a run.

    The reference is the copy `start_model`, or without one the policy with its adapter off. `shard`
    divides the weights of each of them among `ranks`, in place.
    """
    value_model = None if algorithm.critic is None else ValueModel(model)
    if shard is not None:
        for part in (model, start_model if algorithm.needs_reference else None, value_model):
            if part is not None:
                shard(part)

    def make_optimizer(
        model: nn.Module, learning_rate: float = config.learning_rate
    ) -> torch.optim.Optimizer:
        return make_adamw(
            config.optimizer,
            model.parameters(),
            learning_rate=learning_rate,
            betas=config.betas,
            weight_decay=config.weight_decay,
        )

    def policy_of(model: nn.Module, kind: type[Policy] = Policy) -> Policy:
        return kind(
            model,
            make_optimizer=make_optimizer,
            temperature=config.temperature,
            gradient_clip=config.gradient_clip,
            tokens_per_microbatch=config.tokens_per_microbatch,
            head_logits=config.head_logits,
            gradient_checkpointing=config.gradient_checkpointing,
            packing=config.packing,
            ranks=ranks,
        )

    reference: Policy | None = None
    if algorithm.needs_reference:
        reference = policy_of(model, Reference) if start_model is None else policy_of(start_model)
    critic: Critic | None = None
    if algorithm.critic is not None and value_model is not None:
        rate = algorithm.critic.learning_rate or 10 * config.learning_rate
        critic = Critic(
            value_model,
            make_optimizer=lambda model: make_optimizer(model, rate),
            gradient_clip=config.gradient_clip,
            tokens_per_microbatch=config.tokens_per_microbatch,
            gradient_checkpointing=config.gradient_checkpointing,
            packing=config.packing,
            ranks=ranks,
        )
    return Learners(policy_of(model), reference, critic)


def algorithms_of(run: Run) -> tuple[Algorithm, Algorithm]:
    """The agent's algorithm and the explorer's: the method with the run's credit of rewards."""
    method = run.method.algorithm()
    if run.loop == "on_policy":
        return method, method
    explorer = method
    if run.reward.dense_credit == "reward_to_go":
        explorer = replace(method, advantage=RewardToGo(run.reward.dense_discount))
    if run.loop == "dense":
        return explorer, explorer
    credit = replay_credit(method.advantage, run.swap.replay_advantage)
    return replace(method, advantage=credit), explorer
