"""Models on disk, as folders that plain transformers loads."""

from pathlib import Path
from typing import Any

from transformers.utils.logging import disable_progress_bar

from rewardswap.models.adapter import merged_state


def save_model(model: Any, folder: Path) -> None:
    """Write weights and config; an adapter is merged, rounded once.

    Raises OSError where the folder cannot be written.
    """
    disable_progress_bar()
    model.save_pretrained(folder, state_dict=merged_state(model))
