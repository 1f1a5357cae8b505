"""A run with trackers ends in the same bits as one without, also where it is killed and goes on."""

import importlib.util
import json
from dataclasses import replace
from pathlib import Path

import pytest

from killed import Kill, elsewhere, execute, record
from rewardswap.checkpoints.config import CheckpointConfig
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.loops.settings import Batch
from rewardswap.methods.grpo import GRPO
from rewardswap.recipes import demo
from rewardswap.trackers.config import TrackConfig

SMALL = replace(
    demo(),
    loop="on_policy",
    method=GRPO(),
    env=Alfworld(turn_limit=6, generated_games=60, evaluation_tasks=4),
    batch=Batch(tasks=2, group_size=2),
    checkpoint=CheckpointConfig(every=2),
    budget=6,
)
OWN = ("tensorboard/", "trackers.json")
"""What only a tracked run leaves."""


def test_the_same_bits_and_each_row_once_after_a_kill(tmp_path: Path) -> None:
    if importlib.util.find_spec("tensorboard") is None:
        pytest.skip("tensorboard is not installed")
    plain, folder = tmp_path / "plain", tmp_path / "tracked"
    assert execute(elsewhere(SMALL, plain)) == 0
    tracked = replace(elsewhere(SMALL, folder), track=TrackConfig(to=("tensorboard",)))
    # in the middle of the trajectory of row 4, behind the checkpoint of row 2: 2 lines a row
    assert execute(tracked, kill=Kill("record", 8)) == -9
    before = json.loads((folder / "trackers.json").read_text())
    assert before["tensorboard"]["step"] == 4
    assert execute(tracked, resume=True) == 0
    left = {name: part for name, part in record(folder).items() if not name.startswith(OWN)}
    assert left == record(plain)
    after = json.loads((folder / "trackers.json").read_text())
    assert after["tensorboard"] == {"id": before["tensorboard"]["id"], "step": 6, "lost": 0}
    steps = steps_of(folder / "tensorboard")
    assert [step for step, _ in steps] == [1, 2, 3, 4, 5, 6]
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [value for _, value in steps] == pytest.approx([row["success"] for row in rows])


def steps_of(folder: Path) -> list[tuple[int, float]]:
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(folder))
    events.Reload()
    found = [(e.step, e.tensor_proto.float_val[0]) for e in events.Tensors("learn/success")]
    return sorted(found)
