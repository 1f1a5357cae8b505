"""The frozen data that every part of the library speaks of: what happened, and what we think of it.

Letters in shapes: N trajectories of one task, K turns, L action tokens of a turn.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

import numpy as np
import torch
from jaxtyping import Bool, Float
from numpy.typing import NDArray
from torch import Tensor

from rewardswap.task import Task as Task

StopReason = Literal["done", "turn_limit", "token_limit", "context_full", "time_limit"]
"""Why a trajectory ended: the environment ended it, the turn cap, the token cap of an action, the
context is full, or its time is up. Only `done` may be a success."""

IntArray = NDArray[np.int64]
FloatArray = NDArray[np.float32]


@dataclass(frozen=True, slots=True)
class Turn:
    """One action of the agent, with exactly the tokens that were read and sampled."""

    observation: str
    """What the environment said before this action."""
    context_ids: IntArray
    """Tokens between the previous turn's last sampled token and this turn's first sampled token."""
    extends: bool
    """Whether the prompt is the previous prompt + its action + `context_ids`; if not, it is
    `context_ids` alone. False for a trajectory's first turn."""
    action_ids: IntArray
    """The sampled tokens, at least one, with the end token if it was sampled."""
    logprobs: FloatArray
    """log-probabilities of `action_ids` under the policy that sampled them, at its temperature."""
    action: str
    """The text sent to the environment, or what was said where no action could be read in it."""
    valid: bool
    """Whether the environment admitted the action, and it was said in the prompt's form."""
    truncated: bool
    """Whether the token cap of one action cut it."""
    reward: float
    """The environment's own dense reward of this turn, 0 where it has none."""
    state_key: str
    """Key of the state in which the action was taken: equal keys are the same state of a task."""

    def __post_init__(self) -> None:
        if len(self.action_ids) < 1 or len(self.action_ids) != len(self.logprobs):
            raise ValueError(
                f"a turn needs as many log-probs as action tokens and at least one, got "
                f"{len(self.logprobs)} and {len(self.action_ids)} for action {self.action!r}"
            )
        if not (np.isfinite(self.logprobs).all() and (self.logprobs <= 0).all()):
            raise ValueError(f"log-probs of action {self.action!r} must be finite and <= 0")


@dataclass(frozen=True, slots=True)
class Trajectory:
    """What happened in one episode: evidence only, never an advantage or a process score."""

    task: Task
    index: int
    """The episode's number among all episodes of its task under its policy version."""
    turns: tuple[Turn, ...]
    final_observation: str
    """What the environment said after the last action."""
    final_context_ids: IntArray
    """Tokens of `final_observation` after the last sampled token; no action follows them."""
    outcome: float
    """The true outcome in [0, 1]."""
    success: bool
    """The environment's own `won`."""
    stop: StopReason
    policy_version: int
    task_score: float
    """The benchmark's own score in [0, 1] (WebShop: its reward); the outcome where it has none."""

    def __post_init__(self) -> None:
        if not self.turns:
            raise ValueError(f"a trajectory of task {self.task.id!r} has no turn")
        for name in ("outcome", "task_score"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} {value} of task {self.task.id!r} is outside [0, 1]")

    @property
    def action_token_count(self) -> int:
        """How many tokens were sampled, in tokens."""
        return sum(len(turn.action_ids) for turn in self.turns)


@dataclass(frozen=True, slots=True)
class EpisodeFailure:
    """An episode that broke: it is counted and never trained on."""

    task: Task
    index: int
    owner: Literal["environment", "engine"]
    cause: str


