"""A run as one frozen value: every setting, its unit, its default, whose choice it is."""

import difflib
import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from pathlib import Path
from typing import Any, Literal

from rewardswap.loops.rspo import Batch, RewardSwap
from rewardswap.methods import METHODS
from rewardswap.rewards.config import ProcessRewardConfig


@dataclass(frozen=True)
class EnvironmentConfig:
    """Where the games come from and how they are played."""

    games: Path | None = None
    """Folder of official ALFWorld games (`json_2.1.1` of alfworld-download); none: generated."""
    split: str | None = None
    """Split that is evaluated; none: valid_seen of official games, held_out of generated ones."""
    train_split: str = "train"
    """Split that is trained on."""
    turn_limit: int | None = None
    """Most turns of an episode, in turns; none: 50 in official games (as the field), 12 in
    generated ones, whose rooms are small."""
    wording: Literal["full", "short"] | None = None
    """Observations in the engine's own words, or shortened for small models (ours); none: what
    `observation_wording` in the model's config.json says, full where it says nothing."""
    evaluation_games: int | None = None
    """How many games of the split are evaluated, in sorted order; none: every game."""
    generated_games: int = 4000
    """Size of the generated training split, in games."""
    generated_seed: int = 0
    """Seed of the generated games."""

    def __post_init__(self) -> None:
        _at_least(1, turn_limit=self.turns, generated_games=self.generated_games)
        if self.evaluation_games is not None:
            _at_least(1, evaluation_games=self.evaluation_games)

    @property
    def turns(self) -> int:
        """The turn cap in force, in turns."""
        if self.turn_limit is not None:
            return self.turn_limit
        return 12 if self.games is None else 50

    @property
    def panel_split(self) -> str:
        """The split that is evaluated."""
        return self.split or ("held_out" if self.games is None else "valid_seen")


@dataclass(frozen=True)
class PolicyConfig:
    """The language model and how it is optimized."""

    model: str = "base-agent"
    """`base-agent` (ships with the package) or a folder of a Hugging Face causal LM."""
    learning_rate: float = 1e-6
    """AdamW's learning rate (verl-agent: 1e-6)."""
    decay: Literal["none", "linear"] = "none"
    """none: constant, as verl-agent's; linear: down to 0 at the run's last update. The explorer's
    is constant."""
    weight_decay: float = 0.01
    """AdamW's weight decay (verl-agent: .01)."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's betas."""
    gradient_clip: float = 1.0
    """Largest gradient norm (verl-agent: 1.0)."""
    minibatches: int = 1
    """Optimizer steps of one update."""
    tokens_per_microbatch: int = 4096
    """Most tokens, padding included, of one forward and backward pass; changes no number beyond
    rounding."""
    temperature: float = 1.0
    """Sampling temperature of rollouts; log-probs are taken at it."""
    action_tokens: int | None = None
    """Most tokens of one action; none: `max_new_tokens` in the model's generation_config.json, 512
    where it says nothing (verl-agent: 512)."""
    device: str = "cpu"
    """Torch device of the model."""

    def __post_init__(self) -> None:
        _at_least(
            1,
            minibatches=self.minibatches,
            action_tokens=1 if self.action_tokens is None else self.action_tokens,
            tokens_per_microbatch=self.tokens_per_microbatch,
        )
        _positive(
            learning_rate=self.learning_rate,
            gradient_clip=self.gradient_clip,
            temperature=self.temperature,
        )
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be in [0, 1), got {list(self.betas)}")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must be at least 0, got {self.weight_decay}")


@dataclass(frozen=True)
class LossConfig:
    """What every method's loss shares."""

    clip_low: float = 0.2
    """Clip below the ratio's centre (paper: .2)."""
    clip_high: float = 0.2
    """Clip above the ratio's centre (paper: .2)."""
    clip_window: Literal["additive", "multiplicative"] = "additive"
    """Window around the centre: c ± eps (paper, Eq. 4) or c (1 ± eps) (decoupled PPO)."""
    average: Literal["token", "trajectory"] = "token"
    """What counts the same in the loss: every action token (verl-agent, DAPO) or every trajectory
    and its tokens among themselves (GRPO's paper; one reading of 1/(NT) in RSPO's Eq. 3)."""
    kl_coefficient: float = 0.01
    """Weight of the k3 divergence to the start policy (verl-agent: .01); 0: no reference pass."""

    def __post_init__(self) -> None:
        _positive(clip_low=self.clip_low, clip_high=self.clip_high)
        if self.kl_coefficient < 0:
            raise ValueError(f"kl_coefficient must be at least 0, got {self.kl_coefficient}")


