"""Made model folders, and trainers whose agent walks the corridor by the real engine."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from made import small_llama
from rewardswap.envs.corridor import CorridorWorld
from rewardswap.models.loading import LanguageModel
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.environments import Environments
from rewardswap.rollout.episodes import EpisodeRequest, Played, play
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.trainer import Trainer

WORLD = CorridorWorld()
WORDS = ["<end>", "<stop>", "<user>", "<agent>", "<unk>", "east", "west", "here", "room", "light"]
WORDS += list("123456")
TEMPLATE = (
    "{% for m in messages %}{% if m.role == 'user' %}<user> {{ m.content }} "
    "{% else %}<agent> {{ m.content }} <end> {% endif %}{% endfor %}"
    "{% if add_generation_prompt %}<agent> {% endif %}"
)


def save_walker(
    folder: Path, *, ends: Any = 0, template: str | None = TEMPLATE, **config: Any
) -> Path:
    """A model folder of random weights whose tokenizer has the corridor's 16 words and no pad."""
    inner = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>"))
    inner.pre_tokenizer = WhitespaceSplit()
    tokenizer: Any = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<end>", unk_token="<unk>"
    )
    tokenizer.chat_template = template
    tokenizer.save_pretrained(folder)
    settings = {"vocab_size": len(WORDS), "initializer_range": 0.1, "eos_token_id": ends, **config}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LlamaForCausalLM(LlamaConfig(**{**small_llama().config.to_dict(), **settings}))
    model.save_pretrained(folder)
    return folder


def walking_trainer(
    language_model: LanguageModel,
    *,
    action_tokens: int = 2,
    environments: Environments | None = None,
    **settings: Any,
) -> Trainer:
    """A trainer whose agent is the model itself, served by the engine that ships."""
    engine = HuggingFaceEngine(language_model.model, language_model.end_token_ids)
    context = ChatContext(language_model.tokenizer, "", language_model.end_token_ids)

    def walked(
        requests: Sequence[EpisodeRequest], seed: int, version: int, temperature: float | None
    ) -> Played:
        return play(
            requests,
            WORLD,
            engine,
            context,
            sampling=SamplingParams(max_tokens=action_tokens),
            seed=seed,
            policy_version=version,
            turn_limit=WORLD.turn_limit,
            environments=environments,
        )

    return Trainer(play=walked, training_tasks=WORLD.tasks("train"), seed=0, **settings)
