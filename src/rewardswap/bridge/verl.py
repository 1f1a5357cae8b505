"""Our methods in verl's registries: advantage estimators, policy losses, and the swap of a batch.

verl (0.9) calls an estimator with the rewards of tokens, and a policy loss with log-probs; both by
name. What that cannot carry is refused by `register`, with the reason.
"""

from collections.abc import Callable, Iterable
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from verl import DataProto
from verl.trainer.ppo import core_algos

from rewardswap.algorithm import Algorithm
from rewardswap.bridge.rows import batch_of, groups_of, spread
from rewardswap.methods.base import Method
from rewardswap.models.batching import TokenScores

AVERAGES = {
    "token": "token-mean",
    "trajectory": "seq-mean-token-mean",
    "constant": "seq-mean-token-sum-norm",
}
"""What verl calls the averages of a method, in `loss_agg_mode`."""

Estimate = Callable[..., tuple[Tensor, Tensor]]
PolicyLoss = Callable[..., tuple[Tensor, dict[str, Any]]]


def register(name: str, method: Method) -> None:
    """Give verl a method by a name: `algorithm.adv_estimator`, and `policy_loss.loss_mode`.

    Raises ValueError for a method whose numbers verl's interfaces cannot carry, and for a name
    that verl knows already.
    """
    known = {*core_algos.ADV_ESTIMATOR_REGISTRY, *core_algos.POLICY_LOSS_REGISTRY}
    if name in known:
        raise ValueError(f"verl knows {name!r} already; known: {', '.join(sorted(known))}")
    algorithm = method.algorithm()
    _check(method, algorithm)
    core_algos.register_adv_est(name)(estimator(algorithm))
    core_algos.register_policy_loss(name)(policy_loss(method, algorithm))


def _check(method: Method, algorithm: Algorithm) -> None:
    """Raise ValueError for what would be lost on the way."""
    name = type(method).__name__
    if algorithm.critic is not None:
        raise ValueError(f"{name} has a critic, which verl trains itself: use its gae")
    if not method.rewards_suffice:
        raise ValueError(
            f"{name} reads more of a trajectory than its rewards, which verl's estimators are not "
            "given"
        )
    if algorithm.state():
        raise ValueError(f"{name} remembers earlier batches, which verl's workers do not")
    for setting, theirs in {
        "kl_coefficient": "actor.use_kl_loss or algorithm.use_kl_in_reward",
        "entropy_coefficient": "actor.entropy_coeff",
    }.items():
        if getattr(method, setting):
            raise ValueError(f"{setting} is verl's own there: leave it 0 and set {theirs}")
    for setting in ("replay_clip_low", "replay_clip_high"):
        if getattr(method, setting) is not None:
            raise ValueError(f"{setting} does nothing in verl, whose rows are all of one kind")
    if method.clip_center != "old_over_behavior":
        raise ValueError("clip_center does nothing in verl, whose rows are all of one kind")
    if method.average not in AVERAGES:
        raise ValueError(
            f"average {method.average} is none of verl's; it has {', '.join(AVERAGES)}"
        )


def estimator(algorithm: Algorithm) -> Estimate:
    """A method's advantages as verl calls for them.

    Turns are runs of tokens with mask 1; rows of one `uid` are a group, without it all rows are
    one. verl's `returns`, which only a critic reads, are the advantages again.
    """

    def estimate(
        token_level_rewards: Float[Tensor, "B L"],
        response_mask: Tensor,
        index: Iterable[Any] | None = None,
        **_: Any,
    ) -> tuple[Tensor, Tensor]:
        mask = response_mask.bool()
        tasks = ["all"] * len(mask) if index is None else list(index)
        with torch.no_grad():
            groups, members = groups_of(token_level_rewards, mask, tasks)
            advantage = spread(algorithm.advantage(groups), members, mask)
        advantage = advantage.to(token_level_rewards.device)
        return advantage, advantage

    return estimate


def policy_loss(method: Method, algorithm: Algorithm) -> PolicyLoss:
    """A method's ratio, clip and surrogate as verl calls for them; verl averages over tokens.

    The clip is centred at c = pi_old / pi_behavior (arXiv:2607.04713, Eq. 4), where verl gives
    `rollout_is_weights`: pi_old / pi_rollout of each token. Without them c = 1, plain on-policy.
    They have to be of tokens, and not truncated: `rollout_correction.rollout_is=token` with a
    threshold that nothing reaches. Raises ValueError for weights that are 0 at an action token, and
    for another `loss_agg_mode` than the method's average.
    """

    def loss(
        old_log_prob: Float[Tensor, "B L"],
        log_prob: Float[Tensor, "B L"],
        advantages: Float[Tensor, "B L"],
        response_mask: Tensor,
        loss_agg_mode: str = "token-mean",
        config: Any = None,
        rollout_is_weights: Float[Tensor, "B L"] | None = None,
    ) -> tuple[Tensor, dict[str, Any]]:
        wanted = AVERAGES[method.average]
        if loss_agg_mode != wanted:
            raise ValueError(
                f"{type(method).__name__} with average {method.average} needs loss_agg_mode "
                f"{wanted}, got {loss_agg_mode}"
            )
        mask = response_mask.bool()
        batch = batch_of(
            mask,
            advantage=advantages,
            old_logprob=old_log_prob,
            behavior_logprob=_behavior(old_log_prob, rollout_is_weights, mask),
        )
        scores = TokenScores(logprob=log_prob, entropy=torch.zeros_like(log_prob))
        ratios, capped = algorithm.ratios(scores, batch)
        info = {} if config is None else config.global_batch_info
        value = core_algos.agg_loss(algorithm.surrogate(ratios), mask, loss_agg_mode, **info)
        shares = {**algorithm.surrogate.held(ratios), **capped}
        metrics = {f"actor/{n}": _mean(share.float(), mask) for n, share in shares.items()}
        metrics["actor/ppo_kl"] = _mean(-ratios.log_ratio.detach(), mask)
        metrics["actor/behavior_ratio"] = _mean(ratios.center, mask)
        return value, metrics

    return loss


def _behavior(
    old: Float[Tensor, "B L"], weights: Float[Tensor, "B L"] | None, mask: Bool[Tensor, "B L"]
) -> Float[Tensor, "B L"]:
    """log pi_behavior = log pi_old - log (pi_old / pi_behavior)."""
    if weights is None:
        return old
    if (weights[mask] <= 0).any():
        raise ValueError(
            "rollout_is_weights are 0 at an action token: a threshold with a lower end rejects "
            "tokens that a centred clip needs; give rollout_is_threshold one large number"
        )
    return old - torch.where(mask, weights, torch.ones_like(weights)).log()


def _mean(values: Tensor, mask: Bool[Tensor, "B L"]) -> float:
    return float(values[mask].mean()) if mask.any() else 0.0


def swapped(data: DataProto, rewards: Float[Tensor, "B L"], estimator: str) -> DataProto:
    """The same rows under another reward: advantages anew, of the whole groups in `data`.

    This is the swap of arXiv:2607.04713, Algorithm 1: what was collected under a process reward is
    judged by the outcome. Choose what to replay afterwards: statistics are of the full group.
    `rollout_log_probs` stay those of who collected. `data` is left as it is.
    """
    from verl.trainer.ppo.ray_trainer import compute_advantage  # with all of its trainer behind it

    judged = DataProto(
        batch=data.batch.clone(recurse=False),  # another table of the same tensors
        non_tensor_batch=dict(data.non_tensor_batch),
        meta_info=dict(data.meta_info),
    )
    judged.batch["token_level_rewards"] = rewards
    return compute_advantage(judged, adv_estimator=estimator)
