"""Translates the recorded inputs of verl and verl-agent into calls of this library.

It changes shapes and names only; every number comes from a function of `rewardswap`.
"""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from rewardswap.core import (
    anchors,
    clipping,
    divergences,
    ratios,
    reductions,
    segments,
    surrogates,
    values,
)
from rewardswap.methods import compat
from rewardswap.rollout import projections

Values = dict[str, Any]
Function = Callable[[Values], Values]

VERL_RATIO_CAP = 3.0
"""verl's default `clip_ratio_c`, which its recordings of DPPO do not name."""


def run(name: str, inputs: Values) -> Values:
    """Outputs of the library for one recorded case, in the recorded layout."""
    return FUNCTIONS[name](inputs)


def _tensor(value: Any) -> Tensor:
    return torch.tensor(_numbers(value), dtype=torch.float32)


def _numbers(value: Any) -> Any:
    if isinstance(value, list):
        return [_numbers(v) for v in value]
    return float(value)


def _mask(value: Any) -> Tensor:
    return _tensor(value) > 0


def _ids(names: list[Any]) -> Tensor:
    return anchors.anchor_ids([""] * len(names), [str(n) for n in names])


def _logprob(x: Values, key: str = "log_prob") -> Tensor:
    return _tensor(x[key]).requires_grad_()


def _weights(x: Values, mask: Tensor) -> Tensor:
    mode = x.get("loss_agg_mode", "token-mean")
    if mode == "seq-mean-token-mean":
        return reductions.row_mean_weights(mask)
    if mode == "seq-mean-token-sum":
        return reductions.constant_weights(mask, float(len(mask)))
    return reductions.token_mean_weights(mask)


def _reduced(x: Values, loss: Tensor, key: str, logprob: Tensor, gradient: str) -> Values:
    total = reductions.weighted_sum(loss, _weights(x, _mask(x["response_mask"])))
    total.backward()
    return {key: total.detach(), gradient: logprob.grad}


def _share(flags: Tensor, mask: Tensor) -> Tensor:
    return segments.masked_mean(flags.float(), mask)


def _plain_bounds(x: Values, like: Tensor) -> tuple[Tensor, Tensor]:
    low, high = _widths(x)
    return clipping.clip_bounds(torch.ones_like(like), low, high, "additive")


def _widths(x: Values) -> tuple[float, float]:
    names = ("cliprange_low", "cliprange_high")
    if "clip" in x:
        return x["clip"], x["clip"]
    low, high = names if names[0] in x else ("clip_ratio_low", "clip_ratio_high")
    return x[low], x[high]


def _policy_inputs(x: Values) -> tuple[Tensor, Tensor, Tensor, Tensor]:
    mask, logprob = _mask(x["response_mask"]), _logprob(x)
    return mask, logprob, _tensor(x["old_log_prob"]), _tensor(x["advantages"])


