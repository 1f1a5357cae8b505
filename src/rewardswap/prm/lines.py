"""A trajectory as a line of JSON that gives an equal trajectory back."""

import hashlib
import json
from collections.abc import Mapping
from dataclasses import asdict, fields
from typing import Any

import numpy as np

from rewardswap.types import Task, Trajectory, Turn


def line_of(trajectory: Trajectory, share: int) -> str:
    """Every field of a trajectory, the number of its share, and a checksum, as one line.

    Numbers are written with all their digits, so float32 log-probs come back to the bit. Raises
    ValueError naming the task where a number is not finite.
    """
    record: dict[str, Any] = {"share": share, "trajectory": _plain(asdict(trajectory))}
    try:
        return json.dumps({"check": _check(record), **record}, separators=(",", ":"))
    except ValueError as error:
        raise ValueError(
            f"task {trajectory.task.id!r}, episode {trajectory.index} cannot be kept: {error}"
        ) from error


def read_line(line: str) -> tuple[Trajectory, int]:
    """The trajectory and the number of its share; raises ValueError saying what is damaged."""
    try:
        record = json.loads(line)
        check = record.pop("check")
        if check != _check(record):
            raise ValueError("its checksum is another")
        return _trajectory(record["trajectory"]), int(record["share"])
    except (AttributeError, KeyError, OverflowError, RecursionError, TypeError) as error:
        raise ValueError(f"it is no trajectory ({error!r})") from error


def _check(record: Mapping[str, Any]) -> str:
    text = json.dumps(record, separators=(",", ":"), allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _plain(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return value.tolist()
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    return [_plain(part) for part in value] if isinstance(value, tuple) else value


def _trajectory(record: Mapping[str, Any]) -> Trajectory:
    named = _named(Trajectory, record)
    named["task"] = Task(**_named(Task, record["task"]))
    named["turns"] = tuple(_turn(turn) for turn in record["turns"])
    named["final_context_ids"] = np.array(record["final_context_ids"], dtype=np.int64)
    return Trajectory(**named)


def _turn(record: Mapping[str, Any]) -> Turn:
    named = _named(Turn, record)
    for name in ("context_ids", "action_ids"):
        named[name] = np.array(record[name], dtype=np.int64)
    named["logprobs"] = np.array(record["logprobs"], dtype=np.float32)
    return Turn(**named)


def _named(kind: type[Any], record: Mapping[str, Any]) -> dict[str, Any]:
    """The fields of a class, none missing and none beside them."""
    names = {field.name for field in fields(kind)}
    strange = sorted(names ^ record.keys())
    if strange:
        raise ValueError(f"a {kind.__name__.lower()} has {strange[0]!r} or lacks it")
    return {name: record[name] for name in names}
