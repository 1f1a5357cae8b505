"""A run as one frozen value: every setting, its unit, its default, whose choice it is."""

import math
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from rewardswap.algorithm import Algorithm
from rewardswap.checkpoints.config import CheckpointConfig
from rewardswap.checks import LEAST_TEMPERATURE, at_least, folder_name
from rewardswap.env_config import model_of
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.loops.budget import BudgetUnit
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.base import Method
from rewardswap.methods.grpo import GRPO
from rewardswap.policy_config import PolicyConfig
from rewardswap.recording import RecordConfig
from rewardswap.rewards.sources import RewardConfig
from rewardswap.rollout.config import RolloutConfig
from rewardswap.trackers.config import TrackConfig

REPLAYED = {
    "replay_clip_low",
    "replay_clip_high",
    "mixing",
    "kl_on_replay",
    "critic_on_replay",
}
"""Settings of methods that need replayed rows."""
OFF_POLICY = {"clip_center", "importance_cap", "importance_maximum"}
"""Settings of methods that need rows whose pi_behavior is not pi_old."""


@dataclass(frozen=True)
class Run:
    """Everything that decides the numbers of a run, and where its record goes."""

    recipe: str
    """Name of the recipe that it started from."""
    output: Path | None = None
    """Run folder, which must not exist yet or be empty; none: runs/RECIPE-DATE-TIME."""
    seed: int = 0
    """Seed of every random draw."""
    threads: int = 1
    """CPU threads of torch. Small models gain little from more, lose much where other programs
    run beside them, and other numbers of threads round differently."""
    evaluation_temperature: float = 1.0
    """Sampling temperature of evaluations; 0 is greedy."""
    method: Method = field(default_factory=GRPO)
    """The proximal method that the loop wraps; `rewardswap methods` lists them."""
    loop: Literal["rspo", "on_policy", "dense"] = "rspo"
    """rspo: explore, swap, learn; on_policy: the method alone; dense: the method alone under the
    dense reward, as a control."""
    budget: int = 150
    """Length of the run, in `budget_unit` (paper: 150 iterations)."""
    budget_unit: BudgetUnit = "agent_updates"
    """Updates of the agent (our reading of an iteration), updates of agent and explorer, or
    environment steps of all phases."""
    env: EnvironmentConfig = field(default_factory=Alfworld)
    """The environment; ALFWorld where a file names none."""
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    batch: Batch = field(default_factory=Batch)
    swap: RewardSwap = field(default_factory=RewardSwap)
    """Used by loop rspo only."""
    reward: RewardConfig = field(default_factory=RewardConfig)
    """Used by the loops rspo and dense."""
    checkpoint: CheckpointConfig = field(default_factory=CheckpointConfig)
    record: RecordConfig = field(default_factory=RecordConfig)
    track: TrackConfig = field(default_factory=TrackConfig)

    def __post_init__(self) -> None:
        _finite(self)
        if self.recipe:
            folder_name("recipe", self.recipe)
        at_least(1, threads=self.threads, budget=self.budget)
        at_least(0, seed=self.seed)
        if self.seed >= 2**63:
            raise ValueError(f"seed must be below 2^63, got {self.seed}")
        if self.evaluation_temperature:
            at_least(LEAST_TEMPERATURE, evaluation_temperature=self.evaluation_temperature)
        if self.policy.decay == "linear" and self.budget_unit != "agent_updates":
            raise ValueError("policy.decay linear needs a budget in agent_updates")
        model_of(self.env, self.policy.model)
        self._check_sizes()
        self._check_method()
        if self.rollout.one_step_off:
            self._check_one_step_off()
        if self.loop == "rspo":
            self._check_swap()
        if self.uses_dense_reward:
            self._check_dense()

    @property
    def uses_dense_reward(self) -> bool:
        """Whether anything in the run learns under the dense reward."""
        return self.loop == "dense" or (self.loop == "rspo" and self.swap.explore_steps > 0)

    def _check_sizes(self) -> None:
        batch, count = self.batch, self.policy.minibatches
        if batch.group_size < 2 and self.method.needs_siblings:
            raise ValueError(
                f"groups of {batch.group_size} trajectory teach {type(self.method).__name__} "
                "nothing: it compares siblings; set batch.group_size to 2 or more"
            )
        smallest = batch.tasks * batch.group_size
        if self.loop == "rspo":
            tasks, replayed = self.swap.split(batch)
            fresh = tasks * batch.group_size
            smallest = min(fresh, replayed) if replayed else fresh
            explorer = self.swap.explorer_minibatches
            if explorer is not None and explorer > fresh:
                raise ValueError(
                    f"swap.explorer_minibatches {explorer} is larger than the {fresh} trajectories "
                    "of an explorer's update"
                )
        if count > smallest:
            raise ValueError(
                f"policy.minibatches {count} is larger than the {smallest} "
                "trajectories of a kind: some optimizer steps would see none"
            )

    def _check_method(self) -> None:
        """Raise ValueError for settings of the method that would do nothing."""
        method = self.method
        made: object = method.algorithm()
        if not isinstance(made, Algorithm):
            raise ValueError(
                f"`algorithm` of method {type(method).__name__} returned {made!r}, not "
                "an Algorithm; return what `self.compose` makes"
            )
        default = {setting.name: setting.default for setting in fields(method)}
        changed = {name for name in default if getattr(method, name) != default[name]}
        without: set[str] = set()
        if self.loop != "rspo" or not self.swap.alpha:
            own = method.behavior == "engine" or self.rollout.one_step_off
            without = REPLAYED if own else REPLAYED | OFF_POLICY
        in_loss = method.kl_coefficient and method.kl_placement == "loss"
        reasons: dict[str, set[str]] = {
            "without replayed rows": without,
            "at method.kl_coefficient 0": set()
            if method.kl_coefficient
            else {"kl_estimator", "kl_placement", "kl_on_replay"},
            "outside method.kl_placement loss": set() if in_loss else {"kl_on_replay"},
            "at method.importance_cap none": {"importance_maximum"}
            if method.importance_cap == "none"
            else set(),
            f"at method.average {method.average}": set()
            if method.average == "constant"
            else {"average_tokens"},
        }
        for reason, idle in reasons.items():
            for name in sorted(changed & idle):
                raise ValueError(f"method.{name} does nothing {reason}")

    def _check_one_step_off(self) -> None:
        if self.loop != "rspo":
            return
        swap = self.swap
        if max(swap.explore_steps, swap.learn_steps) < 2:
            raise ValueError(
                "rollout.one_step_off does nothing where a phase has one update: its first batch "
                "is played on policy"
            )
        if swap.on_hacking == "shorten":
            raise ValueError(
                "swap.on_hacking shorten ends phase 1 at once, when with rollout.one_step_off its "
                "next batch has been played; leave one of them out"
            )

    def _check_swap(self) -> None:
        swap, name = self.swap, type(self.method).__name__
        for temperature in swap.harvest_temperatures:
            at_least(LEAST_TEMPERATURE, **{"swap.harvest_temperatures": temperature})
        if swap.adaptive_alpha and self.method.mixing != "weighted":
            raise ValueError(
                f"swap.adaptive_alpha does nothing at method.mixing {self.method.mixing}"
            )
        if self.method.algorithm().critic is not None:
            if swap.replay_advantage != "collection_group":
                raise ValueError(
                    f"swap.replay_advantage {swap.replay_advantage} does nothing in {name}: its "
                    "critic is the baseline of replayed rows"
                )
        elif swap.explorer_critic != "copy":
            raise ValueError(f"swap.explorer_critic does nothing in {name}: it has no critic")

    def _check_dense(self) -> None:
        if self.loop == "dense" and self.reward.online:
            raise ValueError("reward.online does nothing in loop 'dense': it has no loops to end")
        credit, name = self.reward.dense_credit, type(self.method).__name__
        if credit == "sum" and not self.method.signed_returns:
            raise ValueError(
                f"reward.dense_credit sum gives {name} returns below 0, which it cannot read; use "
                "reward.dense_credit reward_to_go, or loop on_policy"
            )
        if credit != "sum" and self.method.algorithm().critic is not None:
            raise ValueError(
                f"reward.dense_credit {credit} does nothing in {name}: its critic credits turns "
                "already"
            )


def _finite(settings: Any, where: str = "") -> None:
    """Raise ValueError for a number that is not finite, naming its setting."""
    for name in (setting.name for setting in fields(settings)):
        value = getattr(settings, name)
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(n, float) and not math.isfinite(n) for n in numbers):
            raise ValueError(f"{where}{name} must be a finite number, got {value}")
        if is_dataclass(value) and not isinstance(value, type):
            _finite(value, f"{where}{name}.")
