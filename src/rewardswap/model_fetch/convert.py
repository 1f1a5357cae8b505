"""A GGUF file of SmolLM2 as a folder of safetensors (ours, by what transformers reads of GGUF)."""

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
from tokenizers import pre_tokenizers
from transformers import AutoModelForCausalLM, AutoTokenizer
from transformers.utils.logging import disable_progress_bar


def refuse_without_gguf() -> None:
    """Raise ValueError without the extra `gguf`: transformers reads GGUF with these packages."""
    missing = [name for name in ("gguf", "accelerate") if find_spec(name) is None]
    if missing:
        raise ValueError(
            f"reading GGUF needs {' and '.join(missing)}; pip install 'rewardswap[gguf]'"
        )


def write_model(gguf: Path, folder: Path) -> None:
    """Write model, tokenizer, chat template and generation config of a GGUF file to `folder`.

    The weights are the numbers that the quantised ones stand for, in float32, unrounded. Raises
    ValueError for a file without a chat template.
    """
    disable_progress_bar()
    place: dict[str, Any] = {
        "pretrained_model_name_or_path": gguf.parent,
        "gguf_file": gguf.name,
        "local_files_only": True,
    }
    tokenizer: Any = AutoTokenizer.from_pretrained(**place)
    if not tokenizer.chat_template:
        raise ValueError(f"{gguf.name} has no chat template")
    read: Any = AutoModelForCausalLM.from_pretrained(**place, dtype=torch.float32)
    # a model that was read from GGUF says that it is quantised, which it no longer is
    del read.config.quantization_config
    model: Any = AutoModelForCausalLM.from_config(read.config, dtype=torch.float32)
    model.load_state_dict(read.state_dict())
    model.generation_config = read.generation_config
    model.save_pretrained(folder)
    _split_digits(tokenizer)
    tokenizer.model_max_length = model.config.max_position_embeddings
    tokenizer.save_pretrained(folder)


def _split_digits(tokenizer: Any) -> None:
    """SmolLM2 splits a text before and behind every digit first; what is read of GGUF does not.

    It matters where more than one space stands before a digit.
    """
    tokenizer.backend_tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
