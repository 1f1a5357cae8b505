"""Dense rewards by name: what the explorer, or a run without a swap, may learn under."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from rewardswap.checks import LEAST_TEMPERATURE, at_least
from rewardswap.outside import name_of
from rewardswap.rewards.base import RewardSource
from rewardswap.rewards.calling import CallableReward, RewardFunction, named_function
from rewardswap.rewards.checked import OnFailure
from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.gains import ProgressGains
from rewardswap.rewards.noise import NoisyReward
from rewardswap.rewards.planted import PlantedBonus
from rewardswap.rewards.rule import ProgressReward
from rewardswap.rewards.uninformative import ConstantReward, SilentReward, TurnCounter

RULES = ("progress", "progress_gains", "novelty", "constant", "turn_counter", "noise")
"""Dense rewards that need no model."""
LEARNED = "learned"


@dataclass(frozen=True)
class RewardConfig:
    """The dense reward of phase 1, or of loop `dense`."""

    dense: str = LEARNED
    """learned: the process reward model; progress: the environment's rule-based potential;
    progress_gains: the same without its losses, which can be hacked; novelty: rarely seen states;
    constant, turn_counter, noise: controls; MODULE:FUNCTION: any function of a trajectory."""
    dense_credit: Literal["sum", "reward_to_go"] = "sum"
    """How dense rewards are credited: as the method does with the sum over turns (the literal
    reading), or every turn by its discounted reward-to-go among all turns of the group (ours; not
    for a method with a critic, which credits turns itself)."""
    dense_discount: float = 0.9
    """Discount of `dense_credit reward_to_go`."""
    add_outcome: bool = False
    """Whether the dense reward has the outcome added (ours)."""
    noise: float = 0.0
    """Standard deviation of Gaussian noise on every turn's reward (paper, Table 5: 0, .1, .3)."""
    planted_phrase: str | None = None
    """A phrase that the dense reward over-rewards, to see who exploits it (ours)."""
    planted_bonus: float = 0.5
    """What each action with the planted phrase is paid."""
    on_failure: OnFailure = "stop"
    """Where a reward raises, has the wrong length or is not finite: stop with a checkpoint, or drop
    the trajectory and count it (`dropped_rewards`)."""
    model: ProcessRewardConfig = field(default_factory=ProcessRewardConfig)
    """The process reward model (paper: features at the action, sum fitted to the outcome)."""
    folder: Path | None = None
    """Folder of a process reward model that was trained before; none: fitted in the run."""
    online: bool = False
    """Whether the process reward model is refitted after every loop of the swap and kept where it
    is no worse on held-out tasks (an extension)."""
    trajectories: int = 768
    """Rollouts of the start policy that it is trained and tested on."""
    group_size: int = 4
    """Rollouts of each task among them."""
    temperatures: tuple[float, ...] = (0.7, 1.0, 1.3)
    """Sampling temperatures of these rollouts, in equal shares (ours; unspecified in the paper)."""

    @classmethod
    def of(cls, function: RewardFunction, **settings: Any) -> "RewardConfig":
        """The settings of a dense reward that is a function of a trajectory.

        Raises ValueError where it cannot be found by name, as a run's record has it.
        """
        return cls(dense=name_of(function), **settings)

    def __post_init__(self) -> None:
        at_least(1, trajectories=self.trajectories, group_size=self.group_size)
        if not self.temperatures or min(self.temperatures) < LEAST_TEMPERATURE:
            raise ValueError(
                f"temperatures must be at least {LEAST_TEMPERATURE}, got {list(self.temperatures)}"
            )
        if self.dense not in (LEARNED, *RULES) and ":" not in self.dense:
            known = ", ".join((LEARNED, *RULES))
            raise ValueError(f"dense must be one of {known} or MODULE:FUNCTION, got {self.dense!r}")
        if self.dense.endswith(":outcome"):
            raise ValueError(
                f"dense reward {self.dense!r} would have the name of the outcome reward; give the "
                "function another"
            )
        if not 0 <= self.dense_discount <= 1:
            raise ValueError(f"dense_discount must be in [0, 1], got {self.dense_discount}")
        if self.noise < 0:
            raise ValueError(f"noise must be at least 0, got {self.noise}")
        if self.dense == "noise" and not self.noise:
            raise ValueError("dense noise is 0 everywhere at noise 0; set noise above 0")
        self._refuse_idle()

    def _refuse_idle(self) -> None:
        """Raise ValueError for settings that would do nothing."""
        if self.dense_credit == "sum" and self.dense_discount != type(self).dense_discount:
            raise ValueError("dense_discount does nothing at dense_credit sum")
        if self.planted_phrase is None and self.planted_bonus != type(self).planted_bonus:
            raise ValueError("planted_bonus does nothing at planted_phrase none")
        if self.planted_phrase is not None and not (self.planted_phrase and self.planted_bonus):
            raise ValueError(
                f"planted_phrase {self.planted_phrase!r} with planted_bonus {self.planted_bonus:g} "
                "plants nothing; give a phrase of some letters and a bonus that is not 0"
            )
        for name in ("folder", "online"):
            if getattr(self, name) and not self.learned:
                raise ValueError(f"{name} does nothing in dense reward {self.dense!r}")

    @property
    def learned(self) -> bool:
        """Whether the dense reward is a process reward model."""
        return self.dense == LEARNED

    @property
    def fitted(self) -> bool:
        """Whether the run fits a process reward model."""
        return self.learned and self.folder is None

    def source(self, turn_limit: int, seed: int, base: RewardSource | None = None) -> RewardSource:
        """The dense reward with its bonus and its noise.

        `base` is the one below them, where it is learned or has a memory: process model, novelty.

        Raises ValueError for a function that cannot be imported.
        """
        source = self._plain(turn_limit) if base is None else base
        if self.planted_phrase is not None:
            source = PlantedBonus(source, self.planted_phrase, self.planted_bonus)
        return NoisyReward(source, self.noise, seed) if self.noise else source

    def _plain(self, turn_limit: int) -> RewardSource:
        if ":" in self.dense:
            return CallableReward(named_function(self.dense), self.dense.rpartition(":")[2])
        if self.dense == "turn_counter":
            return TurnCounter(turn_limit)
        plain: dict[str, Callable[[], RewardSource]] = {
            "progress": ProgressReward,
            "progress_gains": ProgressGains,
            "constant": ConstantReward,
            "noise": SilentReward,
        }
        if self.dense not in plain:
            raise ValueError(f"dense reward {self.dense!r} cannot be made from its name alone")
        return plain[self.dense]()
