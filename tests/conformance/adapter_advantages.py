"""Recorded advantages, returns and groupings of verl and verl-agent as calls of this library."""

import torch
from adapter_inputs import Values, ids, mask_of, share, tensor
from torch import Tensor

from rewardswap.core import anchors, segments
from rewardswap.methods import compat


def masked_stats(x: Values) -> Values:
    given, mask = tensor(x["values"]), mask_of(x["mask"])
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


def _at_tokens(row_values: Tensor, x: Values) -> Values:
    mask = mask_of(x["response_mask"])
    spread = row_values[:, None].expand(mask.shape)
    return {"advantages": segments.masked_fill_zero(spread, mask)}


def _rows(x: Values) -> tuple[Tensor, Tensor, Tensor]:
    score, group = tensor(x["token_level_rewards"]).sum(dim=1), ids(x["index"])
    every = torch.ones_like(group).bool()
    if x.get("compute_mean_std_cross_steps", True):
        return score, group, every
    return score, group, compat.first_rows(ids(x["traj_index"]))


def grpo(x: Values) -> Values:
    score, group, counted = _rows(x)
    divide = x["norm_adv_by_std_in_grpo"] if "norm_adv_by_std_in_grpo" in x else not x["remove_std"]
    advantage = compat.row_advantage(score, group, counted, divide_by_std=divide)
    return _at_tokens(advantage, x)


def rloo(x: Values) -> Values:
    score, group, _ = _rows(x)
    return _at_tokens(compat.row_leave_one_out(score, group), x)


def opo(x: Values) -> Values:
    score, group, _ = _rows(x)
    lengths = mask_of(x["response_mask"]).sum(dim=1).float()
    return _at_tokens(compat.row_optimal_baseline(score, lengths, group), x)


def step(x: Values) -> Values:
    score = tensor(x["step_rewards"])
    step = compat.gigpo_row_advantage(
        torch.zeros_like(score),
        score,
        ids(x["index"]),
        step_weight=1.0,
        divide_by_std=not x["remove_std"],
    )
    return _at_tokens(step, x)


def gigpo(x: Values) -> Values:
    score, group, counted = _rows(x)
    divide = x["mode"] == "mean_std_norm"
    advantage = compat.gigpo_row_advantage(
        compat.row_advantage(score, group, counted, divide_by_std=divide),
        tensor(x["step_rewards"]),
        anchors.anchor_ids(x["index"], x["anchor_obs"]),
        step_weight=x["step_advantage_w"],
        divide_by_std=divide,
    )
    return _at_tokens(advantage, x)


def reinforce_plus_plus(x: Values) -> Values:
    advantage, returns = compat.whitened_token_returns(
        tensor(x["token_level_rewards"]), mask_of(x["response_mask"]), x.get("gamma", 1.0)
    )
    return {"advantages": advantage, "returns": returns}


def reinforce_plus_plus_baseline(x: Values) -> Values:
    score, group, _ = _rows(x)
    return {"advantages": compat.whitened_row_scores(score, group, mask_of(x["response_mask"]))}


def gae(x: Values) -> Values:
    advantage, target = compat.whitened_turn_advantage(
        tensor(x["token_level_rewards"]),
        tensor(x["values"]),
        mask_of(x["response_mask"]),
        discount=x["gamma"],
        trace=x["lam"],
    )
    return {"advantages": advantage, "returns": target}


def step_returns(x: Values) -> Values:
    rewards, trajectory = tensor(x["rewards"]), ids(x["traj_uid"])
    return {"returns": compat.row_returns(rewards, trajectory, x["gamma"])}


def step_group(x: Values) -> Values:
    if x["enable_similarity"]:
        ids = anchors.similar_anchor_ids(x["index"], x["anchor_obs"], x["similarity_thresh"])
    else:
        ids = anchors.anchor_ids(x["index"], x["anchor_obs"])
    return {"partition": ids}


def invalid(x: Values) -> Values:
    valid = torch.tensor(x["is_action_valid"])
    score, step = compat.penalise_invalid_actions(
        tensor(x["token_level_scores"]),
        tensor(x["step_rewards"]),
        mask_of(x["response_mask"]),
        valid,
        x["coef"],
    )
    ratio = share(valid, torch.ones_like(valid))
    return {
        "token_level_scores": score,
        "step_rewards": step,
        "metrics": {"episode/valid_action_ratio": ratio},
    }


def filter(x: Values) -> Values:
    kept = compat.dynamic_sampling_rows(
        tensor(x["episode_rewards"]), x["group_n"], last_try=x["last_try"]
    )
    return {"kept": kept}