@dataclass(frozen=True)
class Group:
    """What we think of the trajectories of one task: rewards, columns, and which are trained on."""

    task: Task
    trajectories: tuple[Trajectory, ...]
    rewards: Mapping[str, Float[Tensor, "N K"]] = field(default_factory=dict)
    """Named rewards per turn, kept apart."""
    reward: Float[Tensor, "N K"] | None = None
    """The reward in force."""
    columns: Mapping[str, Tensor] = field(default_factory=dict)
    """Named evidence of models, [N, K] per turn or [N, K, L] per token, 0 where masked."""
    selected: tuple[bool, ...] = ()
    """Which siblings are trained on; all of them count in the group's statistics."""
    replayed: bool = False
    """Whether another policy than the one being trained collected it."""

    def __post_init__(self) -> None:
        if not self.trajectories:
            raise ValueError(f"the group of task {self.task.id!r} has no trajectory")
        strange = [t.task.id for t in self.trajectories if t.task != self.task]
        if strange:
            raise ValueError(f"the group of task {self.task.id!r} holds task {strange[0]!r}")
        if not self.selected:
            object.__setattr__(self, "selected", (True,) * len(self.trajectories))
        if len(self.selected) != len(self.trajectories):
            raise ValueError(f"`selected` of task {self.task.id!r} needs one entry per trajectory")
        named = {**self.rewards, **({} if self.reward is None else {"in force": self.reward})}
        for name, reward in named.items():
            self._check(f"reward {name!r}", reward)
        for name, column in self.columns.items():
            self._check(f"column {name!r}", column)

    def _check(self, what: str, value: Tensor) -> None:
        shape = (len(self.trajectories), self.turn_count)
        if tuple(value.shape[:2]) != shape:
            raise ValueError(
                f"{what} has shape {list(value.shape)}, expected {list(shape)} (N, K) "
                f"for task {self.task.id!r}"
            )
        if not torch.isfinite(value).all():
            raise ValueError(f"{what} of task {self.task.id!r} is not finite")

    @property
    def turn_count(self) -> int:
        """K: the largest number of turns among the siblings."""
        return max(len(trajectory.turns) for trajectory in self.trajectories)

    @property
    def token_count(self) -> int:
        """L: the largest number of action tokens in one turn."""
        return max(len(turn.action_ids) for t in self.trajectories for turn in t.turns)

    @property
    def turn_mask(self) -> Bool[Tensor, "N K"]:
        """True where trajectory n has a k-th turn."""
        lengths = torch.tensor([len(t.turns) for t in self.trajectories])
        return torch.arange(self.turn_count)[None, :] < lengths[:, None]

    @property
    def token_mask(self) -> Bool[Tensor, "N K L"]:
        """True where turn k of trajectory n has an l-th action token."""
        mask = torch.zeros(len(self.trajectories), self.turn_count, self.token_count).bool()
        for n, trajectory in enumerate(self.trajectories):
            for k, turn in enumerate(trajectory.turns):
                mask[n, k, : len(turn.action_ids)] = True
        return mask

    @property
    def outcomes(self) -> Float[Tensor, "N"]:
        """The true outcomes, whatever reward is in force."""
        return torch.tensor([t.outcome for t in self.trajectories], dtype=torch.float32)

    @property
    def reward_in_force(self) -> Float[Tensor, "N K"]:
        """The reward in force; raises ValueError naming the task while there is none."""
        if self.reward is None:
            raise ValueError(f"the group of task {self.task.id!r} has no reward in force yet")
        return self.reward

    @property
    def returns(self) -> Float[Tensor, "N"]:
        """Sum over turns of the reward in force."""
        return self.reward_in_force.sum(dim=1)

    def with_rewards(self, rewards: Mapping[str, Tensor], reward: Tensor) -> "Group":
        """The same group with other named rewards and another reward in force."""
        return replace(self, rewards=dict(rewards), reward=reward)

    def with_column(self, name: str, value: Tensor) -> "Group":
        """The same group with one more column."""
        return replace(self, columns={**self.columns, name: value})

    def token_values(self, values: list[list[FloatArray]]) -> Float[Tensor, "N K L"]:
        """Ragged per-token numbers, one array per trajectory and turn, as a padded tensor."""
        column = torch.zeros(len(self.trajectories), self.turn_count, self.token_count)
        for n, turns in enumerate(values):
            for k, tokens in enumerate(turns):
                column[n, k, : len(tokens)] = torch.as_tensor(tokens, dtype=torch.float32)
        return column

    @property
    def sampled_logprob(self) -> Float[Tensor, "N K L"]:
        """log-probabilities as the engine sampled them."""
        return self.token_values([[u.logprobs for u in t.turns] for t in self.trajectories])
