"""Whole runs on two nodes: the numbers of one process, and what becomes of lost ranks and nodes."""

import json
import subprocess
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

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
RANK = "ray::RayTrainWorker"


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
    words = on_ray(nodes, *RUN, "--ray-ranks", "2", "--rollout.workers", "1")
    said = ended(begun(*words, "--output", str(folder)))
    assert "held-out tasks" in said
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


def disturbed(
    nodes: "TwoNodes", folder: Path, checkpoint: int, what: Callable[[], Any]
) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """The record of a run that something happens to behind a checkpoint; where it went on."""
    words = on_ray(nodes, *RUN, "--ray-ranks", "2", "--rollout.workers", "1")
    process = begun(*words, "--output", str(folder))
    when(folder, checkpoint, process)
    what()
    ended(process)
    resumes = folder / "resumes.jsonl"
    lines = resumes.read_text().splitlines() if resumes.exists() else []
    return record(folder), [json.loads(line) for line in lines]


def without_troubles(found: dict[str, Any]) -> dict[str, Any]:
    """The record without the counters of workers that were started again."""
    troubles = {"rollout/worker_restarts", "rollout/replayed_steps"}
    kept = [{k: v for k, v in row.items() if k not in troubles} for row in found["metrics.jsonl"]]
    return {**found, "metrics.jsonl": kept}


@pytest.mark.parametrize("rank", [0, 1])
def test_a_killed_rank_is_begun_again_and_ends_in_the_same_bits(
    nodes: "TwoNodes", undisturbed: Path, tmp_path: Path, rank: int
) -> None:
    def kill() -> None:
        time.sleep(0.5)  # into the work behind the checkpoint
        nodes.processes(RANK)[rank].kill()

    found, resumes = disturbed(nodes, tmp_path / "run", 3, kill)
    assert [line["checkpoint"] >= 3 for line in resumes] == [True]
    assert found == record(undisturbed)


def test_a_lost_node_with_a_rank_on_it(
    nodes: "TwoNodes", undisturbed: Path, tmp_path: Path
) -> None:
    """All begins again where there is room; both nodes have room for everything."""

    def lose() -> None:
        nodes.lose_second()
        nodes.second_again()

    found, _ = disturbed(nodes, tmp_path / "run", 2, lose)
    assert without_troubles(found) == without_troubles(record(undisturbed))


def test_more_losses_than_allowed_stop_the_run_and_it_goes_on_by_hand(
    nodes: "TwoNodes", undisturbed: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    words = on_ray(nodes, *RUN, "--ray-ranks", "2", "--rollout.workers", "1", "--ray-failures", "0")
    process = begun(*words, "--output", str(folder))
    when(folder, 2, process)
    nodes.processes(RANK)[1].kill()
    said = ended(process, code=1)
    assert f"`rewardswap train --resume {folder} --cluster ray` goes on" in said
    words = on_ray(nodes, "train", "--resume", str(folder), "--ray-ranks", "2")
    ended(begun(*words))
    assert record(folder) == record(undisturbed)
    assert "has ended" in ended(begun(*words), code=2)


def test_what_stops_a_run_is_not_tried_again(nodes: "TwoNodes", tmp_path: Path) -> None:
    words = on_ray(nodes, *RUN, "--budget", "1", "--budget-unit", "environment_steps")
    said = ended(begun(*words, "--output", str(tmp_path / "run")), code=1)
    assert "was spent before the agent's first update" in said
    assert not (tmp_path / "run" / "resumes.jsonl").exists()
