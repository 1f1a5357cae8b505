"""Tokenizers of words and of letters, chat templates of two habits, and a world of three doors."""

from collections.abc import Mapping, Sequence
from typing import Any

from tokenizers import Tokenizer, decoders, pre_tokenizers
from tokenizers.models import BPE, WordLevel
from tokenizers.pre_tokenizers import Split
from transformers import PreTrainedTokenizerFast

from rewardswap.envs.base import Observation, PromptStyle, Step
from rewardswap.types import Task

WORDS = ["look", "open", "door", "1", "2", "3", "win", "lose", "you", "see", "</think>"]
TEMPLATE = (
    "{% for m in messages %}<{{ m.role }}>{{ m.content }}<end>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
STRIPPING = (
    "{% for m in messages %}<{{ m.role }}>"
    "{% if m.role == 'assistant' and not loop.last %}{{ m.content.split('</think>')[-1] | trim }}"
    "{% else %}{{ m.content }}{% endif %}<end>\n{% endfor %}"
    "{% if add_generation_prompt %}<assistant>{% endif %}"
)
SPECIAL = ["<end>", "<stop>", "<system>", "<user>", "<assistant>", "<unk>", "\n"]


def small_tokenizer(template: str | None = TEMPLATE) -> Any:
    vocabulary = {word: n for n, word in enumerate([*SPECIAL, *WORDS])}
    inner = Tokenizer(WordLevel(vocabulary, unk_token="<unk>"))
    inner.pre_tokenizer = Split(" ", behavior="removed")
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner,
        eos_token="<end>",
        unk_token="<unk>",
        additional_special_tokens=["<stop>", "<system>", "<user>", "<assistant>", "\n"],
    )
    tokenizer.chat_template = template
    return tokenizer


def letter_tokenizer(
    specials: Sequence[str] = ("<user>", "<assistant>"),
    template: str = TEMPLATE,
    *,
    end: str = "<end>",
    merges: Sequence[tuple[str, str]] = (),
) -> Any:
    """A token for each byte, so that every text is read and said as it is.

    `merges` adds tokens of two tokens, so that a text may be said in more ways than one.
    """
    alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    signs = [end, *specials, *alphabet, *(left + right for left, right in merges)]
    inner = Tokenizer(BPE({sign: n for n, sign in enumerate(signs)}, list(merges)))
    inner.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    inner.decoder = decoders.ByteLevel()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token=end, additional_special_tokens=list(specials)
    )
    tokenizer.chat_template = template
    return tokenizer


class Doors:
    """Three doors, one of them wins; `win` names it by task id, the others say what they are."""

    instructions = ""
    turn_limit = 4
    prompt_styles: Mapping[str, PromptStyle] = {}

    def __init__(self, trouble: dict[str, str] | None = None) -> None:
        self.trouble = trouble or {}
        self.live = 0

    def make(self) -> "DoorRoom":
        self.live += 1
        return DoorRoom(self)

    def tasks(self, split: str) -> list[Task]:
        return [Task(f"door-{n}", "doors") for n in (1, 2, 3)]

    def remarks(self, split: str) -> list[str]:
        return []


class DoorRoom:
    def __init__(self, world: Doors) -> None:
        self.world = world
        self.task = Task("", "")
        self.tried = 0

    def reset(self, task: Task) -> Observation:
        if "reset" in self.world.trouble.get(task.id, ""):
            raise RuntimeError("the room collapsed")
        self.task, self.tried = task, 0
        return self._see("you see door 1 2 3")

    def step(self, action: str) -> Step:
        if "step" in self.world.trouble.get(self.task.id, ""):
            raise RuntimeError("the door jammed")
        self.tried += 1
        won = action == f"open door {self.task.id[-1]}"
        text = "win" if won else "lose"
        valid = action.startswith("open door")
        return Step(self._see(text), valid, won, won, float(won))

    def _see(self, text: str) -> Observation:
        return Observation(text, ("open door 1",), str(self.tried), min(1.0, self.tried / 4))

    def close(self) -> None:
        self.world.live -= 1
        if "close" in self.world.trouble.get(self.task.id, ""):
            raise RuntimeError("the door fell")
