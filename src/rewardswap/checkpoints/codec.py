"""Nested state as JSON and tensors, and back to the bit. No code of a file is ever executed.

Every container is a list, or an object of one key that names its kind; what kinds there are is
known here and not read from a file.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

import numpy as np
import torch
from torch import Tensor

from rewardswap.collection import Collected
from rewardswap.models.learner import Snapshot
from rewardswap.models.shards import is_part
from rewardswap.rewards.online import Collected as FittedOn
from rewardswap.trainer import Agent
from rewardswap.types import Group, Task, Trajectory, Turn

KINDS: Mapping[str, type[Any]] = {
    "agent": Agent,
    "collected": Collected,
    "fitted_on": FittedOn,
    "group": Group,
    "snapshot": Snapshot,
    "task": Task,
    "turn": Turn,
}
"""Values that are written field by field. A trajectory is too, once, however often it occurs."""
NAMES = {kind: name for name, kind in KINDS.items()}
ARRAYS = {"integers": np.int64, "numbers": np.float32}
"""Pools of short arrays: each is one tensor, and an array a place in it."""


@dataclass
class Encoded:
    """A state on its way to files."""

    tree: Any
    trajectories: list[Any]
    tensors: dict[str, Tensor]
    parts: dict[str, Tensor] = field(default_factory=dict)
    """Tensors that all ranks hold together; every rank has the same names for them."""


def encode(state: Any) -> Encoded:
    """The state without anything shared; raises TypeError for what no kind is known of."""
    writer = _Writer()
    tree = writer.plain(state)
    pools = {
        name: torch.from_numpy(np.concatenate([np.zeros(0, ARRAYS[name]), *pool]))
        for name, pool in writer.pools.items()
    }
    return Encoded(tree, writer.trajectories, {**writer.tensors, **pools}, writer.parts)


def decode(encoded: Encoded) -> Any:
    """What was encoded; raises ValueError where it is no state.

    Trajectories that were one are one again.
    """
    try:
        return _Reader(encoded).value(encoded.tree)
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        raise ValueError(f"no state of a run: {error!r}") from error


@dataclass
class _Writer:
    tensors: dict[str, Tensor] = field(default_factory=dict)
    parts: dict[str, Tensor] = field(default_factory=dict)
    trajectories: list[Any] = field(default_factory=list)
    pools: dict[str, list[Any]] = field(default_factory=lambda: {name: [] for name in ARRAYS})
    _places: dict[int, int] = field(default_factory=dict)
    _ends: dict[str, int] = field(default_factory=lambda: dict.fromkeys(ARRAYS, 0))
    _storages: set[int] = field(default_factory=set)

    def plain(self, value: Any) -> Any:
        if isinstance(value, np.float64):
            return float(value)
        if value is None or type(value) in (bool, int, float, str):
            return value
        if type(value) is list:
            return [self.plain(part) for part in value]
        if type(value) is tuple:
            return {"tuple": [self.plain(part) for part in value]}
        if isinstance(value, Tensor):
            if is_part(value):
                return {"part": self._part(value.detach())}
            return {"tensor": self._tensor(value)}
        if isinstance(value, np.ndarray):
            return {"array": self._array(value)}
        if isinstance(value, Trajectory):
            return {"trajectory": self._trajectory(value)}
        if type(value) in NAMES:
            return {NAMES[type(value)]: self._fields(value)}
        if isinstance(value, Mapping):
            kind = "counter" if isinstance(value, Counter) else "table"
            return {kind: [[self.plain(k), self.plain(v)] for k, v in value.items()]}
        raise TypeError(f"a {type(value).__name__} cannot be kept in a checkpoint: {value!r}")

    def _fields(self, value: Any) -> list[Any]:
        return [[part.name, self.plain(getattr(value, part.name))] for part in fields(value)]

    def _tensor(self, value: Tensor) -> str:
        name = f"{len(self.tensors)}"
        tensor = value.detach().cpu().contiguous()
        storage = tensor.untyped_storage()
        if storage.nbytes() != tensor.nbytes or self._seen(tensor):
            tensor = tensor.clone()
        self.tensors[name] = tensor
        return name

    def _part(self, value: Any) -> str:
        name = f"{len(self.parts)}"
        self.parts[name] = value.clone() if self._seen(value.to_local()) else value
        return name

    def _seen(self, tensor: Tensor) -> bool:
        """Whether its storage is another's too: a safetensors file holds no two views of one."""
        place = tensor.untyped_storage().data_ptr()
        seen = place in self._storages
        self._storages.add(place)
        return seen

    def _array(self, value: Any) -> list[Any]:
        name = next((n for n, kind in ARRAYS.items() if value.dtype == kind), None)
        if name is None or value.ndim != 1:
            raise TypeError(f"an array of {value.dtype} {value.shape} cannot be kept")
        start = self._ends[name]
        self._ends[name] += len(value)
        self.pools[name].append(value)
        return [name, start, len(value)]

    def _trajectory(self, value: Trajectory) -> int:
        if id(value) not in self._places:
            self._places[id(value)] = len(self.trajectories)
            self.trajectories.append(self._fields(value))
        return self._places[id(value)]


class _Reader:
    def __init__(self, encoded: Encoded) -> None:
        self.encoded = encoded
        self.pools = {name: encoded.tensors[name].numpy() for name in ARRAYS}
        self._read: dict[int, Trajectory] = {}

    def value(self, plain: Any) -> Any:
        if isinstance(plain, list):
            return [self.value(part) for part in plain]
        if not isinstance(plain, dict):
            return plain
        ((kind, content),) = plain.items()
        if kind == "tuple":
            return tuple(self.value(part) for part in content)
        if kind in ("table", "counter"):
            table = {self.value(key): self.value(part) for key, part in content}
            return Counter(table) if kind == "counter" else table
        if kind == "tensor":
            return self.encoded.tensors[content]
        if kind == "part":
            return self.encoded.parts[content]
        if kind == "array":
            name, start, length = content
            return self.pools[name][start : start + length].copy()
        if kind == "trajectory":
            return self._trajectory(content)
        return KINDS[kind](**self._named(content))

    def _named(self, content: Sequence[Any]) -> dict[str, Any]:
        return {name: self.value(part) for name, part in content}

    def _trajectory(self, place: int) -> Trajectory:
        if place not in self._read:
            self._read[place] = Trajectory(**self._named(self.encoded.trajectories[place]))
        return self._read[place]
