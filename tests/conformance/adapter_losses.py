"""Recorded losses of verl and verl-agent as calls of this library."""

from collections.abc import Callable

import torch
from adapter_inputs import Values, leaf, mask_of, reduced, share, tensor, weights_of
from torch import Tensor

from rewardswap.core import (
    clipping,
    divergences,
    ratios,
    reductions,
    segments,
    surrogates,
    values,
)
from rewardswap.methods import compat

VERL_RATIO_CAP = 3.0
"""verl's default `clip_ratio_c`, which its recordings of DPPO do not name."""


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
    mask, logprob = mask_of(x["response_mask"]), leaf(x)
    return mask, logprob, tensor(x["old_log_prob"]), tensor(x["advantages"])


def _rows(mask: Tensor) -> Tensor:
    """One trajectory per row."""
    return torch.arange(len(mask))[:, None].expand(mask.shape)


def ppo(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    log_ratio = ratios.log_ratio(logprob, old, mask)
    ratio = log_ratio.exp()
    lower, upper = _plain_bounds(x, ratio)
    clipped = surrogates.ppo_clip(ratio, lower, upper, advantage)
    loss = surrogates.dual_clip(clipped, advantage, x["clip_ratio_c"])
    dual = surrogates.is_dual_clipped(clipped, advantage, x["clip_ratio_c"])
    return {
        **reduced(x, loss, "pg_loss", logprob, "grad_log_prob"),
        "pg_clipfrac": share(surrogates.is_clipped(ratio, lower, upper, advantage), mask),
        "pg_clipfrac_lower": share(dual, mask),
        "ppo_kl": segments.masked_mean(divergences.k1(ratios.log_ratio(old, logprob, mask)), mask),
    }


def gspo(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    x = {"loss_agg_mode": "seq-mean-token-mean", **x}
    ratio = ratios.trajectory_log_ratio(
        ratios.log_ratio(logprob, old, mask), mask, _rows(mask)
    ).exp()
    lower, upper = _plain_bounds(x, ratio)
    loss = surrogates.ppo_clip(ratio, lower, upper, advantage)
    return {
        **reduced(x, loss, "pg_loss", logprob, "grad_log_prob"),
        "pg_clipfrac": share(surrogates.is_clipped(ratio, lower, upper, advantage), mask),
        "ppo_kl": segments.masked_mean(divergences.k1(ratios.log_ratio(old, logprob, mask)), mask),
    }


def cispo(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    ratio = ratios.log_ratio(logprob, old, mask).exp()
    clean = segments.masked_fill_zero(logprob, mask)
    loss = surrogates.cispo(clean, ratio, *_plain_bounds(x, ratio), advantage)
    return reduced(x, loss, "pg_loss", logprob, "grad_log_prob")


def dppo(surrogate: Callable[..., Tensor]) -> Callable[[Values], Values]:
    def function(x: Values) -> Values:
        mask, logprob, old, advantage = _policy_inputs(x)
        ratio = ratios.log_ratio(logprob, old, mask).exp()
        low, high = _widths(x)
        clean = segments.masked_fill_zero(logprob, mask)
        loss = surrogate(ratio, clean, old, advantage, low=low, high=high, ratio_cap=VERL_RATIO_CAP)
        return reduced(x, loss, "pg_loss", logprob, "grad_log_prob")

    return function


def sapo(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    ratio = ratios.log_ratio(logprob, old, mask).exp()
    loss = surrogates.sapo(ratio, torch.ones_like(ratio), advantage)
    return reduced(x, loss, "pg_loss", logprob, "grad_log_prob")


def gmpo(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    log_ratio = ratios.log_ratio(logprob, old, mask)
    bounds = clipping.clip_bounds(torch.zeros_like(log_ratio), *_widths(x), "additive")
    loss = surrogates.gmpo(log_ratio, *bounds, advantage, mask, _rows(mask))
    x = {**x, "loss_agg_mode": "seq-mean-token-mean"}
    return reduced(x, loss, "pg_loss", logprob, "grad_log_prob")


def generalized_clip(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    behavior = tensor(x["behavior_log_prob"])
    center = ratios.log_ratio(old, behavior, mask).exp()
    ratio = ratios.replay_ratio(ratios.log_ratio(logprob, old, mask), center)
    lower, upper = clipping.clip_bounds(center, x["eps"], x["eps"], x["window"])
    loss = surrogates.ppo_clip(ratio, lower, upper, advantage)
    return {
        **reduced(x, loss, "loss", logprob, "grad_log_prob"),
        "clipfrac": share(surrogates.is_clipped(ratio, lower, upper, advantage), mask),
    }


def composed(x: Values) -> Values:
    mask, logprob, old, advantage = _policy_inputs(x)
    ratio = ratios.log_ratio(logprob, old, mask).exp()
    clipped = surrogates.ppo_clip(ratio, *_plain_bounds(x, ratio), advantage)
    policy = surrogates.dual_clip(clipped, advantage, x["clip_ratio_c"])
    kl = divergences.k3(ratios.log_ratio(logprob, tensor(x["ref_log_prob"]), mask))
    weights = weights_of(x, mask)
    loss = compat.actor_loss(
        reductions.weighted_sum(policy, weights),
        reductions.weighted_sum(tensor(x["entropy"]), weights),
        reductions.weighted_sum(kl, weights),
        entropy_coefficient=x["entropy_coeff"],
        divergence_coefficient=x["kl_loss_coef"],
    )
    loss.backward()
    return {"loss": loss.detach(), "grad_log_prob": logprob.grad}


def kl_penalty(x: Values) -> Values:
    logprob, reference = leaf(x, "logprob"), tensor(x["ref_logprob"])
    everywhere = torch.ones_like(reference).bool()
    kl = KL_NAMES[x["kl_penalty"]](ratios.log_ratio(logprob, reference, everywhere))
    return {"kl": kl.detach(), **reduced(x, kl, "token_mean_loss", logprob, "grad_logprob")}


def value_loss(x: Values) -> Values:
    mask, value = mask_of(x["response_mask"]), leaf(x, "vpreds")
    given = (tensor(x["values"]), tensor(x["returns"]), x["cliprange_value"])
    loss = values.clipped_value_loss(value, *given)
    clipped = values.value_is_clipped(value, *given)
    return {
        **reduced(x, loss, "vf_loss", value, "grad_vpreds"),
        "vf_clipfrac": share(clipped, mask),
    }


def entropy(x: Values) -> Values:
    entropy = divergences.entropy(tensor(x["logits"]))
    weights = weights_of(x, mask_of(x["response_mask"]))
    return {"entropy": entropy, "loss": reductions.weighted_sum(entropy, weights)}


def agg_loss(x: Values) -> Values:
    weights = weights_of(x, mask_of(x["loss_mask"]))
    return {"loss": reductions.weighted_sum(tensor(x["loss_mat"]), weights)}


def rewards(x: Values) -> Values:
    old, reference = tensor(x["old_log_prob"]), tensor(x["ref_log_prob"])
    log_ratio = ratios.log_ratio(old, reference, torch.ones_like(old).bool())
    scores = tensor(x["token_level_scores"])
    return {"rewards": divergences.penalised_reward(scores, log_ratio, x["kl_ratio"])}


KL_NAMES: dict[str, Callable[[Tensor], Tensor]] = {
    "kl": divergences.k1,
    "k1": divergences.k1,
    "abs": divergences.absolute,
    "mse": divergences.k2,
    "k2": divergences.k2,
    "low_var_kl": divergences.k3,
    "k3": divergences.k3,
}
