"""Settings of the command `rewardswap prm collect`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from rewardswap.checks import LEAST_TEMPERATURE, at_least
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.prm.collection import Balance
from rewardswap.rollout.config import RolloutConfig


@dataclass(frozen=True)
class Collecting:
    """Rollouts that process reward models are trained or judged on."""

    output: Path | None = None
    """Folder for them, which must have no files; it has no default."""
    policies: tuple[str, ...] = ()
    """Folders of Hugging Face causal LMs with one tokenizer, such as runs' checkpoint folders, or
    names of `rewardswap model list`; none: the small agent that ships for the environment."""
    temperatures: tuple[float, ...] = (0.7, 1.0, 1.3)
    """Sampling temperatures; every policy plays an equal share of the groups at each."""
    trajectories: int = 768
    """Rollouts that are kept."""
    group_size: int = 4
    """Rollouts of each task among them."""
    balance: Literal["none", "outcome"] = "none"
    """outcome: every policy plays further tasks at a temperature while successes or failures are
    fewer than `least_share` of what is kept there (ours)."""
    least_share: float = 0.25
    """Least part of the rarer kind, with `balance outcome`; at most a half."""
    most_played: int | None = None
    """Most rollouts in all, with `balance outcome`; none: 4 for each that is kept."""
    split: str = "train"
    """Split whose tasks are played; never the evaluated one, env.split."""
    seed: int = 0
    """Seed of the order of tasks and of every sampled token; a run of this seed collects the
    same."""
    threads: int = 1
    """CPU threads of torch; other numbers of threads round differently."""
    action_tokens: int | None = None
    """Most tokens of one action; none: what the model's generation_config.json says, else 512."""
    device: str = "cpu"
    """Torch device of the policies."""
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    env: EnvironmentConfig = field(default_factory=Alfworld)

    def __post_init__(self) -> None:
        at_least(1, group_size=self.group_size, threads=self.threads)
        at_least(1, action_tokens=1 if self.action_tokens is None else self.action_tokens)
        at_least(0, seed=self.seed)
        if not self.temperatures or not min(self.temperatures) >= LEAST_TEMPERATURE:
            raise ValueError(
                f"temperatures must be at least {LEAST_TEMPERATURE}, got {list(self.temperatures)}"
            )
        for name in ("policies", "temperatures"):
            if len(set(getattr(self, name))) != len(getattr(self, name)):
                raise ValueError(f"{name} names one twice: {list(getattr(self, name))}")
        unit = self.group_size * self.share_count
        if self.trajectories < unit or self.trajectories % unit:
            near = max(1, round(self.trajectories / unit)) * unit
            raise ValueError(
                f"trajectories must be a multiple of {unit} (group_size x temperatures x "
                f"policies), such as {near}, got {self.trajectories}"
            )
        self._check_balance()

    def _check_balance(self) -> None:
        if self.balance == "none":
            for name in ("least_share", "most_played"):
                if getattr(self, name) != getattr(type(self), name):
                    raise ValueError(f"{name} does nothing at balance none")
        if not 0 < self.least_share <= 0.5:
            raise ValueError(f"least_share must be above 0 and at most 0.5, got {self.least_share}")
        if self.most_played is not None:
            at_least(self.trajectories, most_played=self.most_played)

    @property
    def share_count(self) -> int:
        """Policies times temperatures."""
        return max(1, len(self.policies)) * len(self.temperatures)

    @property
    def groups(self) -> int:
        """Groups that a share keeps."""
        return self.trajectories // (self.group_size * self.share_count)

    @property
    def balancing(self) -> Balance | None:
        """Until when a share goes on, or none."""
        if self.balance == "none":
            return None
        most = 4 * self.trajectories if self.most_played is None else self.most_played
        return Balance(self.least_share, most // (self.group_size * self.share_count))
