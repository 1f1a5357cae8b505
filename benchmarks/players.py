"""Models of given sizes with random weights, policies around them, and processor time."""

import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
from transformers import LlamaConfig, LlamaForCausalLM

from rewardswap.models import shop_agent, small_agent
from rewardswap.models.loading import LanguageModel, load_language_model
from rewardswap.models.optimizers import make_adamw
from rewardswap.models.policy import Policy
from rewardswap.models.precision import round_weights
from rewardswap.rollout.context import ChatContext

POSITIONS = 16384
SHAPES: dict[str, dict[str, Any]] = {
    "1M": {"hidden_size": 128, "intermediate_size": 384, "num_hidden_layers": 4},
    "10M": {"hidden_size": 384, "intermediate_size": 1024, "num_hidden_layers": 6},
    "SmolLM2-135M": {
        "hidden_size": 576,
        "intermediate_size": 1536,
        "num_hidden_layers": 30,
        "num_key_value_heads": 3,
        "vocab_size": 49152,
        "tie_word_embeddings": True,
    },
}
"""Llamas; heads are 64 wide (the 1M one's: 32), vocabularies those of the small agents."""


@dataclass(frozen=True)
class Place:
    """Where a benchmark computes."""

    device: str = "cpu"
    dtype: str = "float32"
    attention: str = "sdpa"


def make_player(model: str, world: str, place: Place, *, ends: int | None = None) -> LanguageModel:
    """A model of SHAPES with the words of a world's small agent, or the folder `model`.

    With `ends` every so many-th word ends an action, so that a model with random weights, which
    says all words alike, says actions of varied length.
    """
    if model in SHAPES:
        player = _random_player(model, world, place)
        if ends is not None:
            words = len(player.tokenizer)
            end = tuple(range(int(player.tokenizer.eos_token_id), words, ends))
            player = replace(player, end_token_ids=end)
    else:
        player = load_language_model(model)
    if place.dtype == "bfloat16":
        round_weights(player.model)
    player.model.to(place.device)
    return player


def _random_player(shape: str, world: str, place: Place) -> LanguageModel:
    agent = shop_agent if world == "WebShop" else small_agent
    tokenizer = agent.build_tokenizer()
    sizes = {"vocab_size": len(tokenizer), "tie_word_embeddings": False, **SHAPES[shape]}
    heads = max(4, sizes["hidden_size"] // 64)
    config = LlamaConfig(
        num_attention_heads=heads,
        **{"num_key_value_heads": heads, **sizes},
        max_position_embeddings=POSITIONS,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        attn_implementation=place.attention,
        observation_wording="short",
    )
    torch.manual_seed(0)
    model = LlamaForCausalLM(config).eval()
    return LanguageModel(model, tokenizer, (int(tokenizer.eos_token_id),))


def make_chat(player: LanguageModel, instructions: str) -> ChatContext:
    """The growing chat of a world's whole history."""
    return ChatContext(player.tokenizer, instructions, player.end_token_ids)


def make_policy(player: LanguageModel, tokens_per_microbatch: int, rate: float = 0.0) -> Policy:
    """As a run makes it; at learning rate 0 an update costs the same and changes nothing."""

    def optimizer(module: torch.nn.Module) -> torch.optim.Optimizer:
        parameters = module.parameters()
        return make_adamw(
            "adamw", parameters, learning_rate=rate, betas=(0.9, 0.999), weight_decay=0.0
        )

    return Policy(
        player.model,
        make_optimizer=optimizer,
        gradient_clip=1e9 if rate == 0 else 1.0,
        tokens_per_microbatch=tokens_per_microbatch,
    )


def seconds(work: Callable[[], object], device: str) -> float:
    """Of the processor, so that other programs count less; of the clock on other devices."""
    if device == "cpu":
        start = time.process_time()
        work()
        return time.process_time() - start
    torch.cuda.synchronize()
    start = time.perf_counter()
    work()
    torch.cuda.synchronize()
    return time.perf_counter() - start


def interleaved(
    ways: dict[str, Callable[[], object]], repeats: int, device: str
) -> dict[str, list[float]]:
    """Seconds of each way, in turn, so that the machine's load meets all of them alike."""
    taken: dict[str, list[float]] = {name: [] for name in ways}
    for _ in range(repeats):
        for name, work in ways.items():
            taken[name].append(seconds(work, device))
    return taken


def ratio(slow: list[float], quick: list[float]) -> float:
    """The median of the ratios of neighbouring repeats."""
    return median(a / b for a, b in zip(slow, quick, strict=True))


def name_of(model: str) -> str:
    """How tables call a model."""
    return f"{model}, random weights" if model in SHAPES else Path(model).name
