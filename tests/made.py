"""Tiny models, made-up trajectories, and a play that needs no environment."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from transformers import LlamaConfig, LlamaForCausalLM
from transformers.utils.logging import disable_progress_bar

from rewardswap.models.policy import Policy
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.task_stream import derived_seed
from rewardswap.types import Group, Task, Trajectory, Turn

VOCABULARY = 30
disable_progress_bar()


def small_llama(seed: int = 0) -> Any:
    config = LlamaConfig(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.3,
        bos_token_id=0,
        eos_token_id=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config).eval()


def small_policy(seed: int = 0, learning_rate: float = 0.01, **settings: Any) -> Policy:
    settings.setdefault(
        "make_optimizer", lambda m: torch.optim.AdamW(m.parameters(), lr=learning_rate)
    )
    return Policy(small_llama(seed), **settings)


def made_trajectory(
    task: str = "a",
    index: int = 0,
    lengths: Sequence[tuple[int, int]] = ((3, 2), (2, 3)),
    outcome: float = 0.0,
    fresh_rows: Sequence[int] = (0,),
    version: int = 0,
) -> Trajectory:
    """One turn per (context tokens, action tokens); turns in `fresh_rows` start a row."""
    stream = np.random.default_rng(derived_seed("made", task, index, version))
    turns = [
        Turn(
            observation=f"observation {k}",
            context_ids=stream.integers(2, VOCABULARY, context),
            extends=k not in fresh_rows,
            action_ids=stream.integers(2, VOCABULARY, action),
            logprobs=-stream.random(action).astype(np.float32),
            action=f"action {k}",
            valid=True,
            truncated=False,
            reward=0.1 * (k + 1),
            state_key=str(k),
        )
        for k, (context, action) in enumerate(lengths)
    ]
    return Trajectory(
        task=Task(task, "family"),
        index=index,
        turns=tuple(turns),
        final_observation="the end",
        final_context_ids=stream.integers(2, VOCABULARY, 2),
        outcome=outcome,
        success=outcome == 1.0,
        stop="done",
        policy_version=version,
        task_score=outcome,
    )


def made_group(task: str = "a", outcomes: Sequence[float] = (0.0, 1.0)) -> Group:
    """One to three turns per sibling; the shapes repeat."""
    shapes = (((3, 2), (2, 3)), ((4, 1),), ((2, 2), (1, 1), (3, 2)))
    members = [
        made_trajectory(task, n, shapes[n % len(shapes)], float(outcome))
        for n, outcome in enumerate(outcomes)
    ]
    return Group(Task(task, "family"), tuple(members))


class MadePlay:
    """Episodes whose tokens and outcome depend only on (seed, version, task, index)."""

    def __init__(self) -> None:
        self.calls: list[tuple[list[tuple[str, int]], int, int]] = []

    def __call__(
        self, requests: Sequence[EpisodeRequest], seed: int, version: int, temperature: float | None
    ) -> Played:
        self.calls.append(([(r.task.id, r.index) for r in requests], seed, version))
        trajectories = []
        for request in requests:
            draw = derived_seed(seed, version, request.task.id, request.index)
            base = made_trajectory(
                request.task.id,
                request.index,
                ((3, 2),) * (1 + draw % 3),
                outcome=float(draw % 5 == 0),
                version=draw % 1000,
            )
            trajectories.append(base)
        steps = sum(len(t.turns) for t in trajectories)
        tokens = sum(t.action_token_count for t in trajectories)
        return Played(
            trajectories, [], {"environment_steps": float(steps), "generated_tokens": float(tokens)}
        )
