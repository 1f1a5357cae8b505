"""A tiny random backbone and made-up episodes whose observations say more or less."""

from collections.abc import Callable, Sequence

import numpy as np
import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from rewardswap.types import Task, Trajectory, Turn

HEADER = 4
TASK, GOOD, BAD = 2, 5, 6


@pytest.fixture
def backbone() -> LlamaForCausalLM:
    """Two layers of width 32 over 40 words; the same weights every time."""
    return tiny_llama(seed=0)


def tiny_llama(seed: int) -> LlamaForCausalLM:
    """A random Llama; no other draw of the process is touched."""
    config = LlamaConfig(
        vocab_size=40,
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=2,
        max_position_embeddings=256,
        initializer_range=0.2,
        bos_token_id=0,
        eos_token_id=1,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(config)


def make_trajectory(
    observations: Sequence[int],
    *,
    task: str = "task-0",
    index: int = 0,
    success: bool = False,
    rewards: Sequence[float] | None = None,
    fresh: Sequence[int] = (),
) -> Trajectory:
    """One turn per observed token but the last; turns in `fresh` start a new row of tokens.

    The first context opens with the TASK token; every context ends with HEADER.
    """
    turns = []
    for k, word in enumerate(observations[:-1]):
        context = [word, HEADER] if k else [TASK, word, HEADER]
        turns.append(
            Turn(
                observation=str(word),
                context_ids=np.array(context, dtype=np.int64),
                extends=k > 0 and k not in fresh,
                action_ids=np.array([20 + k % 7, 1], dtype=np.int64),
                logprobs=np.array([-0.5, -0.1], dtype=np.float32),
                action=f"act {k}",
                valid=True,
                truncated=False,
                reward=rewards[k] if rewards else 0.0,
                state_key=f"{task} {k}",
            )
        )
    return Trajectory(
        task=Task(id=task, family="made-up"),
        index=index,
        turns=tuple(turns),
        final_observation=str(observations[-1]),
        final_context_ids=np.array([observations[-1], HEADER], dtype=np.int64),
        outcome=float(success),
        success=success,
        stop="done" if success else "turn_limit",
        policy_version=0,
        task_score=float(success),
    )


@pytest.fixture
def make() -> Callable[..., Trajectory]:
    """`make_trajectory`, for tests."""
    return make_trajectory


def revealing_episodes(tasks: int, siblings: int, seed: int) -> list[Trajectory]:
    """Lengths say nothing; observations are GOOD at rate .8 in a success and .3 in a failure."""
    draw = np.random.default_rng(seed)
    episodes = []
    for task in range(tasks):
        for index in range(siblings):
            success = bool(draw.random() < 0.4)
            good = draw.random(int(draw.integers(6, 12))) < (0.8 if success else 0.3)
            words = np.where(good, GOOD, BAD).tolist()
            episodes.append(
                make_trajectory(words, task=f"task-{task}", index=index, success=success)
            )
    return episodes


def length_only_episodes(tasks: int, siblings: int, seed: int) -> list[Trajectory]:
    """Observations say nothing: a success ends after 3 to 6 turns, a failure at the cap of 9.

    How long a success takes is drawn at its end only, so no turn foretells it.
    """
    draw = np.random.default_rng(seed)
    episodes = []
    for task in range(tasks):
        for index in range(siblings):
            success = bool(draw.random() < 0.4)
            count = int(draw.integers(3, 7)) if success else 9
            words = np.where(draw.random(count + 1) < 0.5, GOOD, BAD).tolist()
            episodes.append(
                make_trajectory(words, task=f"task-{task}", index=index, success=success)
            )
    return episodes


@pytest.fixture
def revealing() -> list[Trajectory]:
    """320 episodes of 40 tasks whose observations tell success from failure."""
    return revealing_episodes(tasks=40, siblings=8, seed=1)


@pytest.fixture
def length_only() -> list[Trajectory]:
    """320 episodes of 40 tasks in which only the number of turns tells success from failure."""
    return length_only_episodes(tasks=40, siblings=8, seed=1)
