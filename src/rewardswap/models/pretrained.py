"""Models on disk: folders that plain transformers loads, and a critic's weights (ours)."""

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor, nn
from transformers import PreTrainedTokenizerBase
from transformers.utils.logging import disable_progress_bar

from rewardswap.models.adapter import merged_state
from rewardswap.whole import write_json, written_whole

FORMAT = 1
WEIGHTS = "critic.safetensors"
SETTINGS = "critic.json"


def save_model(
    model: Any,
    folder: Path | str,
    tokenizer: PreTrainedTokenizerBase | None = None,
    *,
    weights: Mapping[str, Tensor] | None = None,
) -> None:
    """Write config and weights, and a tokenizer beside them; other files that lie there stay.

    The weights are the model's, an adapter merged and rounded once, where none are given. Raises
    UnwrittenError; what was there stays then.
    """
    disable_progress_bar()
    state = merged_state(model) if weights is None else dict(weights)
    with written_whole(Path(folder), over="config.json") as beside:
        model.save_pretrained(beside, state_dict=state)
        if tokenizer is not None:
            tokenizer.save_pretrained(beside)


def save_values(model: nn.Module, folder: Path) -> None:
    """Write all weights of a value model, an adapter's apart, with their SHA-256 beside them.

    Raises UnwrittenError; what was there stays then.
    """
    weights = save({name: value.contiguous() for name, value in model.state_dict().items()})
    settings = {"format": FORMAT, "weights_sha256": hashlib.sha256(weights).hexdigest()}
    with written_whole(folder, over=SETTINGS) as beside:
        (beside / WEIGHTS).write_bytes(weights)
        write_json(beside / SETTINGS, settings)


def load_values(model: nn.Module, folder: Path) -> None:
    """Read into a value model what `save_values` wrote of one of the same make.

    Raises ValueError naming the file that is missing, damaged, or of another make or format.
    """
    path = folder / WEIGHTS
    try:
        settings = json.loads((folder / SETTINGS).read_bytes())
        written = path.read_bytes()
        if settings["format"] != FORMAT:
            raise ValueError(
                f"{folder / SETTINGS} is of format {settings['format']}, this version reads "
                f"{FORMAT}; save it anew"
            )
        if hashlib.sha256(written).hexdigest() != settings["weights_sha256"]:
            raise ValueError(f"{path} is damaged, or not of the {SETTINGS} beside it")
        model.load_state_dict(load(written))
    except OSError as error:
        raise ValueError(
            f"{error.filename} cannot be read: {error.strerror}; give the folder that "
            "`Critic.save_pretrained` wrote"
        ) from error
    except (json.JSONDecodeError, UnicodeDecodeError, KeyError, TypeError) as error:
        raise ValueError(f"{folder / SETTINGS} is damaged: {error}; save it anew") from error
    except (RuntimeError, SafetensorError) as error:
        raise ValueError(
            f"{path} does not fit this language model: {str(error).splitlines()[0]}; give one of "
            "the same make, with an adapter where that had one"
        ) from error
