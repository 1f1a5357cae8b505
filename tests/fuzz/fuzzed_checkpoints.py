"""Checkpoints with a spoiled file; in half of them the manifest says that nothing is wrong."""

import hashlib
import json
import shutil
from pathlib import Path
from random import Random

import torch
from fuzzed_values import damaged, spoiled

from made import made_trajectory
from rewardswap.checkpoints.files import Checkpoints
from rewardswap.models.learner import Snapshot
from rewardswap.types import Group

PARTS = ("trainer", "learners", "loop")


def checkpoints(random: Random, folder: Path) -> None:
    """A run folder's checkpoints: the newest one is read, or the one before it."""
    root = folder / "checkpoints"
    shutil.rmtree(root, ignore_errors=True)
    group = Group(made_trajectory().task, (made_trajectory(), made_trajectory(index=1)))
    snapshot = Snapshot({"w": torch.ones(3)}, [], {"state": {}}, 2, 0, torch.get_rng_state())
    kept = Checkpoints(root, keep=2, parts=PARTS)
    state = {"trainer": {"loop": 1}, "learners": {"policy": snapshot}, "loop": [group]}
    kept.write(3, state)
    where = root / "00000003"
    path = where / random.choice(("manifest.json", "state.json", "tensors.safetensors"))
    if path.suffix == ".json":
        path.write_bytes(spoiled(json.loads(path.read_bytes()), random))
    else:
        path.write_bytes(damaged(path.read_bytes(), random))
    if path.name != "manifest.json" and random.random() < 0.5:
        manifest = json.loads((where / "manifest.json").read_bytes())
        manifest["sha256"][path.name] = hashlib.sha256(path.read_bytes()).hexdigest()
        (where / "manifest.json").write_text(json.dumps(manifest))
    kept.newest()
