"""Checkpoints of the supervised stage."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from rewardswap.checkpoints.files import Checkpoints

if TYPE_CHECKING:
    from rewardswap.sft.training import Training

PARTS = ("settings", "tokens", "success", "model", "optimizers")
MOMENTS = ({"momentum_buffer"}, {"step", "exp_avg", "exp_avg_sq"})
"""What Muon and AdamW keep of a weight."""


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


def load_checkpoint(
    folder: Path, training: "Training", settings: dict[str, object]
) -> tuple[str, ...]:
    """Put a checkpoint's state into `training`, if there is one; why newer ones were passed over.

    Raises ValueError, and leaves the folder as it is, where its settings differ, where none is
    whole, and where what it holds is no state of this training.
    """
    checkpoints = Checkpoints(folder, keep=1, parts=PARTS)
    found = checkpoints.newest()
    if found is None:
        return ()
    state = found.state
    with _fitting(folder / f"{found.number:08}"):
        differing = [k for k in settings if state["settings"].get(k) != settings[k]]
    if differing:
        name = differing[0]
        raise ValueError(
            f"the checkpoint {folder} was made with {name} = {state['settings'].get(name)!r}, "
            f"now it is {settings[name]!r}; remove the folder or restore the setting"
        )
    with _fitting(folder / f"{found.number:08}"):
        _restore(training, state)
    training.step = found.number
    checkpoints.go_on_from(found.number)
    return found.passed_over


@contextmanager
def _fitting(checkpoint: Path) -> Iterator[None]:
    """Raise ValueError naming the checkpoint where it is not one of this training."""
    try:
        yield
    except (AttributeError, IndexError, KeyError, RuntimeError, TypeError, ValueError) as error:
        said = " ".join(f"{type(error).__name__}: {error}".split())[:300]
        raise ValueError(
            f"checkpoint {checkpoint} does not fit this training ({said}); remove that folder, or "
            "set --resume false to begin again"
        ) from error


def _restore(training: "Training", state: dict[str, Any]) -> None:
    tokens, success = state["tokens"], state["success"]
    if type(tokens) is not int or tokens < 0:
        raise ValueError(f"tokens is {tokens!r}")
    if type(success) not in (int, float) or not 0 <= success <= 1:
        raise ValueError(f"success is {success!r}")
    if len(state["optimizers"]) != len(training.optimizers):
        raise ValueError(f"it has {len(state['optimizers'])} optimizers")
    training.model.load_state_dict(state["model"])
    pairs = zip(training.optimizers, state["optimizers"], MOMENTS, strict=True)
    for optimizer, kept, moments in pairs:
        _refuse_other(optimizer, kept, moments)
        optimizer.load_state_dict(kept)
    training.tokens, training.success = tokens, float(success)


def _refuse_other(
    optimizer: torch.optim.Optimizer, kept: dict[str, Any], moments: set[str]
) -> None:
    """Raise ValueError where `kept` is not what this optimizer keeps behind a step."""
    fresh = optimizer.state_dict()["param_groups"]
    if [{**group, "lr": 0.0} for group in kept["param_groups"]] != [
        {**group, "lr": 0.0} for group in fresh
    ]:
        raise ValueError("an optimizer has other settings")
    weights = [weight for group in optimizer.param_groups for weight in group["params"]]
    if set(kept["state"]) != set(range(len(weights))):
        raise ValueError(f"an optimizer knows {len(kept['state'])} of {len(weights)} weights")
    for place, weight in enumerate(weights):
        found = kept["state"][place]
        if set(found) != moments:
            raise ValueError(f"an optimizer keeps {sorted(found)} of weight {place}")
        for name, value in found.items():
            due = torch.Size() if name == "step" else weight.shape
            if not isinstance(value, Tensor) or value.shape != due:
                raise ValueError(f"{name} of weight {place} is no tensor of {list(due)}")


def remove_checkpoints(folder: Path) -> None:
    """Make room for a training that begins again; what is none of ours stays."""
    Checkpoints(folder, keep=1).clear()
