"""Named runs: functions that return a whole `Run`."""

from collections.abc import Callable
from dataclasses import replace

from rewardswap.configuration import PolicyConfig, RewardConfig, Run
from rewardswap.loops.rspo import Batch, RewardSwap
from rewardswap.methods.grpo import GRPO
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


def alfworld_rspo_grpo_1_5b() -> Run:
    """The paper's main setting on ALFWorld: Qwen2.5-1.5B, N = 16, k = 3, alpha = 1/8.

    Give `policy.model` (a folder of Qwen2.5-1.5B-Instruct) and `env.games`.
    """
    return Run(
        recipe="alfworld-rspo-grpo-1.5b",
        method=GRPO(kl_coefficient=0.01),
        policy=PolicyConfig(model="Qwen2.5-1.5B-Instruct", minibatches=8, device="cuda"),
    )


def alfworld_grpo_1_5b() -> Run:
    """The base method of the paper's main setting alone."""
    return replace(alfworld_rspo_grpo_1_5b(), recipe="alfworld-grpo-1.5b", loop="on_policy")


RECIPES: dict[str, Callable[[], Run]] = {
    "demo": demo,
    "demo-grpo": demo_grpo,
    "alfworld-rspo-grpo-1.5b": alfworld_rspo_grpo_1_5b,
    "alfworld-grpo-1.5b": alfworld_grpo_1_5b,
}
"""Every recipe by its name on the command line."""
