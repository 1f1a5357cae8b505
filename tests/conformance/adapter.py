"""Translates the recorded inputs of verl and verl-agent into calls of this library.

It changes shapes and names only; every number comes from a function of `rewardswap`.
"""

import sys
from collections.abc import Callable
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))  # so that it can be loaded by its path alone

import adapter_advantages
import adapter_losses
from adapter_inputs import Values, plain

from rewardswap.core import anchors, surrogates
from rewardswap.envs.alfworld.prompts import AlfworldPrompts
from rewardswap.envs.base import PromptStyle
from rewardswap.envs.webshop.prompts import ShopPrompts

Function = Callable[[Values], Values]


def run(name: str, inputs: Values) -> Values:
    """Outputs of the library for one recorded case: lists, numbers and texts, as recorded."""
    return {key: plain(value) for key, value in FUNCTIONS[name](inputs).items()}


def _projection(style: PromptStyle) -> Function:
    def function(x: Values) -> Values:
        action, valid = style.action(x["text"])
        return {"action": action, "valid": int(valid)}

    return function


def _are_similar(x: Values) -> Values:
    return {"similar": anchors.are_similar(x["a"], x["b"], x["threshold"])}


FUNCTIONS: dict[str, Function] = {
    "rspo.generalized_clip": adapter_losses.generalized_clip,
    "verl.policy_loss.vanilla": adapter_losses.ppo,
    "verl.policy_loss.gspo": adapter_losses.gspo,
    "verl.policy_loss.cispo": adapter_losses.cispo,
    "verl.policy_loss.dppo_tv": adapter_losses.dppo(surrogates.dppo_tv),
    "verl.policy_loss.dppo_kl": adapter_losses.dppo(surrogates.dppo_kl),
    "verl.policy_loss.sapo": adapter_losses.sapo,
    "verl.policy_loss.geo_mean": adapter_losses.gmpo,
    "verl.advantage.grpo": adapter_advantages.grpo,
    "verl.advantage.dr_grpo": adapter_advantages.grpo,
    "verl.advantage.rloo": adapter_advantages.rloo,
    "verl.advantage.opo": adapter_advantages.opo,
    "verl.advantage.reinforce_plus_plus": adapter_advantages.reinforce_plus_plus,
    "gigpo.compute_step_discounted_returns": adapter_advantages.step_returns,
    "gigpo.build_step_group": adapter_advantages.step_group,
    "gigpo.are_similar": _are_similar,
    "gigpo.episode_norm_reward": adapter_advantages.grpo,
    "gigpo.step_norm_reward": adapter_advantages.step,
    "gigpo.compute_gigpo_outcome_advantage": adapter_advantages.gigpo,
    "core_algos.compute_grpo_outcome_advantage": adapter_advantages.grpo,
    "core_algos.compute_rloo_outcome_advantage": adapter_advantages.rloo,
    "core_algos.compute_reinforce_plus_plus_outcome_advantage": (
        adapter_advantages.reinforce_plus_plus
    ),
    "core_algos.compute_reinforce_plus_plus_baseline_outcome_advantage": (
        adapter_advantages.reinforce_plus_plus_baseline
    ),
    "core_algos.compute_gae_advantage_return": adapter_advantages.gae,
    "core_algos.agg_loss": adapter_losses.agg_loss,
    "core_algos.compute_policy_loss": adapter_losses.ppo,
    "core_algos.compute_policy_loss_gspo": adapter_losses.gspo,
    "core_algos.kl_penalty": adapter_losses.kl_penalty,
    "core_algos.compute_value_loss": adapter_losses.value_loss,
    "core_algos.compute_entropy_loss": adapter_losses.entropy,
    "core_algos.compute_rewards": adapter_losses.rewards,
    "torch_functional.masked_stats": adapter_advantages.masked_stats,
    "dp_actor.composed_loss": adapter_losses.composed,
    "ray_trainer.apply_invalid_action_penalty": adapter_advantages.invalid,
    "rollout.filter_group_data": adapter_advantages.filter,
    "alfworld_projection": _projection(AlfworldPrompts()),
    "webshop_projection": _projection(ShopPrompts()),
}