@dataclass(frozen=True)
class RewardConfig:
    """The dense reward of phase 1."""

    dense: Literal["learned", "progress"] = "learned"
    """learned: the process reward model; progress: the environment's rule-based potential."""
    model: ProcessRewardConfig = field(default_factory=ProcessRewardConfig)
    """The process reward model (paper: features at the action, sum fitted to the outcome)."""
    trajectories: int = 768
    """Rollouts of the start policy that it is trained and tested on."""
    group_size: int = 4
    """Rollouts of each task among them."""
    temperatures: tuple[float, ...] = (0.7, 1.0, 1.3)
    """Sampling temperatures of these rollouts, in equal shares (ours; unspecified in the paper)."""

    def __post_init__(self) -> None:
        _at_least(1, trajectories=self.trajectories, group_size=self.group_size)
        if not self.temperatures or min(self.temperatures) <= 0:
            raise ValueError(f"temperatures must be above 0, got {list(self.temperatures)}")


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
    method: str = "grpo"
    """The proximal method that the loop wraps; `rewardswap methods` lists them."""
    loop: Literal["rspo", "on_policy"] = "rspo"
    """rspo: explore, swap, learn; on_policy: the method alone."""
    updates: int = 150
    """Updates of the agent (paper: 150 iterations; that these are the agent's is our reading)."""
    env: EnvironmentConfig = field(default_factory=EnvironmentConfig)
    policy: PolicyConfig = field(default_factory=PolicyConfig)
    batch: Batch = field(default_factory=Batch)
    loss: LossConfig = field(default_factory=LossConfig)
    swap: RewardSwap = field(default_factory=RewardSwap)
    """Used by loop rspo only."""
    reward: RewardConfig = field(default_factory=RewardConfig)
    """Used by loop rspo only."""

    def __post_init__(self) -> None:
        _finite(self)
        _at_least(1, threads=self.threads, updates=self.updates)
        _at_least(0, seed=self.seed)
        if self.evaluation_temperature < 0:
            raise ValueError(
                f"evaluation_temperature must be at least 0, got {self.evaluation_temperature}"
            )
        if self.method not in METHODS:
            raise ValueError(unknown("method", self.method, METHODS))
        smallest = self.batch.tasks * self.batch.group_size
        if self.loop == "rspo":
            tasks, replayed = self.swap.split(self.batch)
            fresh = tasks * self.batch.group_size
            smallest = min(fresh, replayed) if replayed else fresh
        if self.policy.minibatches > smallest:
            raise ValueError(
                f"policy.minibatches {self.policy.minibatches} is larger than the {smallest} "
                "trajectories of a kind: some optimizer steps would see none"
            )


def unknown(what: str, name: str, known: Iterable[str]) -> str:
    """One line that names the unknown thing, the nearest known one, and all of them."""
    names = sorted(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return f"unknown {what} {name!r}{hint} Known: {', '.join(names)}"


def _finite(settings: Any, where: str = "") -> None:
    """Raise ValueError for a number that is not finite, naming its setting."""
    for name in (setting.name for setting in fields(settings)):
        value = getattr(settings, name)
        numbers = value if isinstance(value, tuple) else (value,)
        if any(isinstance(n, float) and not math.isfinite(n) for n in numbers):
            raise ValueError(f"{where}{name} must be a finite number, got {value}")
        if is_dataclass(value) and not isinstance(value, type):
            _finite(value, f"{where}{name}.")


def _at_least(bound: int, **settings: int) -> None:
    for name, value in settings.items():
        if value < bound:
            raise ValueError(f"{name} must be at least {bound}, got {value}")


def _positive(**settings: float) -> None:
    for name, value in settings.items():
        if not value > 0:
            raise ValueError(f"{name} must be above 0, got {value}")
