"""A causal language model and its tokenizer from a folder, with the checks that training needs."""

from collections.abc import Callable
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any, Literal

import torch
from platformdirs import user_data_path
from transformers import AutoModelForCausalLM, AutoTokenizer, PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from rewardswap.models.pretrained import save_model

SMALL_AGENTS = ("base-agent", "shop-agent")
"""Names of the small models that ship with the package, for ALFWorld and for WebShop."""

FETCHED = ("smollm2-135m",)
"""Names of models that `rewardswap model fetch` makes folders of."""

DEFAULT_ACTION_TOKENS = 512
"""verl-agent's cap on one response, in tokens."""


TRUSTED: dict[str, Any] = {"local_files_only": True, "trust_remote_code": False}
"""What every reader of a model folder is told: no network, and no code of the folder is run."""

PICKLES = (".bin", ".pt", ".pth", ".ckpt", ".pkl")
"""Endings of files of weights that can run code when they are read."""


@dataclass(frozen=True)
class LanguageModel:
    """A model that can chat: weights in float32, tokenizer with a chat template, end tokens."""

    model: Any
    tokenizer: PreTrainedTokenizerBase
    end_token_ids: tuple[int, ...]

    @property
    def wording(self) -> Literal["full", "short"]:
        """`observation_wording` of config.json: the wording that the model was trained to read."""
        return (
            "short" if getattr(self.model.config, "observation_wording", "") == "short" else "full"
        )

    @property
    def remarks(self) -> tuple[str, ...]:
        """What a reader of results must know of the model, a sentence each."""
        ids = self.model.get_output_embeddings().weight.shape[0]
        mute = ids - sum(token < ids for token in set(self.tokenizer.get_vocab().values()))
        said = (
            f"{mute} of the model's {ids} tokens are none of its tokenizer's: sampled, they are "
            "trained as they are, and add no text to an action."
        )
        return (said,) if mute else ()

    @property
    def action_tokens(self) -> int:
        """`max_new_tokens` of generation_config.json, 512 where it says nothing, in tokens."""
        configured = getattr(self.model.generation_config, "max_new_tokens", None)
        return DEFAULT_ACTION_TOKENS if configured is None else int(configured)

    def save_pretrained(self, folder: Path | str) -> None:
        """Write an ordinary Hugging Face folder: weights, an adapter merged, and tokenizer."""
        save_model(self.model, folder, self.tokenizer)


def model_folder(name: str) -> Path:
    """The folder of a model with a short name (a small agent, a fetched one), or `name` itself.

    A run's folder stands for the checkpoint in it.
    """
    if name in SMALL_AGENTS:
        return Path(str(files("rewardswap") / "assets" / name))
    if name in FETCHED:
        return fetched_folder(name)
    folder, inner = Path(name), Path(name) / "checkpoint"
    is_run = (inner / "config.json").is_file() and not (folder / "config.json").is_file()
    return inner if is_run else folder


def fetched_folder(name: str) -> Path:
    """Where `rewardswap model fetch` puts a model: in the user's data folder of the platform."""
    return user_data_path("rewardswap", appauthor=False) / "models" / name


def reason_of(error: Exception) -> str:
    """Why a model folder cannot be read, in one line, with a way out that is there."""
    said = str(error).strip() or repr(error)
    if "trust_remote_code" in said:
        return (
            "it needs code of its own (`auto_map`), which is never run; give a model of a kind "
            "that transformers has itself"
        )
    return said.splitlines()[0]


def _refuse_pickle(folder: Path) -> None:
    """Raise ValueError where the weights are there as pickle only."""
    if any(folder.glob("*.safetensors")):
        return
    for path in sorted(folder.iterdir()):
        if path.suffix in PICKLES:
            raise ValueError(
                f"{path.name} is a pickle, which can run code when it is read; convert it to "
                "safetensors, by model.save_pretrained where you trust the file"
            )


def read_weights(folder: Path) -> Any:
    """The causal LM of a folder, float32; raises ValueError where its file lacks weights."""
    _refuse_pickle(folder)
    model, found = AutoModelForCausalLM.from_pretrained(
        folder, **TRUSTED, use_safetensors=True, dtype=torch.float32, output_loading_info=True
    )
    missing = sorted(found["missing_keys"])
    if missing:
        raise ValueError(
            f"weight {missing[0]!r} is missing, and {len(missing) - 1} more; is its config.json "
            "that of another model?"
        )
    return model


