"""Two loops of RSPO with a real model on official games; prints what was seen as JSON.

usage: real_run.py MODEL GAMES full|lora
"""

import hashlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from rewardswap.env_config.alfworld import Alfworld
from rewardswap.learners import make_learners
from rewardswap.loops.budget import Budget
from rewardswap.loops.rspo import Rspo
from rewardswap.loops.settings import Batch as Sizes
from rewardswap.loops.settings import RewardSwap
from rewardswap.methods.grpo import GRPO
from rewardswap.models.adapter import add_adapter
from rewardswap.models.batching import Batch, TokenScores
from rewardswap.policy_config import PolicyConfig
from rewardswap.replay import ReplayBuffer
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.stage import Stage, make_stage
from rewardswap.trainer import Agent, Trainer
from rewardswap.types import Group

TURNS, ACTION_TOKENS, LOOPS, RANK = 3, 12, 2, 8
SIZES = Sizes(tasks=2, group_size=2)
SWAP = RewardSwap(explore_steps=1, learn_steps=1, alpha=0.5)


@dataclass(frozen=True)
class Odd:
    """Rewards every second episode: a model this small wins nothing in three turns, and without a
    difference between siblings nothing would be learned."""

    name: str
    turns: slice

    def score(self, group: Group) -> torch.Tensor:
        reward = torch.zeros(len(group.trajectories), group.turn_count)
        for n, trajectory in enumerate(group.trajectories):
            reward[n, : len(trajectory.turns)][self.turns] = float(trajectory.index % 2)
        return reward


@dataclass
class Seen:
    """What happened, as numbers that can be printed."""

    ratio_error: float = 0.0
    """Largest |ratio - 1| of an action token in the first optimizer step of an update."""
    trained_tokens: list[int] = field(default_factory=list)
    sampled_as_trained: list[bool] = field(default_factory=list)
    moved: list[bool] = field(default_factory=list)
    """Whether the explorer was another model than the agent."""
    restored: list[bool] = field(default_factory=list)
    metrics: list[dict[str, Any]] = field(default_factory=list)


class Watch:
    """Looks at a trainer from outside."""

    def __init__(self, trainer: Trainer, stage: Stage) -> None:
        self.seen = Seen()
        self._trainer, self._stage = trainer, stage
        self._played: list[set[tuple[int, ...]]] = []
        self._agent = ""
        self._step, self._branch = trainer.policy.step, trainer.branch
        self._restore, self._play = trainer.restore, trainer.collector.play
        trainer.collector.play, trainer.report = self.play, self.report
        for name in ("branch", "restore"):
            setattr(trainer, name, getattr(self, name))
        trainer.policy.step = self.step  # type: ignore[method-assign]

    def play(self, requests: Sequence[EpisodeRequest], *settings: Any) -> Played:
        played = self._play(requests, *settings)
        self._played.append(
            {
                tuple(int(token) for turn in t.turns for token in turn.action_ids)
                for t in played.trajectories
            }
        )
        return played

    def report(self, metrics: dict[str, float], phase: str, groups: Sequence[Group]) -> None:
        self.seen.metrics.append({"phase": phase, **metrics})

    def step(self, batch: Batch, loss: Any, **settings: Any) -> Any:
        """What is trained: exactly what was sampled, at a ratio of 1."""
        fresh, replayed = (
            {
                tuple(batch.tokens[rows][batch.action_mask[rows]].tolist())
                for number in batch.trajectory[kind].unique()
                for rows in [batch.trajectory == number]
            }
            for kind in (~batch.replayed, batch.replayed)
        )
        before = set().union(*self._played[:-1])
        self.seen.sampled_as_trained.append(fresh == self._played[-1] and replayed <= before)
        self.seen.trained_tokens.append(int(batch.action_mask.sum()))

        def watched(scores: TokenScores, part: Batch) -> Any:
            gap = scores.logprob.detach() - part.column("old_logprob")
            error = float((gap[part.action_mask].exp() - 1).abs().max())
            self.seen.ratio_error = max(self.seen.ratio_error, error)
            return loss(scores, part)

        return self._step(batch, watched, **settings)

    def branch(self) -> Agent:
        self._agent = digest(self._trainer)
        return self._branch()

    def restore(self, agent: Agent) -> None:
        self.seen.moved.append(digest(self._trainer) != self._agent)
        self._restore(agent)
        self.seen.restored.append(digest(self._trainer) == self._agent)


def digest(trainer: Trainer) -> str:
    """Of every number that a branch must bring back."""
    whole = hashlib.sha256(str(trainer.policy.version).encode())
    whole.update(torch.get_rng_state().numpy().data)
    moments = trainer.policy.optimizer.state_dict()["state"].values()
    for tensors in (trainer.policy.model.state_dict(), *moments):
        for name, tensor in tensors.items():
            whole.update(name.encode())
            whole.update(tensor.contiguous().numpy().data)
    return whole.hexdigest()


def main(model: str, games: Path, kind: str) -> dict[str, Any]:
    torch.set_num_threads(1)
    torch.manual_seed(0)
    config = PolicyConfig(model=model, learning_rate=1e-4, tokens_per_microbatch=2048)
    env = Alfworld(games=games, turn_limit=TURNS, evaluation_tasks=1)
    stage = make_stage(env, model, device="cpu", temperature=1.0, action_tokens=ACTION_TOKENS)
    if kind == "lora":
        add_adapter(stage.language_model.model, RANK, 2 * RANK, ())
    algorithm = GRPO().algorithm()
    learners = make_learners(config, stage.language_model.model, None, algorithm)
    trainer = Trainer(
        policy=learners.policy,
        play=stage.play,
        algorithm=algorithm,
        training_tasks=stage.world.tasks("train"),
        seed=0,
    )
    watch = Watch(trainer, stage)
    started = time.monotonic()
    Rspo(
        trainer,
        SWAP,
        SIZES,
        budget=Budget(LOOPS),
        dense=Odd("dense", slice(None)),
        outcome=Odd("outcome", slice(-1, None)),
        buffer=ReplayBuffer(64, 0),
    ).run()
    found = vars(watch.seen) | {"agent_updates": trainer.agent_updates}
    return {**found, "seconds": time.monotonic() - started}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], Path(sys.argv[2]), sys.argv[3])))
