"""PPO with a critic.

Paper: PPO, arXiv:1707.06347, Eq. 7, 11; GAE, arXiv:1506.02438, Eq. 16.
Idea in one sentence: a critic is the baseline of every state, so siblings are not needed.
Formula: A_t = delta_t + discount trace A_t+1, delta_t = r_t + discount V_t+1 - V_t over the action
    tokens of all turns, or over turns; then whitened over the batch.
Defaults from: verl-agent's script: trace 1, the critic's learning rate ten times the policy's,
    value clip .5. Discount .95 from turn to turn is ours (verl-agent: 1 from token to token): with
    1 an agent that runs into the turn limit for ever bootstraps from its own hope.
Deviations: the recursion runs across turns and skips what the environment said (verl-agent's stays
    inside one turn); the discount acts between turns only, so a long answer costs nothing; an
    episode cut by a limit bootstraps from V of its last observation, one that ended does not. The
    critic has a trunk of its own, a copy of the policy's, and a head that starts at V = 0. Under
    RSPO the explorer's critic is a copy that is thrown away with it, replayed rows get their
    advantages from the agent's critic, and the critic learns from fresh rows (ours).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import torch
from jaxtyping import Bool, Float
from torch import Tensor
from torch.nn import functional

from rewardswap.algorithm import Algorithm
from rewardswap.choices import ValueRegression
from rewardswap.core.returns import generalised_advantage, length_adaptive_trace
from rewardswap.methods.base import Method
from rewardswap.methods.credit import token_rewards, whitened
from rewardswap.types import Group


@dataclass(frozen=True)
class GeneralisedAdvantage:
    """GAE over the tokens or the turns of whole trajectories; groups have a column `value`."""

    discount: float = 0.95
    trace: float = 1.0
    adaptive_alpha: float | None = None
    """With it the trace of a trajectory is 1 - 1 / (alpha x its length) (VAPO)."""
    level: Literal["token", "turn"] = "token"
    whiten: bool = True
    target: bool = False
    """Whether the value targets A + V are returned in place of the advantages."""

    def __call__(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K L"]]:
        raw = self._estimates(groups)
        if self.target or not self.whiten:
            return raw
        return whitened(raw, groups, every_trajectory_once=False)

    def _estimates(self, groups: Sequence[Group]) -> list[Float[Tensor, "N K L"]]:
        """One recursion for all trajectories, over their places without the gaps."""
        found = [self._places(group) for group in groups]
        width = max(mask.shape[1] for *_, mask in found)
        columns = [
            torch.cat([functional.pad(part, (0, width - part.shape[1])) for part in parts])
            for parts in zip(*found, strict=True)
        ]
        mask = columns[-1]
        order = torch.argsort(~mask, dim=1, stable=True)[:, : int(mask.sum(dim=1).max())]
        reward, value, discount, places = (column.gather(1, order) for column in columns)
        trace: float | Tensor = self.trace
        if self.adaptive_alpha is not None:
            trace = length_adaptive_trace(places, self.adaptive_alpha)
        bootstrap = torch.cat([group.columns["bootstrap"].sum(dim=1) for group in groups])
        results = generalised_advantage(
            reward, value, places, bootstrap, discount=discount, trace=trace
        )
        full = torch.zeros(mask.shape).scatter(1, order, results[int(self.target)])
        parts = torch.split(full, [len(group.trajectories) for group in groups])
        return [self._at_tokens(part, group) for part, group in zip(parts, groups, strict=True)]

    def _places(self, group: Group) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Reward, value, discount to the next place and mask of the places, each [N T]."""
        reward, value, mask = token_rewards(group), group.columns["value"], group.token_mask
        if self.level == "turn":
            turns = group.turn_mask
            discount = torch.full(turns.shape, self.discount)
            return reward.sum(dim=2), value[:, :, 0], discount, turns
        discount = torch.where(_last_tokens(mask), self.discount, 1.0)
        return reward.flatten(1), value.flatten(1), discount.flatten(1), mask.flatten(1)

    def _at_tokens(self, values: Float[Tensor, "N T"], group: Group) -> Float[Tensor, "N K L"]:
        mask = group.token_mask
        if self.level == "turn":
            turns = values[:, : group.turn_count, None]
            return torch.where(mask, turns, torch.zeros(()))
        return values[:, : mask[0].numel()].reshape(mask.shape)


def _last_tokens(mask: Bool[Tensor, "N K L"]) -> Bool[Tensor, "N K L"]:
    """The last action token of every turn."""
    following = torch.cat([mask[..., 1:], torch.zeros_like(mask[..., :1])], dim=-1)
    return mask & ~following


@dataclass(frozen=True)
class PPO(Method):
    """PPO with a critic, arXiv:1707.06347."""

    needs_siblings = False

    discount: float = 0.95
    """Discount of rewards and values from turn to turn (ours; GiGPO's is .95 too)."""
    trace: float = 1.0
    """Lambda of GAE, from token to token or from turn to turn (verl-agent: 1)."""
    trace_alpha: float | None = None
    """With it lambda is 1 - 1 / (alpha x length) per trajectory (VAPO, arXiv:2504.05118)."""
    credit: Literal["token", "turn"] = "token"
    """GAE over action tokens, or over turns with V at each turn's first token (ours)."""
    whiten: bool = True
    """Advantages with mean 0 and standard deviation 1 over the batch's tokens (verl-agent)."""
    critic_learning_rate: float | None = None
    """AdamW's learning rate of the critic; none: ten times the policy's (verl-agent: 1e-5 and
    1e-6)."""
    value_clip: float | None = 0.5
    """Most that a value may move in one update (verl-agent: .5); none: no clip."""
    critic_warmup: int = 0
    """Updates of the critic alone before the policy moves (verl: 0; BPCO: 15)."""
    critic_on_replay: bool = False
    """Whether the critic learns from replayed rows too (ours: their returns are of pi_B)."""

    def _check(self) -> None:
        super()._check()
        for name in ("discount", "trace"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} must be in [0, 1], got {getattr(self, name)}")
        for name in ("trace_alpha", "value_clip", "critic_learning_rate"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, got {value}")
        if self.trace_alpha is not None and self.trace != 1.0:
            raise ValueError("trace does nothing with trace_alpha; give one of them")
        if self.critic_warmup < 0:
            raise ValueError(f"critic_warmup must be at least 0, got {self.critic_warmup}")

    def algorithm(self) -> Algorithm:
        """GAE, PPO's clip, and a critic."""
        return self.compose(self._advantage(target=False), critic=self._critic())

    def _advantage(self, *, target: bool) -> GeneralisedAdvantage:
        return GeneralisedAdvantage(
            self.discount, self.trace, self.trace_alpha, self.credit, self.whiten, target
        )

    def _critic(self) -> ValueRegression:
        return ValueRegression(
            targets=self._advantage(target=True),
            clip=self.value_clip,
            on_replay=self.critic_on_replay,
            places=self.credit,
            learning_rate=self.critic_learning_rate,
            warmup_updates=self.critic_warmup,
        )
