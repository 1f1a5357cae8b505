"""Checkpoints of the supervised stage, and the folder of an agent."""

import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from rewardswap.checkpoints.files import Checkpoints

if TYPE_CHECKING:
    from rewardswap.sft.training import Training

PARTS = ("settings", "tokens", "success", "model", "optimizers")


def save_checkpoint(folder: Path, training: "Training", settings: dict[str, object]) -> None:
    """Write the whole state; the checkpoint before it goes when this one is on disk.

    Raises RunStoppedError where it cannot be written.
    """
    state = {
        "settings": settings,
        "tokens": training.tokens,
        "success": training.success,
        "model": training.model.state_dict(),
        "optimizers": [optimizer.state_dict() for optimizer in training.optimizers],
    }
    Checkpoints(folder, keep=1).write(training.step, state)


def load_checkpoint(folder: Path, training: "Training", settings: dict[str, object]) -> None:
    """Put a checkpoint's state into `training`, if there is one.

    Raises ValueError where its settings differ, and where it is damaged.
    """
    checkpoints = Checkpoints(folder, keep=1, parts=PARTS)
    found = checkpoints.newest()
    if found is None:
        return
    checkpoints.go_on_from(found.number)
    state = found.state
    differing = [k for k in settings if state["settings"].get(k) != settings[k]]
    if differing:
        name = differing[0]
        raise ValueError(
            f"the checkpoint {folder} was made with {name} = {state['settings'].get(name)!r}, "
            f"now it is {settings[name]!r}; remove the folder or restore the setting"
        )
    training.model.load_state_dict(state["model"])
    for optimizer, kept in zip(training.optimizers, state["optimizers"], strict=True):
        optimizer.load_state_dict(kept)
    training.step = found.number
    training.tokens = state["tokens"]
    training.success = state["success"]


def remove_checkpoints(folder: Path) -> None:
    """Make room for a training that begins again."""
    Checkpoints(folder, keep=1).clear()


def save_folder(folder: Path, model: LlamaForCausalLM, tokenizer: PreTrainedTokenizerFast) -> None:
    """Write an ordinary Hugging Face folder; other files that lie there stay."""
    folder.mkdir(parents=True, exist_ok=True)
    beside = folder.with_name(folder.name + ".writing")
    shutil.rmtree(beside, ignore_errors=True)
    beside.mkdir(parents=True)
    model.save_pretrained(beside)
    tokenizer.save_pretrained(beside)
    for path in sorted(beside.iterdir()):
        os.replace(path, folder / path.name)
    beside.rmdir()
