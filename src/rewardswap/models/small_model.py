"""A small language model made on the spot for any world of few words (ours).

Word by word, with random weights; it is taught to say commands, each as likely as any other, and
nothing of when to say which. Folder and classes are ordinary Hugging Face ones.
"""

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from tokenizers import Regex, Tokenizer, models, pre_tokenizers
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from rewardswap.models.loading import LanguageModel
from rewardswap.models.small_agent import ACT, END, PAD, UNKNOWN, as_transformers, llama_config

WORD = r"[.,:;!?]+(?!\S)|(?:(?![.,:;!?]+(?!\S))\S)+"
"""A word; the stops at its end are words of their own."""
MOST_WORDS = 50_000
"""Most words of a vocabulary; a world of more needs a real model."""
LESSONS = 300
"""Optimizer steps in which commands are taught."""
TOLD = 12
"""Words in front of a command in a lesson, in tokens."""


def small_model(texts: Iterable[str], commands: Sequence[str], seed: int = 0) -> LanguageModel:
    """A model of about 0.1M weights that knows the words of these texts and commands.

    It says one of the commands, each as likely, whatever it reads; `seed` decides every bit.
    Raises ValueError without a command, for one that its words do not give back as it is, and for
    more than 50,000 words.
    """
    tokenizer = word_tokenizer([*texts, *commands])
    if not commands:
        raise ValueError("a small model needs at least one command that it may say; give some")
    said = [tokenizer.encode(command, add_special_tokens=False) for command in commands]
    for command, ids in zip(commands, said, strict=True):
        if not ids or tokenizer.decode(ids) != command:
            raise ValueError(
                f"the command {command!r} is {tokenizer.decode(ids)!r} when its words are put "
                "together; have commands of words with one space between them"
            )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model: Any = LlamaForCausalLM(
            llama_config(
                tokenizer,
                hidden_size=64,
                intermediate_size=128,
                num_hidden_layers=2,
                max_position_embeddings=4096,
            )
        )
        model.generation_config.max_new_tokens = 1 + max(map(len, said))
        _teach(model, tokenizer, said)
    return LanguageModel(model.eval(), tokenizer, (int(tokenizer.eos_token_id),))


def word_tokenizer(texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer of every word in the texts, in the order of the alphabet, with a chat template.

    Raises ValueError for more than 50,000 words.
    """
    split = pre_tokenizers.Split(Regex(WORD), behavior="removed", invert=True)
    words = {word for text in texts for word, _ in split.pre_tokenize_str(text)}
    if len(words) > MOST_WORDS:
        raise ValueError(f"there are {len(words)} words, at most {MOST_WORDS} are taken")
    entries = dict.fromkeys([PAD, END, UNKNOWN, ACT, *sorted(words)])
    vocabulary = {entry: number for number, entry in enumerate(entries)}
    core = Tokenizer(models.WordLevel(vocabulary, unk_token=UNKNOWN))
    core.pre_tokenizer = split
    return as_transformers(core)


def _teach(model: Any, tokenizer: PreTrainedTokenizerFast, said: Sequence[Sequence[int]]) -> None:
    """Teach the head that behind any words and <act> stands a command, and behind that the end.

    The layers below stay as they were drawn, lest they learn not to look at what was told.
    """
    end, act = int(tokenizer.eos_token_id), tokenizer.convert_tokens_to_ids(ACT)
    width = 1 + max(map(len, said))
    answers = torch.full((len(said), width), -100)
    for number, ids in enumerate(said):
        answers[number, : len(ids) + 1] = torch.tensor([*ids, end])
    optimizer = torch.optim.AdamW(model.lm_head.parameters(), lr=1e-2, weight_decay=0.0)
    for _ in range(LESSONS):
        chosen = answers[torch.randint(len(said), (32,))]
        told = torch.randint(len(tokenizer), (32, TOLD))
        told[:, -1] = act
        read = torch.cat([told, chosen.clamp(min=0)], dim=1)[:, :-1]
        with torch.no_grad():
            hidden = model.get_decoder()(read).last_hidden_state[:, TOLD - 1 :]
        logits = model.lm_head(hidden).flatten(0, 1)
        loss = torch.nn.functional.cross_entropy(logits, chosen.flatten())
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()
        optimizer.zero_grad()
