"""Named runs: functions that return a whole `Run`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from rewardswap.configuration import PolicyConfig, RewardConfig, Run
from rewardswap.loops.rspo import Batch, RewardSwap
from rewardswap.methods.base import Method
from rewardswap.methods.gigpo import GiGPO
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.ppo import PPO
from rewardswap.rewards.config import PRESETS


def demo() -> Run:
    """RSPO around GRPO with the shipped small agent in generated rooms: minutes on 2 cores."""
    return Run(
        recipe="demo",
        budget=90,
        policy=PolicyConfig(learning_rate=3e-4, betas=(0.9, 0.95), minibatches=2),
        batch=Batch(tasks=8, group_size=8),
        method=GRPO(average="trajectory"),
        swap=RewardSwap(),
        reward=RewardConfig(model=PRESETS["after_observation"]),
    )


def demo_grpo() -> Run:
    """The base method of `demo` alone."""
    return replace(demo(), recipe="demo-grpo", loop="on_policy")


def _alfworld(recipe: str, method: Method, loop: Literal["rspo", "on_policy"]) -> Run:
    """Qwen2.5-1.5B on the official games: give `policy.model` and `env.games`."""
    return Run(
        recipe=recipe,
        loop=loop,
        method=method,
        policy=PolicyConfig(model="Qwen2.5-1.5B-Instruct", minibatches=8, device="cuda"),
    )


def alfworld_rspo_grpo_1_5b() -> Run:
    """The paper's main setting on ALFWorld: Qwen2.5-1.5B, N = 16, k = 3, alpha = 1/8."""
    return _alfworld("alfworld-rspo-grpo-1.5b", GRPO(kl_coefficient=0.01), "rspo")


def alfworld_rspo_grpo_1_5b_stable() -> Run:
    """The same with pi_old / pi_behavior held at 2 (ours; the paper bounds it nowhere)."""
    method = GRPO(kl_coefficient=0.01, importance_cap="truncate")
    return _alfworld("alfworld-rspo-grpo-1.5b-stable", method, "rspo")


def alfworld_rspo_gigpo_1_5b() -> Run:
    """The paper's setting around GiGPO, divided by the standard deviation as GiGPO's script."""
    return _alfworld("alfworld-rspo-gigpo-1.5b", GiGPO(kl_coefficient=0.01), "rspo")


def alfworld_rspo_ppo_1_5b() -> Run:
    """The paper's setting around PPO with a critic."""
    return _alfworld("alfworld-rspo-ppo-1.5b", PPO(kl_coefficient=0.01), "rspo")


def alfworld_grpo_1_5b() -> Run:
    """The base method of the paper's main setting alone."""
    return _alfworld("alfworld-grpo-1.5b", GRPO(kl_coefficient=0.01), "on_policy")


def alfworld_gigpo_1_5b() -> Run:
    """GiGPO alone."""
    return _alfworld("alfworld-gigpo-1.5b", GiGPO(kl_coefficient=0.01), "on_policy")


def alfworld_ppo_1_5b() -> Run:
    """PPO with a critic alone."""
    return _alfworld("alfworld-ppo-1.5b", PPO(kl_coefficient=0.01), "on_policy")


RECIPES: dict[str, Callable[[], Run]] = {
    "demo": demo,
    "demo-grpo": demo_grpo,
    "alfworld-rspo-grpo-1.5b": alfworld_rspo_grpo_1_5b,
    "alfworld-rspo-grpo-1.5b-stable": alfworld_rspo_grpo_1_5b_stable,
    "alfworld-rspo-gigpo-1.5b": alfworld_rspo_gigpo_1_5b,
    "alfworld-rspo-ppo-1.5b": alfworld_rspo_ppo_1_5b,
    "alfworld-grpo-1.5b": alfworld_grpo_1_5b,
    "alfworld-gigpo-1.5b": alfworld_gigpo_1_5b,
    "alfworld-ppo-1.5b": alfworld_ppo_1_5b,
}
"""Every recipe by its name on the command line."""
