"""The supervised stage's data: demonstrations as tokens, packed into rows."""

import hashlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float, Int
from torch import Tensor
from transformers import PreTrainedTokenizerFast

from rewardswap.envs.base import Environment, Observation
from rewardswap.types import Task


@dataclass(frozen=True)
class Episode:
    """One demonstration as tokens."""

    ids: list[int]
    by_agent: list[bool]
    """Whether a token was the agent's: its action or the end token after it."""
    success: bool


@dataclass(frozen=True)
class PackedRows:
    """Whole episodes side by side in rows of one length; positions restart with each episode."""

    ids: Int[Tensor, "B T"]
    positions: Int[Tensor, "B T"]
    weights: Float[Tensor, "B T"]
    """Weight of predicting each token; 0 for an episode's first token and for padding."""


def stream_seed(seed: int, name: str, *numbers: int) -> int:
    """A 64-bit seed for one named draw of a run; the same in every process."""
    digest = hashlib.sha256(repr((seed, name, numbers)).encode()).digest()
    return int.from_bytes(digest[:8], "big")


def record_episode(
    environment: Environment,
    task: Task,
    act: Callable[[Observation], str],
    turn_limit: int,
    tokenizer: PreTrainedTokenizerFast,
) -> Episode:
    """Play one episode with `act` and write it down as the chat template would."""
    observation = environment.reset(task)
    chat = [{"role": "user", "content": observation.text}]
    success = False
    for _ in range(turn_limit):
        action = act(observation)
        step = environment.step(action)
        observation, success = step.observation, step.success
        chat.append({"role": "assistant", "content": action})
        chat.append({"role": "user", "content": observation.text})
        if step.terminated:
            break
    return encode_chat(chat, tokenizer, success)


def encode_chat(
    chat: Sequence[dict[str, str]], tokenizer: PreTrainedTokenizerFast, success: bool
) -> Episode:
    """The tokens of a chat, with the agent's own marked: from after <act> to <end>."""
    ids = tokenizer(tokenizer.apply_chat_template(chat, tokenize=False))["input_ids"]
    act, end = tokenizer.convert_tokens_to_ids("<act>"), tokenizer.eos_token_id
    by_agent, acting = [], False
    for token in ids:
        by_agent.append(acting)
        acting = token == act or (acting and token != end)
    return Episode(list(ids), by_agent, success)


def pack(
    episodes: Sequence[Episode], row_length: int, observation_weight: float, pad_id: int
) -> PackedRows:
    """Rows filled with whole episodes, the longest first, each into the first row with space.

    Rows have `row_length` tokens, or as many as the longest episode if that has more.
    """
    row_length = max(row_length, *(len(episode.ids) for episode in episodes))
    rows: list[list[Episode]] = []
    space: list[int] = []
    for episode in sorted(episodes, key=lambda e: -len(e.ids)):
        fits = [n for n, left in enumerate(space) if left >= len(episode.ids)]
        if not fits:
            rows.append([])
            space.append(row_length)
            fits = [len(rows) - 1]
        rows[fits[0]].append(episode)
        space[fits[0]] -= len(episode.ids)
    filled = [_row(row, row_length, observation_weight, pad_id) for row in rows]
    return PackedRows(*(torch.stack(columns) for columns in zip(*filled, strict=True)))


def _row(
    row: Sequence[Episode], row_length: int, observation_weight: float, pad_id: int
) -> tuple[Tensor, Tensor, Tensor]:
    ids: list[int] = []
    positions: list[int] = []
    weights: list[float] = []
    for episode in row:
        ids += episode.ids
        positions += range(len(episode.ids))
        weights += [1.0 if mine else observation_weight for mine in episode.by_agent]
        weights[-len(episode.ids)] = 0.0
    rest = row_length - len(ids)
    return (
        torch.tensor(ids + [pad_id] * rest),
        torch.tensor(positions + list(range(rest))),
        torch.tensor(weights + [0.0] * rest),
    )