def load_language_model(
    name: str,
    device: str = "cpu",
    read: Callable[[Path], Any] = read_weights,
    *,
    chat_template: Path | None = None,
) -> LanguageModel:
    """Load a Hugging Face causal LM folder; nothing is downloaded and no code of it is run.

    `read` makes the model of a folder; `chat_template` is a file whose Jinja template takes the
    place of the folder's. Raises ValueError naming the folder and the way out if it is missing, is
    no model or an adapter, lacks weights, or has no tokenizer, chat template or end token, or a
    token that the model has no weights of.
    """
    folder = model_folder(name)
    if (folder / "adapter_config.json").is_file():
        raise ValueError(
            f"model folder {folder} holds an adapter; merge it into its model first (a run's "
            "checkpoint has it merged, peft does it by merge_and_unload): the reference is what "
            "training starts from"
        )
    if not (folder / "config.json").is_file():
        wrong = "has no config.json" if folder.is_dir() else "does not exist"
        way_out = (
            f"make it with `rewardswap model fetch {name}`"
            if name in FETCHED
            else "give the folder of a Hugging Face causal LM (train: --policy.model, eval: "
            f"--model, play: --by), or {' or '.join(SMALL_AGENTS)}"
        )
        raise ValueError(f"model folder {folder} {wrong}; {way_out}")
    if not any((folder / f).is_file() for f in ("tokenizer.json", "tokenizer_config.json")):
        raise ValueError(
            f"model folder {folder} has no tokenizer; save one there with "
            "tokenizer.save_pretrained(folder)"
        )
    disable_progress_bar()
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, **TRUSTED)
        tokenizer("look")  # settings of wrong types are noticed at its first use
        model: Any = read(folder)
    except Exception as error:  # files that are broken raise whatever their readers do
        raise ValueError(f"model folder {folder} cannot be loaded: {reason_of(error)}") from error
    _refuse_unknown_tokens(model, tokenizer, folder)
    if chat_template is not None:
        tokenizer.chat_template = read_template(chat_template)
    if not tokenizer.chat_template:
        raise ValueError(
            f"the tokenizer in {folder} has no chat template; give the file of one, such as "
            "that of its instruct version, by --policy.chat-template (eval: --chat-template)"
        )
    end = end_token_ids(getattr(model, "generation_config", None), tokenizer)
    try:
        model.to(torch.device(device))
    except (RuntimeError, AssertionError) as error:
        first = str(error).splitlines()[0]
        raise ValueError(f"policy.device {device!r} cannot be used: {first}") from error
    model.eval()
    return LanguageModel(model, tokenizer, end)


def _refuse_unknown_tokens(model: Any, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Raise ValueError where the tokenizer has a token that the model has no weights of."""
    rows = model.get_input_embeddings().weight.shape[0]
    name, token = max(tokenizer.get_vocab().items(), key=lambda item: item[1])
    if token >= rows:
        raise ValueError(
            f"token {token} ({name!r}) of the tokenizer in {folder} is beyond the model's {rows}; "
            "resize_token_embeddings makes room for it"
        )


def read_template(path: Path) -> str:
    """The text of a chat template; raises ValueError where there is none."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"chat_template {path} cannot be read: {error}") from error
    if not text.strip():
        raise ValueError(f"chat_template {path} is empty; give a file with a Jinja template")
    return text


def end_token_ids(generation: Any, tokenizer: PreTrainedTokenizerBase) -> tuple[int, ...]:
    """The end tokens of tokenizer and generation config, each once; ValueError for none."""
    ids = getattr(generation, "eos_token_id", None)
    listed = [] if ids is None else ids if isinstance(ids, list) else [ids]
    own = [] if tokenizer.eos_token_id is None else [tokenizer.eos_token_id]
    if not own + listed:
        raise ValueError(
            f"neither the model nor the tokenizer in {tokenizer.name_or_path} names an end token"
        )
    return tuple(dict.fromkeys([*own, *listed]))
