"""Hidden states on disk, by the hash of everything that decides them."""

import hashlib
from collections.abc import Callable
from pathlib import Path

import torch
from jaxtyping import Float
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from rewardswap.whole import file_whole, naming

VALUES = "values"


class FeatureCache:
    """A folder of features, one file per forward pass of a backbone; nothing is ever evicted.

    A pass, not a trajectory, is what is kept: what a model computes for a row depends on its
    batch in the last bits, so only then are numbers the same to the bit with and without a cache.
    """

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.hits = 0
        """Forward passes that were read from disk."""
        self.misses = 0
        """Forward passes that were computed, and written."""

    def read_or_compute(
        self, key: str, compute: Callable[[], Float[Tensor, "S F"]]
    ) -> Float[Tensor, "S F"]:
        """What is stored under `key`, a hexadecimal sha256, or else what `compute` gives, stored.

        Raises ValueError naming the file when it is damaged, and UnwrittenError.
        """
        path = self.folder / key[:2] / f"{key}.safetensors"
        if path.is_file():
            self.hits += 1
            return _read(path)
        self.misses += 1
        values = compute().contiguous()
        with naming(path):
            path.parent.mkdir(parents=True, exist_ok=True)
        with file_whole(path) as beside:
            save_file({VALUES: values}, beside, metadata={"sha256": _digest(values)})
        return values


def _read(path: Path) -> Tensor:
    try:
        with safe_open(path, framework="pt") as file:
            values: Tensor = file.get_tensor(VALUES)
            expected = (file.metadata() or {}).get("sha256")
    except SafetensorError as error:
        raise _damaged(path, str(error)) from error
    if _digest(values) != expected:
        raise _damaged(path, "its numbers are not those that were written")
    return values


def _damaged(path: Path, reason: str) -> ValueError:
    return ValueError(f"cached features {path} are damaged: {reason}; delete the file")


def _digest(values: Tensor) -> str:
    return hashlib.sha256(values.view(-1).view(torch.uint8).numpy().tobytes()).hexdigest()
