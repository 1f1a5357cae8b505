"""A method as a value: the choices that all methods share, and the algorithm they make."""

from abc import ABC, abstractmethod
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, Literal

from rewardswap import choices
from rewardswap.algorithm import Algorithm
from rewardswap.seams import AdvantageEstimator, LossTerm, Reduction

RATIOS = {
    "token": choices.token_level,
    "turn": choices.turn_level,
    "trajectory": choices.trajectory_level,
}


@dataclass(frozen=True)
class Method(ABC):
    """What every method has to choose; a method's own file changes defaults and adds fields.

    Its module's docstring is its card: the paper, the idea, the formula, whose the defaults are.
    """

    idle: ClassVar[frozenset[str]] = frozenset()
    """Shared choices that do nothing in this method; setting one is an error."""
    needs_siblings: ClassVar[bool] = True
    """Whether a group of one trajectory teaches nothing."""
    signed_returns: ClassVar[bool] = True
    """Whether returns below 0 make sense; else what could make some is refused."""

    rewards_suffice: ClassVar[bool] = True
    """Whether its advantages follow from the rewards of turns alone: no states, texts or marks."""

    ratio: Literal["token", "turn", "trajectory"] = "token"
    """What the importance ratio is taken of: single tokens (PPO), the geometric mean of a turn
    (ours) or of a trajectory (GSPO)."""
    clip_low: float = 0.2
    """Clip below the ratio's centre (verl-agent: .2)."""
    clip_high: float = 0.2
    """Clip above the ratio's centre (verl-agent: .2)."""
    replay_clip_low: float | None = None
    """Clip below, of replayed rows (ours); none: clip_low."""
    replay_clip_high: float | None = None
    """Clip above, of replayed rows (ours); none: clip_high."""
    clip_window: Literal["additive", "multiplicative", "logarithmic"] = "additive"
    """Window around the centre: c ± eps (RSPO, Eq. 4), c (1 ± eps) (decoupled PPO) or
    c e^(± eps) (GMPO)."""
    clip_center: Literal["old_over_behavior", "one"] = "old_over_behavior"
    """Centre of replayed rows: pi_old / pi_behavior (RSPO, Eq. 4); `one` is a control (ours)."""
    dual_clip: float | None = None
    """Ceiling of pi_theta / pi_old where A < 0 (verl-agent: 3.0); none: no ceiling (PPO)."""
    importance_cap: Literal["none", "truncate", "mask"] = "none"
    """What happens to pi_old / pi_behavior above the maximum: nothing (RSPO), it is held there,
    or the token has no gradient (both ours)."""
    importance_maximum: float = 2.0
    """Largest pi_old / pi_behavior under a cap (ours)."""
    behavior: Literal["trainer", "engine"] = "trainer"
    """Whose log-probs are pi_behavior: the trainer's own pass or the rollout engine's (ours; both
    are kept and their gap is a metric)."""
    average: Literal["token", "turn", "trajectory", "constant"] = "token"
    """What counts the same in the loss: every action token (verl-agent, DAPO), turn (ours) or
    trajectory (GRPO's paper; one reading of 1/(NT) in RSPO's Eq. 3), or every token divided by a
    constant length (Dr.GRPO)."""
    average_tokens: float = 512.0
    """The constant length of `average constant`, in tokens of a trajectory."""
    mixing: Literal["weighted", "concatenated"] = "weighted"
    """Fresh and replayed rows as two averages weighted 1 - alpha and alpha (RSPO, Eq. 1), or as
    one average over all rows (ours)."""
    kl_coefficient: float = 0.0
    """Weight of the divergence to the start policy (verl-agent: .01); 0: no reference pass."""
    kl_estimator: Literal["k1", "k2", "k3", "absolute"] = "k3"
    """Estimator of the divergence (GRPO and verl-agent: k3)."""
    kl_placement: Literal["loss", "reward"] = "loss"
    """The divergence as a loss term (GRPO) or as a reward of each token (InstructGPT)."""
    kl_on_replay: bool = True
    """Whether replayed rows have the loss term too (RSPO, Eq. 3; k3 is not unbiased there)."""
    entropy_coefficient: float = 0.0
    """Weight of the entropy bonus (verl-agent: .001)."""

    def __post_init__(self) -> None:
        for field in fields(self):
            if field.name in self.idle and getattr(self, field.name) != _default(field):
                raise ValueError(f"{field.name} does nothing in {type(self).__name__}")
        self._check()

    def _check(self) -> None:
        """Raise ValueError for choices that make no sense."""
        positive = ("clip_low", "clip_high", "replay_clip_low", "replay_clip_high")
        for name in (*positive, "average_tokens"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise ValueError(f"{name} must be above 0, got {value}")
        for name in ("kl_coefficient", "entropy_coefficient"):
            if getattr(self, name) < 0:
                raise ValueError(f"{name} must be at least 0, got {getattr(self, name)}")
        if self.importance_maximum < 1:
            raise ValueError(
                f"importance_maximum must be at least 1, got {self.importance_maximum}"
            )
        if self.dual_clip is not None and self.dual_clip <= 1:
            raise ValueError(f"dual_clip must be above 1, got {self.dual_clip}")
        if self.kl_coefficient and self.kl_placement == "loss" and self.kl_estimator == "k1":
            raise ValueError(
                "kl_estimator k1 has no expected gradient as a loss; use k2 or k3, or kl_placement "
                "reward"
            )
        if self.kl_coefficient and self.kl_placement == "reward" and not self.signed_returns:
            raise ValueError(
                f"kl_placement reward makes returns below 0, which {type(self).__name__} cannot "
                "read; use kl_placement loss"
            )

    @abstractmethod
    def algorithm(self) -> Algorithm:
        """The method's choices, seam by seam."""

    def compose(self, advantage: AdvantageEstimator, **seams: Any) -> Algorithm:
        """An algorithm of the shared choices, this advantage, and any other seam by name."""
        in_reward = self.kl_coefficient > 0 and self.kl_placement == "reward"
        shared: dict[str, Any] = {
            "ratio_level": RATIOS[self.ratio],
            "clip": choices.CenteredClip(
                low=self.clip_low,
                high=self.clip_high,
                window=self.clip_window,
                center=self.clip_center,
                replay_low=self.replay_clip_low,
                replay_high=self.replay_clip_high,
            ),
            "surrogate": choices.ClippedRatio(self.dual_clip),
            "reduction": self._reduction(),
            "terms": self._terms(),
            "reward_divergence": choices.RewardDivergence(self.kl_coefficient, self.kl_estimator)
            if in_reward
            else None,
            "importance_cap": self.importance_cap,
            "importance_maximum": self.importance_maximum,
            "mixing": self.mixing,
            "behavior": self.behavior,
            "whole_trajectories": self.ratio == "trajectory",
        }
        return Algorithm(advantage=advantage, **{**shared, **seams})

    def _reduction(self) -> Reduction:
        named: dict[str, Reduction] = {
            "token": choices.token_mean,
            "turn": choices.turn_mean,
            "trajectory": choices.trajectory_mean,
            "constant": choices.ConstantMean(self.average_tokens),
        }
        return named[self.average]

    def _terms(self) -> tuple[LossTerm, ...]:
        terms: list[LossTerm] = []
        if self.kl_coefficient and self.kl_placement == "loss":
            terms.append(
                choices.ReferenceDivergence(
                    self.kl_coefficient, self.kl_estimator, self.kl_on_replay
                )
            )
        if self.entropy_coefficient:
            terms.append(choices.EntropyBonus(self.entropy_coefficient))
        return tuple(terms)


def _default(field: Any) -> Any:
    return field.default if field.default is not MISSING else field.default_factory()
