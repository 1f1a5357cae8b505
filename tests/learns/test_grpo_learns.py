"""From random weights to every held-out game, on the outcome alone."""

from collections.abc import Sequence

import pytest
import torch
from tokenizers import Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rewardswap.envs.corridor import CorridorWorld
from rewardswap.loops.on_policy import on_policy
from rewardswap.methods import METHODS
from rewardswap.models.policy import Policy
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.episodes import EpisodeRequest, Played, play
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.trainer import Trainer

WORDS = ("<end>", "<act>", "room", "light", "west", "east", "here", *"123456")
TEMPLATE = (
    "{% for m in messages %}"
    "{% if m.role == 'assistant' %}{{ m.content }}<end>{% else %} {{ m.content }} {% endif %}"
    "{% endfor %}{% if add_generation_prompt %}<act>{% endif %}"
)


def walker_tokenizer() -> PreTrainedTokenizerFast:
    inner = Tokenizer(
        models.WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<end>")
    )
    inner.pre_tokenizer = pre_tokenizers.WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<end>", additional_special_tokens=["<act>"]
    )
    tokenizer.chat_template = TEMPLATE
    return tokenizer


def walker_model() -> LlamaForCausalLM:
    config = LlamaConfig(
        vocab_size=len(WORDS),
        hidden_size=32,
        intermediate_size=64,
        num_hidden_layers=2,
        num_attention_heads=2,
        max_position_embeddings=128,
        bos_token_id=None,
        eos_token_id=0,
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return LlamaForCausalLM(config)


@pytest.mark.slow
def test_grpo_learns_to_follow_the_light() -> None:
    world, model = CorridorWorld(), walker_model()
    engine, context = HuggingFaceEngine(model, [0]), ChatContext(walker_tokenizer(), "")

    def play_with(
        requests: Sequence[EpisodeRequest], seed: int, version: int, temperature: float | None
    ) -> Played:
        return play(
            requests,
            world,
            engine,
            context,
            sampling=SamplingParams(max_tokens=2),
            seed=seed,
            policy_version=version,
            turn_limit=world.turn_limit,
        )

    def success() -> float:
        requests = [EpisodeRequest(task, n) for task in world.tasks("held_out") for n in range(8)]
        trajectories = play_with(requests, 1, 0, None).trajectories
        return sum(trajectory.success for trajectory in trajectories) / len(requests)

    assert success() < 0.1
    trainer = Trainer(
        policy=Policy(model, make_optimizer=lambda m: torch.optim.AdamW(m.parameters(), lr=3e-3)),
        play=play_with,
        algorithm=METHODS["grpo"](kl_coefficient=0.0),
        training_tasks=world.tasks("train"),
        seed=0,
    )
    on_policy(trainer, updates=60, tasks=8, group_size=8, reward=OutcomeReward())
    assert success() > 0.9
