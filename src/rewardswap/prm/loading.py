"""What lies beside a process reward model: what it was made from, which tasks fitting saw."""

from pathlib import Path
from typing import Any

from rewardswap.prm.store import task_hashes
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.whole import read_json, write_json

ORIGIN = "origin.json"
"""What the model was made from: policy, data, commit."""
TASKS = "tasks.json"
"""Hashes of the tasks that fitting saw."""


def write_seen_tasks(folder: Path, model: ProcessRewardModel) -> None:
    """Write beside a model which tasks fitting saw, as hashes; `seen_tasks` reads them."""
    parts = model.collected.parts.items()
    hashes = {
        part: task_hashes([task for task, its_part in parts if its_part == part])
        for part in ("training", "validation")
    }
    write_json(folder / TASKS, hashes)


def origin_of(folder: Path) -> dict[str, Any]:
    """What a model folder says of its making; empty where a training run wrote it."""
    return read_json(folder / ORIGIN) if (folder / ORIGIN).is_file() else {}


def seen_tasks(folder: Path) -> frozenset[str] | None:
    """Hashes of the tasks that were trained on or chose the epoch; none where it is not known."""
    if not (folder / TASKS).is_file():
        return None
    recorded = read_json(folder / TASKS)
    return frozenset([*recorded.get("training", ()), *recorded.get("validation", ())])
