"""Named runs: functions that return a whole `Run`."""

from collections.abc import Callable
from dataclasses import replace
from typing import Literal

from rewardswap.configuration import PolicyConfig, Run
from rewardswap.env_config.webshop import WebShop
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.base import Method
from rewardswap.methods.gigpo import GiGPO
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.ppo import PPO
from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.sources import RewardConfig


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


def webshop_demo() -> Run:
    """RSPO around GRPO with the shipped small agent in a generated shop, on 2 cores.

    The settings are those of `demo`, but that the dense reward is the rule-based one, the score of
    what would be bought now: a process reward model learns little from the few successes of the
    start policy (ours).
    """
    return replace(
        demo(),
        recipe="webshop-demo",
        budget=50,
        env=WebShop(evaluation_tasks=300),
        reward=RewardConfig(dense="progress"),
    )


def webshop_demo_grpo() -> Run:
    """The base method of `webshop-demo` alone."""
    return replace(webshop_demo(), recipe="webshop-demo-grpo", loop="on_policy")


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


def _webshop(recipe: str, method: Method, loop: Literal["rspo", "on_policy"]) -> Run:
    """Qwen2.5-1.5B in the real shop: give `policy.model` and `env.data`.

    verl-agent's: 15 turns, its prompt, synthetic instructions, learning rate 1e-6, .01 of k3 to the
    start policy, clip .2, some 16 optimizer steps of 64 turns in an update, evaluation at
    temperature .4; its dual clip and entropy bonus are not in the paper's objective and left out
    (method `verl_agent_compat` has them). The paper's: 16 tasks of N = 16 (verl-agent: of 8; its
    PPO 128 of 1), k = 3, alpha = 1/8, 150 updates. Ours: products are split, where verl-agent's
    validation shares them with training (`env.upstream_split`).
    """
    return Run(
        recipe=recipe,
        loop=loop,
        method=method,
        evaluation_temperature=0.4,
        env=WebShop(prompt="verl_agent"),
        policy=PolicyConfig(model="Qwen2.5-1.5B-Instruct", minibatches=16, device="cuda"),
    )


def webshop_rspo_grpo_1_5b() -> Run:
    """The paper's main setting on WebShop: Qwen2.5-1.5B, N = 16, k = 3, alpha = 1/8."""
    return _webshop("webshop-rspo-grpo-1.5b", GRPO(kl_coefficient=0.01), "rspo")


def webshop_rspo_grpo_1_5b_stable() -> Run:
    """The same with pi_old / pi_behavior held at 2 (ours; the paper bounds it nowhere)."""
    method = GRPO(kl_coefficient=0.01, importance_cap="truncate")
    return _webshop("webshop-rspo-grpo-1.5b-stable", method, "rspo")


def webshop_rspo_gigpo_1_5b() -> Run:
    """The paper's setting around GiGPO, only centred as GiGPO's script for WebShop."""
    method = GiGPO(kl_coefficient=0.01, normalisation="mean")
    return _webshop("webshop-rspo-gigpo-1.5b", method, "rspo")


def webshop_rspo_ppo_1_5b() -> Run:
    """The paper's setting on WebShop around PPO with a critic."""
    return _webshop("webshop-rspo-ppo-1.5b", PPO(kl_coefficient=0.01), "rspo")


def webshop_grpo_1_5b() -> Run:
    """The base method of the paper's main setting on WebShop alone."""
    return _webshop("webshop-grpo-1.5b", GRPO(kl_coefficient=0.01), "on_policy")


def webshop_gigpo_1_5b() -> Run:
    """GiGPO alone on WebShop, only centred."""
    method = GiGPO(kl_coefficient=0.01, normalisation="mean")
    return _webshop("webshop-gigpo-1.5b", method, "on_policy")


def webshop_ppo_1_5b() -> Run:
    """PPO with a critic alone on WebShop."""
    return _webshop("webshop-ppo-1.5b", PPO(kl_coefficient=0.01), "on_policy")


RECIPES: dict[str, Callable[[], Run]] = {
    "demo": demo,
    "demo-grpo": demo_grpo,
    "webshop-demo": webshop_demo,
    "webshop-demo-grpo": webshop_demo_grpo,
    "alfworld-rspo-grpo-1.5b": alfworld_rspo_grpo_1_5b,
    "alfworld-rspo-grpo-1.5b-stable": alfworld_rspo_grpo_1_5b_stable,
    "alfworld-rspo-gigpo-1.5b": alfworld_rspo_gigpo_1_5b,
    "alfworld-rspo-ppo-1.5b": alfworld_rspo_ppo_1_5b,
    "alfworld-grpo-1.5b": alfworld_grpo_1_5b,
    "alfworld-gigpo-1.5b": alfworld_gigpo_1_5b,
    "alfworld-ppo-1.5b": alfworld_ppo_1_5b,
    "webshop-rspo-grpo-1.5b": webshop_rspo_grpo_1_5b,
    "webshop-rspo-grpo-1.5b-stable": webshop_rspo_grpo_1_5b_stable,
    "webshop-rspo-gigpo-1.5b": webshop_rspo_gigpo_1_5b,
    "webshop-rspo-ppo-1.5b": webshop_rspo_ppo_1_5b,
    "webshop-grpo-1.5b": webshop_grpo_1_5b,
    "webshop-gigpo-1.5b": webshop_gigpo_1_5b,
    "webshop-ppo-1.5b": webshop_ppo_1_5b,
}
"""Every recipe by its name on the command line."""
