"""The files of a process reward model: its head's weights, and what must be known to use them."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, get_args, get_type_hints

import torch
from safetensors import SafetensorError
from safetensors.torch import load, save
from torch import Tensor

from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.heads import RewardHead
from rewardswap.whole import file_whole, write_json

FORMAT = 1
WEIGHTS = "process_reward.safetensors"
SETTINGS = "process_reward.json"


@dataclass(frozen=True)
class SavedHead:
    """What a folder holds; the backbone is named by its fingerprint and not in it."""

    config: ProcessRewardConfig
    weights: Mapping[str, Tensor]
    backbone_sha256: str
    version: int
    """How many refits were accepted."""

    def head(self) -> RewardHead:
        """The head; raises ValueError where the weights are not those of its settings."""
        try:
            with torch.random.fork_rng(devices=[]):  # weights that are drawn and thrown away
                size = len(self.weights["mean"])
                head = RewardHead(size, self.config.hidden_size, self.config.head)
            head.load_state_dict(dict(self.weights))
        except (KeyError, RuntimeError) as error:
            raise ValueError(
                f"a head in {WEIGHTS} does not fit its settings in {SETTINGS}; fit anew"
            ) from error
        return head.eval().requires_grad_(False)


def write_head(folder: Path, head: SavedHead) -> None:
    """Write a head into `folder`, which is made where it is missing, each file whole or not at all.

    Raises UnwrittenError.
    """
    folder.mkdir(parents=True, exist_ok=True)
    weights = save(dict(head.weights))
    settings = {
        "format": FORMAT,
        "config": asdict(head.config),
        "backbone_sha256": head.backbone_sha256,
        "weights_sha256": hashlib.sha256(weights).hexdigest(),
        "version": head.version,
    }
    with file_whole(folder / WEIGHTS) as beside:
        beside.write_bytes(weights)
    write_json(folder / SETTINGS, settings)


def read_head(folder: Path) -> SavedHead:
    """What `write_head` wrote.

    Raises ValueError naming the file that is missing, damaged, no JSON, or of another format.
    """
    settings = _settings(folder / SETTINGS)
    path = folder / WEIGHTS
    written = _bytes(path)
    try:
        if hashlib.sha256(written).hexdigest() != settings["weights_sha256"]:
            raise ValueError(f"{path} is damaged, or not of the {SETTINGS} beside it; fit anew")
        return SavedHead(
            config=_config(settings["config"]),
            weights=load(written),
            backbone_sha256=str(settings["backbone_sha256"]),
            version=int(settings["version"]),
        )
    except (AttributeError, KeyError, OverflowError, TypeError) as error:
        raise ValueError(f"{folder / SETTINGS} is damaged: {error}; fit anew") from error
    except SafetensorError as error:
        raise ValueError(f"{path} is no file of weights: {error}; fit anew") from error


def _config(settings: Mapping[str, Any]) -> ProcessRewardConfig:
    """The settings of a head; TypeError for one of another type than it has."""
    for name, hint in get_type_hints(ProcessRewardConfig).items():
        value, known = settings.get(name), get_args(hint)
        kinds = (int, float) if hint is float else (hint,)
        if name in settings and not (value in known if known else type(value) in kinds):
            raise TypeError(f"{name} is {value!r}")
    return ProcessRewardConfig(**settings)


def _settings(path: Path) -> dict[str, Any]:
    try:
        settings = json.loads(_bytes(path))
    except (json.JSONDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not JSON: {error}; fit anew") from error
    found = settings.get("format") if isinstance(settings, dict) else None
    if not isinstance(settings, dict) or found != FORMAT:
        raise ValueError(
            f"{path} is of format {found}, this version reads {FORMAT}: it was written by another "
            "version; fit anew"
        )
    return settings


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ValueError(
            f"{path} cannot be read: {error.strerror}; give the folder that `save_pretrained` wrote"
        ) from error
