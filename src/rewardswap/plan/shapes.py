"""Shapes of language models without their weights: a folder's config.json, or published ones."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
from torch import nn
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

from rewardswap.models.loading import DEFAULT_ACTION_TOKENS, TRUSTED, model_folder, reason_of

_QWEN = {"vocab_size": 151936, "tie_word_embeddings": True, "max_position_embeddings": 32768}
_QWEN3 = {**_QWEN, "max_position_embeddings": 40960, "head_dim": 128, "num_key_value_heads": 8}
_LLAMA = {"vocab_size": 128256, "tie_word_embeddings": True, "max_position_embeddings": 131072}


def _published(
    kind: str, hidden: int, inner: int, layers: int, heads: int, kind_wide: Mapping[str, Any]
) -> dict[str, Any]:
    return {
        "model_type": kind,
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        **kind_wide,
    }


PUBLISHED: dict[str, dict[str, Any]] = {
    "Qwen2.5-0.5B-Instruct": _published(
        "qwen2", 896, 4864, 24, 14, {**_QWEN, "num_key_value_heads": 2}
    ),
    "Qwen2.5-1.5B-Instruct": _published(
        "qwen2", 1536, 8960, 28, 12, {**_QWEN, "num_key_value_heads": 2}
    ),
    "Qwen2.5-3B-Instruct": _published(
        "qwen2", 2048, 11008, 36, 16, {**_QWEN, "num_key_value_heads": 2}
    ),
    "Qwen2.5-7B-Instruct": _published(
        "qwen2",
        3584,
        18944,
        28,
        28,
        {**_QWEN, "num_key_value_heads": 4, "vocab_size": 152064, "tie_word_embeddings": False},
    ),
    "Qwen3-0.6B": _published("qwen3", 1024, 3072, 28, 16, _QWEN3),
    "Qwen3-1.7B": _published("qwen3", 2048, 6144, 28, 16, _QWEN3),
    "Qwen3-4B": _published("qwen3", 2560, 9728, 36, 32, _QWEN3),
    "Qwen3-8B": _published("qwen3", 4096, 12288, 36, 32, {**_QWEN3, "tie_word_embeddings": False}),
    "Llama-3.2-1B-Instruct": _published(
        "llama", 2048, 8192, 16, 32, {**_LLAMA, "num_key_value_heads": 8, "head_dim": 64}
    ),
    "Llama-3.2-3B-Instruct": _published(
        "llama", 3072, 8192, 28, 24, {**_LLAMA, "num_key_value_heads": 8, "head_dim": 128}
    ),
    "SmolLM2-135M-Instruct": _published(
        "llama",
        576,
        1536,
        30,
        9,
        {
            "vocab_size": 49152,
            "tie_word_embeddings": True,
            "max_position_embeddings": 8192,
            "num_key_value_heads": 3,
        },
    ),
}
"""Shapes as their makers publish them, by the last part of the model's name."""


@dataclass(frozen=True)
class ModelShape:
    """What sizes are computed from; numbers count numbers, not bytes."""

    layers: int
    hidden: int
    heads: int
    kv_heads: int
    head_dim: int
    inner: int
    """Width of the feed-forward layer."""
    vocabulary: int
    positions: int
    """Most tokens of a context."""
    parameters: int
    """All weights, tied ones once."""
    multiplied: int
    """Weights of the trunk's linear layers: each is multiplied once for a token."""
    head_norms: bool
    """Whether queries and keys are normalised head by head."""

    @property
    def head_weights(self) -> int:
        """Weights of the head that predicts tokens."""
        return self.vocabulary * self.hidden


@dataclass(frozen=True)
class Blueprint:
    """A model's configuration, without weights."""

    name: str
    source: Literal["folder", "published shape"]
    config: Any
    generation: Any
    """The folder's generation config, or what the model's own configuration says of it."""

    @property
    def wording(self) -> Literal["full", "short"]:
        """The wording of observations that the model was trained to read."""
        return "short" if getattr(self.config, "observation_wording", "") == "short" else "full"

    @property
    def action_tokens(self) -> int:
        """Most tokens of an action that the folder asks for, 512 where it says nothing."""
        configured = self.generation.max_new_tokens
        return DEFAULT_ACTION_TOKENS if configured is None else int(configured)

    @property
    def tied(self) -> bool:
        """Whether the head's weights are the embedding's."""
        return bool(self.config.get_text_config().tie_word_embeddings)

    def build(self) -> Any:
        """The model on torch's meta device: every shape, no byte of weights."""
        with torch.device("meta"):
            return AutoModelForCausalLM.from_config(self.config, dtype=torch.float32)


def read_blueprint(name: str) -> Blueprint:
    """The configuration of a model folder, else of a published model of that name.

    Raises ValueError for a name that is neither, and for configurations that cannot be read.
    """
    folder = model_folder(name)
    if (folder / "config.json").is_file():
        try:
            config = AutoConfig.from_pretrained(folder, **TRUSTED)
            generation = GenerationConfig.from_model_config(config)
            if (folder / "generation_config.json").is_file():
                generation = GenerationConfig.from_pretrained(folder, local_files_only=True)
        except Exception as error:  # files that are broken raise whatever their readers do
            reason = reason_of(error)
            raise ValueError(f"the configuration in {folder} cannot be read: {reason}") from error
        return Blueprint(name, "folder", config, generation)
    known = {key.lower(): settings for key, settings in PUBLISHED.items()}
    settings = known.get(Path(name).name.lower())
    if settings is None:
        raise ValueError(
            f"model {name!r} is no folder with a config.json and no known shape; give "
            f"--policy.model such a folder or one of {', '.join(PUBLISHED)}"
        )
    rest = {key: value for key, value in settings.items() if key != "model_type"}
    config = AutoConfig.for_model(settings["model_type"], **rest)
    return Blueprint(name, "published shape", config, GenerationConfig.from_model_config(config))


def shape_of(model: Any) -> ModelShape:
    """The shape of a decoder, on whatever device it is; raises ValueError where parts are missing.

    Counts are those of the module itself, so that they hold for any architecture.
    """
    config: Any = model.config.get_text_config()
    trunk: nn.Module = model.get_decoder()
    for name in ("num_attention_heads", "intermediate_size", "max_position_embeddings"):
        if getattr(config, name, None) is None:
            raise ValueError(
                f"{type(model).__name__} names no {name}; sizes are known for decoders such as "
                "Llama, Qwen or Gemma"
            )
    heads = int(config.num_attention_heads)
    return ModelShape(
        layers=int(config.num_hidden_layers),
        hidden=int(config.hidden_size),
        heads=heads,
        kv_heads=int(getattr(config, "num_key_value_heads", None) or heads),
        head_dim=int(getattr(config, "head_dim", None) or config.hidden_size // heads),
        inner=int(config.intermediate_size),
        vocabulary=int(config.vocab_size),
        positions=int(config.max_position_embeddings),
        parameters=sum(weight.numel() for weight in model.parameters()),
        multiplied=sum(m.weight.numel() for m in trunk.modules() if isinstance(m, nn.Linear)),
        head_norms=any(name.endswith("q_norm.weight") for name, _ in trunk.named_parameters()),
    )
