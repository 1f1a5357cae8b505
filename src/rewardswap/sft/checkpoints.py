"""Checkpoints of the supervised stage: tensors as safetensors, the rest as JSON, no pickle."""

import json
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

if TYPE_CHECKING:
    from rewardswap.sft.training import Training


def save_checkpoint(folder: Path, training: "Training", settings: dict[str, object]) -> None:
    """Write the whole state beside `folder`, then rename it into place."""
    tensors = {f"model/{k}": v for k, v in training.model.state_dict().items()}
    for number, optimizer in enumerate(training.optimizers):
        for parameter, state in optimizer.state_dict()["state"].items():
            tensors |= {
                f"optimizer/{number}/{parameter}/{name}": torch.as_tensor(value)
                for name, value in state.items()
            }
    record = {
        "settings": settings,
        "step": training.step,
        "tokens": training.tokens,
        "success": training.success,
    }
    beside = _empty_beside(folder)
    save_file({k: v.contiguous() for k, v in tensors.items()}, beside / "state.safetensors")
    (beside / "state.json").write_text(json.dumps(record, indent=1))
    _rename(beside, folder)


def load_checkpoint(folder: Path, training: "Training", settings: dict[str, object]) -> None:
    """Put a checkpoint's state into `training`; raises ValueError if its settings differ."""
    record = json.loads((folder / "state.json").read_text())
    differing = [k for k in settings if record["settings"].get(k) != settings[k]]
    if differing:
        name = differing[0]
        raise ValueError(
            f"the checkpoint {folder} was made with {name} = {record['settings'].get(name)!r}, "
            f"now it is {settings[name]!r}; remove the folder or restore the setting"
        )
    tensors = load_file(folder / "state.safetensors")
    training.model.load_state_dict(_part(tensors, "model/"))
    for number, optimizer in enumerate(training.optimizers):
        states: dict[int, dict[str, Tensor]] = {}
        for key, value in _part(tensors, f"optimizer/{number}/").items():
            parameter, name = key.split("/")
            states.setdefault(int(parameter), {})[name] = value
        whole: dict[str, Any] = optimizer.state_dict()
        optimizer.load_state_dict({**whole, "state": states})
    training.step = record["step"]
    training.tokens = record["tokens"]
    training.success = record["success"]


def save_folder(folder: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write an ordinary Hugging Face folder; other files that lie there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = _empty_beside(folder)
    model.save_pretrained(beside)
    tokenizer.save_pretrained(beside)
    for path in sorted(beside.iterdir()):
        os.replace(path, folder / path.name)
    beside.rmdir()


def _part(tensors: dict[str, Tensor], prefix: str) -> dict[str, Tensor]:
    return {k.removeprefix(prefix): v for k, v in tensors.items() if k.startswith(prefix)}


def _empty_beside(folder: Path) -> Path:
    beside = folder.with_name(folder.name + ".writing")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    return beside


def _rename(beside: Path, folder: Path) -> None:
    """Swap a finished folder into place; a crash leaves the old or the new one whole."""
    old = folder.with_name(folder.name + ".old")
    shutil.rmtree(old, ignore_errors=True)
    if folder.exists():
        os.replace(folder, old)
    os.replace(beside, folder)
    shutil.rmtree(old, ignore_errors=True)