def _ppo(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    log_ratio = ratios.log_ratio(logprob, old, mask)
    ratio = log_ratio.exp()
    lower, upper = _plain_bounds(x, ratio)
    clipped = surrogates.ppo_clip(ratio, lower, upper, advantage)
    loss = surrogates.dual_clip(clipped, advantage, x["clip_ratio_c"])
    dual = surrogates.is_dual_clipped(clipped, advantage, x["clip_ratio_c"])
    return {
        **_reduced(x, loss, "pg_loss", logprob, "grad_log_prob"),
        "pg_clipfrac": _share(surrogates.is_clipped(ratio, lower, upper, advantage), mask),
        "pg_clipfrac_lower": _share(dual, mask),
        "ppo_kl": segments.masked_mean(divergences.k1(ratios.log_ratio(old, logprob, mask)), mask),
    }


def _gspo(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    x = {"loss_agg_mode": "seq-mean-token-mean", **x}
    ratio = ratios.row_log_ratio(ratios.log_ratio(logprob, old, mask), mask).exp()
    lower, upper = _plain_bounds(x, ratio)
    loss = surrogates.ppo_clip(ratio, lower, upper, advantage)
    return {
        **_reduced(x, loss, "pg_loss", logprob, "grad_log_prob"),
        "pg_clipfrac": _share(surrogates.is_clipped(ratio, lower, upper, advantage), mask),
        "ppo_kl": segments.masked_mean(divergences.k1(ratios.log_ratio(old, logprob, mask)), mask),
    }


def _cispo(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    ratio = ratios.log_ratio(logprob, old, mask).exp()
    clean = segments.masked_fill_zero(logprob, mask)
    loss = surrogates.cispo(clean, ratio, *_plain_bounds(x, ratio), advantage)
    return _reduced(x, loss, "pg_loss", logprob, "grad_log_prob")


def _dppo(surrogate: Callable[..., Tensor]) -> Function:
    def function(x: Values) -> Values:
        mask, logprob, old, advantage = _policy_inputs(x)
        ratio = ratios.log_ratio(logprob, old, mask).exp()
        low, high = _widths(x)
        clean = segments.masked_fill_zero(logprob, mask)
        loss = surrogate(ratio, clean, old, advantage, low=low, high=high, ratio_cap=VERL_RATIO_CAP)
        return _reduced(x, loss, "pg_loss", logprob, "grad_log_prob")

    return function


def _sapo(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    ratio = ratios.log_ratio(logprob, old, mask).exp()
    loss = surrogates.sapo(ratio, torch.ones_like(ratio), advantage)
    return _reduced(x, loss, "pg_loss", logprob, "grad_log_prob")


def _gmpo(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    log_ratio = ratios.log_ratio(logprob, old, mask)
    bounds = clipping.clip_bounds(torch.zeros_like(log_ratio), *_widths(x), "additive")
    loss = surrogates.gmpo(log_ratio, *bounds, advantage, mask)
    x = {**x, "loss_agg_mode": "seq-mean-token-mean"}
    return _reduced(x, loss, "pg_loss", logprob, "grad_log_prob")


def _generalized_clip(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    behavior = _tensor(x["behavior_log_prob"])
    center = ratios.log_ratio(old, behavior, mask).exp()
    ratio = ratios.replay_ratio(ratios.log_ratio(logprob, old, mask), center)
    lower, upper = clipping.clip_bounds(center, x["eps"], x["eps"], x["window"])
    loss = surrogates.ppo_clip(ratio, lower, upper, advantage)
    return {
        **_reduced(x, loss, "loss", logprob, "grad_log_prob"),
        "clipfrac": _share(surrogates.is_clipped(ratio, lower, upper, advantage), mask),
    }


def _composed(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    ratio = ratios.log_ratio(logprob, old, mask).exp()
    clipped = surrogates.ppo_clip(ratio, *_plain_bounds(x, ratio), advantage)
    policy = surrogates.dual_clip(clipped, advantage, x["clip_ratio_c"])
    kl = divergences.k3(ratios.log_ratio(logprob, _tensor(x["ref_log_prob"]), mask))
    weights = _weights(x, mask)
    loss = compat.actor_loss(
        reductions.weighted_sum(policy, weights),
        reductions.weighted_sum(_tensor(x["entropy"]), weights),
        reductions.weighted_sum(kl, weights),
        entropy_coefficient=x["entropy_coeff"],
        divergence_coefficient=x["kl_loss_coef"],
    )
    loss.backward()
    return {"loss": loss.detach(), "grad_log_prob": logprob.grad}


def _kl_penalty(x: Values) -> Values:
    logprob, reference = _logprob(x, "logprob"), _tensor(x["ref_logprob"])
    everywhere = torch.ones_like(reference).bool()
    kl = KL_NAMES[x["kl_penalty"]](ratios.log_ratio(logprob, reference, everywhere))
    return {"kl": kl.detach(), **_reduced(x, kl, "token_mean_loss", logprob, "grad_logprob")}


def _value_loss(x: Values) -> Values:
    mask, value = _mask(x["response_mask"]), _logprob(x, "vpreds")
    given = (_tensor(x["values"]), _tensor(x["returns"]), x["cliprange_value"])
    loss = values.clipped_value_loss(value, *given)
    clipped = values.value_is_clipped(value, *given)
    return {
        **_reduced(x, loss, "vf_loss", value, "grad_vpreds"),
        "vf_clipfrac": _share(clipped, mask),
    }


def _entropy(x: Values) -> Values:
    entropy = divergences.entropy(_tensor(x["logits"]))
    weights = _weights(x, _mask(x["response_mask"]))
    return {"entropy": entropy, "loss": reductions.weighted_sum(entropy, weights)}


def _masked_stats(x: Values) -> Values:
    given, mask = _tensor(x["values"]), _mask(x["mask"])
    means = [segments.masked_mean(v, m) for v, m in zip(given, mask, strict=True)]
    return {
        "masked_mean": segments.masked_mean(given, mask),
        "masked_mean_axis1": torch.stack(means),
        "masked_var": segments.masked_variance(given, mask),
        "masked_whiten": segments.masked_whiten(given, mask, outside="whitened"),
        "masked_whiten_noshift": segments.masked_whiten(
            given, mask, shift_mean=False, outside="whitened"
        ),
    }


def _agg_loss(x: Values) -> Values:
    weights = _weights(x, _mask(x["loss_mask"]))
    return {"loss": reductions.weighted_sum(_tensor(x["loss_mat"]), weights)}


def _at_tokens(row_values: Tensor, x: Values) -> Values:
    mask = _mask(x["response_mask"])
    spread = row_values[:, None].expand(mask.shape)
    return {"advantages": segments.masked_fill_zero(spread, mask)}


def _rows(x: Values) -> tuple[Tensor, Tensor, Tensor]:
    score, group = _tensor(x["token_level_rewards"]).sum(dim=1), _ids(x["index"])
    every = torch.ones_like(group).bool()
    if x.get("compute_mean_std_cross_steps", True):
        return score, group, every
    return score, group, compat.first_rows(_ids(x["traj_index"]))


def _grpo(x: Values) -> Values:
    score, group, counted = _rows(x)
    divide = x["norm_adv_by_std_in_grpo"] if "norm_adv_by_std_in_grpo" in x else not x["remove_std"]
    advantage = compat.row_advantage(score, group, counted, divide_by_std=divide)
    return _at_tokens(advantage, x)


def _rloo(x: Values) -> Values:
    score, group, _ = _rows(x)
    return _at_tokens(compat.row_leave_one_out(score, group), x)


def _opo(x: Values) -> Values:
    score, group, _ = _rows(x)
    lengths = _mask(x["response_mask"]).sum(dim=1).float()
    return _at_tokens(compat.row_optimal_baseline(score, lengths, group), x)


def _step(x: Values) -> Values:
    score = _tensor(x["step_rewards"])
    step = compat.gigpo_row_advantage(
        torch.zeros_like(score),
        score,
        _ids(x["index"]),
        step_weight=1.0,
        divide_by_std=not x["remove_std"],
    )
    return _at_tokens(step, x)


def _gigpo(x: Values) -> Values:
    score, group, counted = _rows(x)
    divide = x["mode"] == "mean_std_norm"
    advantage = compat.gigpo_row_advantage(
        compat.row_advantage(score, group, counted, divide_by_std=divide),
        _tensor(x["step_rewards"]),
        anchors.anchor_ids(x["index"], x["anchor_obs"]),
        step_weight=x["step_advantage_w"],
        divide_by_std=divide,
    )
    return _at_tokens(advantage, x)


def _reinforce_plus_plus(x: Values) -> Values:
    advantage, returns = compat.whitened_token_returns(
        _tensor(x["token_level_rewards"]), _mask(x["response_mask"]), x.get("gamma", 1.0)
    )
    return {"advantages": advantage, "returns": returns}


def _reinforce_plus_plus_baseline(x: Values) -> Values:
    score, group, _ = _rows(x)
    return {"advantages": compat.whitened_row_scores(score, group, _mask(x["response_mask"]))}


def _gae(x: Values) -> Values:
    advantage, target = compat.whitened_turn_advantage(
        _tensor(x["token_level_rewards"]),
        _tensor(x["values"]),
        _mask(x["response_mask"]),
        discount=x["gamma"],
        trace=x["lam"],
    )
    return {"advantages": advantage, "returns": target}


def _step_returns(x: Values) -> Values:
    rewards, trajectory = _tensor(x["rewards"]), _ids(x["traj_uid"])
    return {"returns": compat.row_returns(rewards, trajectory, x["gamma"])}


def _step_group(x: Values) -> Values:
    if x["enable_similarity"]:
        ids = anchors.similar_anchor_ids(x["index"], x["anchor_obs"], x["similarity_thresh"])
    else:
        ids = anchors.anchor_ids(x["index"], x["anchor_obs"])
    return {"partition": ids}


def _invalid(x: Values) -> Values:
    valid = torch.tensor(x["is_action_valid"])
    score, step = compat.penalise_invalid_actions(
        _tensor(x["token_level_scores"]),
        _tensor(x["step_rewards"]),
        _mask(x["response_mask"]),
        valid,
        x["coef"],
    )
    ratio = _share(valid, torch.ones_like(valid))
    return {
        "token_level_scores": score,
        "step_rewards": step,
        "metrics": {"episode/valid_action_ratio": ratio},
    }


def _rewards(x: Values) -> Values:
    old, reference = _tensor(x["old_log_prob"]), _tensor(x["ref_log_prob"])
    log_ratio = ratios.log_ratio(old, reference, torch.ones_like(old).bool())
    scores = _tensor(x["token_level_scores"])
    return {"rewards": divergences.penalised_reward(scores, log_ratio, x["kl_ratio"])}


def _filter(x: Values) -> Values:
    kept = compat.dynamic_sampling_rows(
        _tensor(x["episode_rewards"]), x["group_n"], last_try=x["last_try"]
    )
    return {"kept": kept}


def _projection(project: Callable[[str], projections.Projection]) -> Function:
    def function(x: Values) -> Values:
        projection = project(x["text"])
        return {"action": projection.action, "valid": int(projection.valid)}

    return function


def _are_similar(x: Values) -> Values:
    return {"similar": anchors.are_similar(x["a"], x["b"], x["threshold"])}


def plain(value: Any) -> Any:
    """Recorded or computed values as nested lists of numbers, texts and truth values."""
    if isinstance(value, Tensor):
        return plain(value.tolist())
    if isinstance(value, list):
        return [plain(v) for v in value]
    if value in ("NaN", "Infinity", "-Infinity"):
        return math.nan if value == "NaN" else float(value)
    return value


KL_NAMES: dict[str, Callable[[Tensor], Tensor]] = {
    "kl": divergences.k1,
    "k1": divergences.k1,
    "abs": divergences.absolute,
    "mse": divergences.k2,
    "k2": divergences.k2,
    "low_var_kl": divergences.k3,
    "k3": divergences.k3,
}

FUNCTIONS: dict[str, Function] = {
    "rspo.generalized_clip": _generalized_clip,
    "verl.policy_loss.vanilla": _ppo,
    "verl.policy_loss.gspo": _gspo,
    "verl.policy_loss.cispo": _cispo,
    "verl.policy_loss.dppo_tv": _dppo(surrogates.dppo_tv),
    "verl.policy_loss.dppo_kl": _dppo(surrogates.dppo_kl),
    "verl.policy_loss.sapo": _sapo,
    "verl.policy_loss.geo_mean": _gmpo,
    "verl.advantage.grpo": _grpo,
    "verl.advantage.dr_grpo": _grpo,
    "verl.advantage.rloo": _rloo,
    "verl.advantage.opo": _opo,
    "verl.advantage.reinforce_plus_plus": _reinforce_plus_plus,
    "gigpo.compute_step_discounted_returns": _step_returns,
    "gigpo.build_step_group": _step_group,
    "gigpo.are_similar": _are_similar,
    "gigpo.episode_norm_reward": _grpo,
    "gigpo.step_norm_reward": _step,
    "gigpo.compute_gigpo_outcome_advantage": _gigpo,
    "core_algos.compute_grpo_outcome_advantage": _grpo,
    "core_algos.compute_rloo_outcome_advantage": _rloo,
    "core_algos.compute_reinforce_plus_plus_outcome_advantage": _reinforce_plus_plus,
    "core_algos.compute_reinforce_plus_plus_baseline_outcome_advantage": (
        _reinforce_plus_plus_baseline
    ),
    "core_algos.compute_gae_advantage_return": _gae,
    "core_algos.agg_loss": _agg_loss,
    "core_algos.compute_policy_loss": _ppo,
    "core_algos.compute_policy_loss_gspo": _gspo,
    "core_algos.kl_penalty": _kl_penalty,
    "core_algos.compute_value_loss": _value_loss,
    "core_algos.compute_entropy_loss": _entropy,
    "core_algos.compute_rewards": _rewards,
    "torch_functional.masked_stats": _masked_stats,
    "dp_actor.composed_loss": _composed,
    "ray_trainer.apply_invalid_action_penalty": _invalid,
    "rollout.filter_group_data": _filter,
    "alfworld_projection": _projection(projections.alfworld_projection),
    "webshop_projection": _projection(projections.webshop_projection),
}
