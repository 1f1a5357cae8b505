"""The small agent of the generated text world: its tokenizer and its architecture.

A word-level tokenizer in which an entity with its number is one token ("mug 1"), and a Llama of
0.9M parameters; both are ordinary Hugging Face objects.
"""

import re
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import LlamaConfig, LlamaForCausalLM, PreTrainedTokenizerFast

from rewardswap.envs.alfworld.affordances import ACCEPTS, FIXTURES, MOVABLES
from rewardswap.envs.alfworld.generator import REPEATABLE

PAD, END, UNKNOWN, ACT = "<pad>", "<end>", "<unk>", "<act>"

CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}<act>{{ message['content'] }}<end>"
    "{% else %} {{ message['content'] }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<act>{% endif %}"
)
"""An action stands between <act> and <end>; whatever stands outside was told to the agent."""

WORDS = (
    ". , : a about an and are around at away beside carrying clean cleaned close closed cold "
    "commands cool cooled done empty examine facing find from go happens heat heated help holding "
    "hot in inside inventory is it look looking middle move moved next normal nothing of off on "
    "open opened out pick picked put room see slice sliced some special take taken task the them "
    "this to took turn turned two under up use used with won you your"
)
"""Words of the commands, of the short wording and of the task sentences."""

LARGEST_NUMBER = 30
"""Numbers of official games end at 27."""


def _display(kinds: tuple[str, ...]) -> list[str]:
    return [kind.lower() for kind in kinds]


def entity_kinds() -> list[str]:
    """The kind words of all receptacles and objects, in alphabetical order."""
    movables = {kind for kinds in [*MOVABLES.values(), *ACCEPTS.values()] for kind in kinds}
    return sorted({*_display(tuple(ACCEPTS)), *_display(tuple(movables)), *_display(FIXTURES)})


def joint_numbers() -> dict[str, int]:
    """Up to which number an entity is one token: 3 of kinds that a room repeats, 1 of others."""
    movables = {kind for kinds in MOVABLES.values() for kind in kinds}
    thrice = {*_display(REPEATABLE), *_display(tuple(movables))}
    once = {*_display(tuple(ACCEPTS)), "desklamp"} - thrice
    return {kind: 3 if kind in thrice else 1 for kind in sorted(thrice | once)}


def build_tokenizer() -> PreTrainedTokenizerFast:
    """The word-level tokenizer; entities beyond the joint tokens are a word and a number."""
    joint = [f"{kind} {n}" for kind, top in joint_numbers().items() for n in range(1, top + 1)]
    numbers = [str(n) for n in range(1, LARGEST_NUMBER + 1)]
    entries = dict.fromkeys(
        [PAD, END, UNKNOWN, ACT, *WORDS.split(), *numbers, *entity_kinds(), *joint]
    )
    vocabulary = {entry: number for number, entry in enumerate(entries)}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    together = "|".join(re.escape(name) for name in joint)
    core.pre_tokenizer = pre_tokenizers.Split(
        Regex(rf"(?:{together})(?!\S)|\S+"), behavior="removed", invert=True
    )
    return as_transformers(core)


def as_transformers(core: Tokenizer) -> PreTrainedTokenizerFast:
    """A tokenizer with the special tokens and the chat template of the small agents."""
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=core,
        pad_token=PAD,
        eos_token=END,
        unk_token=UNKNOWN,
        additional_special_tokens=[ACT],
        clean_up_tokenization_spaces=False,
    )
    tokenizer.chat_template = CHAT_TEMPLATE
    return tokenizer


ACTION_TOKENS = 12
"""Most tokens of one action, in tokens; the longest command of the world has 8."""


def llama_config(tokenizer: PreTrainedTokenizerFast, **sizes: Any) -> LlamaConfig:
    """A Llama of these sizes for a tokenizer: 4 heads, head and embedding apart, float32 (ours)."""
    return LlamaConfig(
        vocab_size=len(tokenizer),
        num_attention_heads=4,
        num_key_value_heads=4,
        initializer_range=0.08,
        tie_word_embeddings=False,
        bos_token_id=None,
        eos_token_id=tokenizer.eos_token_id,
        pad_token_id=tokenizer.pad_token_id,
        dtype="float32",
        **sizes,
    )


def build_model(tokenizer: PreTrainedTokenizerFast, seed: int) -> LlamaForCausalLM:
    """A Llama of width 128, 4 layers and 4 heads in float32, initialised from `seed` alone.

    Its config says `observation_wording`: short, the wording of the world that it is trained in.
    """
    config = llama_config(
        tokenizer,
        hidden_size=128,
        intermediate_size=384,
        num_hidden_layers=4,
        max_position_embeddings=2048,  # rotary: an official game of 50 turns fits
        observation_wording="short",
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = LlamaForCausalLM(config)
    model.generation_config.max_new_tokens = ACTION_TOKENS
    return model
