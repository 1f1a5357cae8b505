"""Decoupled PPO: the policy that is clipped around is not the one that acted.

Paper: Batch size-invariance for policy optimization, arXiv:2110.00641, Eq. 3; as an objective for
    stale data in AReaL, arXiv:2505.24298, Eq. 5.
Idea in one sentence: pi_behavior corrects where the data came from, pi_old says how far
    a step may go.
Formula: loss = -c min(r A, clip(r, 1 - eps, 1 + eps) A), r = pi / pi_old, c = pi_old / pi_behavior.
Defaults from: AReaL: clip .2, trace 1; pi_behavior is what the rollout engine sampled
    with.
Deviations: in the ratio q = c r the objective is the window c (1 +- eps), so the same code serves
    fresh and replayed rows. The critic is `ppo`'s.
"""

from dataclasses import dataclass
from typing import Literal

from rewardswap.methods.ppo import PPO


@dataclass(frozen=True)
class DecoupledPPO(PPO):
    """Decoupled PPO, arXiv:2110.00641 and arXiv:2505.24298."""

    clip_window: Literal["additive", "multiplicative", "logarithmic"] = "multiplicative"
    behavior: Literal["trainer", "engine"] = "engine"
