"""Whole runs on two nodes: the numbers of one process, and what becomes of lost ranks and nodes."""

import json
import signal
import subprocess
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
import torch
from ray_runs import begun, ended, on_ray, rows
from safetensors.torch import load_file

from killed import record

pytest.importorskip("ray", reason="ray is not installed; run `make test-ray`")

if TYPE_CHECKING:
    from .conftest import TwoNodes

RUN = [
    *("train", "demo", "--env.generated-games", "40", "--env.evaluation-tasks", "6"),
    *("--batch.tasks", "4", "--batch.group-size", "4", "--swap.alpha", "0.25", "--budget", "3"),
    *("--reward.trajectories", "32", "--reward.model.epochs", "2", "--checkpoint.every", "1"),
    *("--policy.learning-rate", "1e-5"),
]


def when(folder: Path, checkpoint: int, process: "subprocess.Popen[str]") -> None:
    """Wait for a checkpoint."""
    while not (folder / "checkpoints" / f"{checkpoint:08}" / "manifest.json").exists():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.05)


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The run of one process, its environments in it."""
    folder = tmp_path_factory.mktemp("alone") / "run"
    ended(begun(*RUN, "--output", str(folder)))
    return folder


@pytest.fixture(scope="module")
def undisturbed(nodes: "TwoNodes", tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two ranks, an environment worker each."""
    folder = tmp_path_factory.mktemp("undisturbed") / "run"
    assert "held-out tasks" in ended(begun_on_two(nodes, folder))
    return folder


def test_two_ranks_under_ray_are_one_process(alone: Path, undisturbed: Path) -> None:
    for row, other in zip(rows(undisturbed), rows(alone), strict=True):
        assert row.keys() == other.keys()
        for name in row.keys() - {"phase"}:
            if not name.endswith("seconds"):
                assert row[name] == pytest.approx(other[name], abs=1e-6, rel=1e-5), name
    name = "checkpoint/model.safetensors"
    one, two = load_file(undisturbed / name), load_file(alone / name)
    assert one.keys() == two.keys()
    for weight, value in one.items():
        torch.testing.assert_close(value, two[weight], atol=1e-6, rtol=0)
    assert "train demo" in json.loads((undisturbed / "environment.json").read_text())["command"]


def begun_on_two(nodes: "TwoNodes", folder: Path, *words: str) -> "subprocess.Popen[str]":
    more = ("--ray-ranks", "2", "--rollout.workers", "1", "--output", str(folder))
    return begun(*on_ray(nodes, *RUN, *more, *words))


def assert_same_record(folder: Path, other: Path) -> None:
    """To the bit: parameters, metrics, trajectories, evaluations, counts; and nothing twice."""
    assert record(folder) == record(other)
    updates = [(row["update"], row["phase"]) for row in rows(folder)]
    assert updates == [(row["update"], row["phase"]) for row in rows(other)]
    played = (folder / "trajectories" / "train.jsonl").read_text().splitlines()
    assert len(played) == len(set(played)) > 0


def test_killed_ranks_are_begun_again_and_end_in_the_same_bits(
    nodes: "TwoNodes", undisturbed: Path, tmp_path: Path
) -> None:
    """First rank 1, then rank 0, which writes the record and the checkpoints."""
    folder = tmp_path / "run"
    process = begun_on_two(nodes, folder)
    for checkpoint, rank in ((2, 1), (4, 0)):
        when(folder, checkpoint, process)
        time.sleep(0.3)  # into the work behind it
        nodes.rank(folder, rank).kill()
    ended(process)
    lines = (folder / "resumes.jsonl").read_text().splitlines()
    first, second = (json.loads(line)["checkpoint"] for line in lines)
    assert 2 <= first <= second >= 4
    assert_same_record(folder, undisturbed)


def test_a_node_is_lost_once_too_often_and_the_run_goes_on_by_hand(
    nodes: "TwoNodes", undisturbed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    process = begun_on_two(nodes, folder, "--ray-failures", "0")
    when(folder, 2, process)
    nodes.lose_second()
    said = ended(process, code=1)
    assert f"`rewardswap train --resume {folder} --cluster ray` goes on" in said
    words = on_ray(nodes, "train", "--resume", str(folder), "--ray-ranks", "2")
    ended(begun(*words))
    assert_same_record(folder, undisturbed)
    assert "has ended" in ended(begun(*words), code=2)


def test_what_stops_a_run_is_not_tried_again(nodes: "TwoNodes", tmp_path: Path) -> None:
    words = on_ray(nodes, *RUN, "--budget", "1", "--budget-unit", "environment_steps")
    said = ended(begun(*words, "--output", str(tmp_path / "run")), code=1)
    assert "was spent before the agent's first update" in said
    assert not (tmp_path / "run" / "resumes.jsonl").exists()


def test_ctrl_c_ends_a_run_that_waits_for_nodes(nodes: "TwoNodes", tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = on_ray(nodes, *RUN, "--ray-ranks", "9", "--output", str(folder))
    process = begun(*words)
    assert process.stdout is not None
    line = process.stdout.readline()
    assert "the run takes 9 CPUs, of 7 there; it waits until more nodes come" in line
    process.send_signal(signal.SIGINT)
    said = ended(process, code=130)
    assert f"stopped by hand; the record so far is in {folder}" in said
