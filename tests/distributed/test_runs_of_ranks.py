"""Whole runs of several ranks: the numbers of one process, kills, other numbers of ranks."""

import json
import os
import signal
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest
import torch
from safetensors.torch import load_file

from launching import environment, free_port
from rewardswap.checkpoints.files import Checkpoints, Found
from rewardswap.cli import main
from rewardswap.models.loading import load_language_model
from serving import CompletionServer

RUN = [
    *("train", "demo", "--env.generated-games", "80", "--env.evaluation-tasks", "6"),
    *("--batch.tasks", "8", "--batch.group-size", "4", "--budget", "3", "--checkpoint.every", "2"),
    *("--reward.trajectories", "64", "--reward.model.epochs", "2"),
    *("--policy.learning-rate", "1e-5", "--policy.sharded", "true"),
]

pytestmark = pytest.mark.slow


def started(words: list[str], size: int) -> list[subprocess.Popen[str]]:
    port = free_port()
    command = [sys.executable, "-m", "rewardswap", *words]
    return [
        subprocess.Popen(
            command,
            env=environment(rank, size, port) if size > 1 else {**os.environ},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(size)
    ]


def ended(processes: list[subprocess.Popen[str]]) -> list[str]:
    said = [process.communicate(timeout=400)[0] for process in processes]
    for process, text in zip(processes, said, strict=True):
        assert process.returncode == 0, text
    return said


def rows(folder: Path) -> list[dict[str, float]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def assert_same_run(found: Path, expected: Path) -> None:
    for row, other in zip(rows(found), rows(expected), strict=True):
        assert row.keys() == other.keys()
        for name in row.keys() - {"phase"}:
            if not name.endswith("seconds"):
                assert row[name] == pytest.approx(other[name], abs=5e-6, rel=1e-5), name
    name = "checkpoint/model.safetensors"
    one, two = load_file(found / name), load_file(expected / name)
    assert one.keys() == two.keys()
    for weight, value in one.items():
        torch.testing.assert_close(value, two[weight], atol=1e-6, rtol=0)


def await_checkpoint(checkpoint: Path, processes: list[subprocess.Popen[str]]) -> None:
    while not (checkpoint / "manifest.json").exists():
        assert all(process.poll() is None for process in processes)
        time.sleep(0.1)


def killed_at(checkpoint: Path, processes: list[subprocess.Popen[str]]) -> Found:
    """The newest checkpoint of ranks that end once one is there."""
    await_checkpoint(checkpoint, processes)
    processes[-1].send_signal(signal.SIGKILL)
    time.sleep(0.5)
    for process in processes:  # as torchrun does where one has ended
        process.kill()
        process.communicate()
    found = Checkpoints(checkpoint.parent, keep=1).newest()
    assert found is not None
    return found


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("alone") / "run"
    ended(started([*RUN, "--output", str(folder)], 1))
    return folder


@pytest.mark.parametrize("size", [2, 3])
def test_a_run_of_ranks_is_the_run_of_one_process(size: int, alone: Path, tmp_path: Path) -> None:
    said = ended(started([*RUN, "--output", str(tmp_path / "run")], size))
    assert_same_run(tmp_path / "run", alone)
    assert "held-out tasks" in said[0]
    assert [text for text in said[1:] if "update" in text] == []  # rank 0 alone speaks


@pytest.mark.parametrize(("first", "later"), [(2, 1), (2, 2), (2, 3), (1, 2)])
def test_a_killed_run_goes_on_on_other_ranks(
    first: int, later: int, alone: Path, tmp_path: Path
) -> None:
    """Killed while the explorer is branched off: its agent's parts come back on other ranks."""
    folder = tmp_path / "run"
    processes = started([*RUN, "--output", str(folder)], first)
    found = killed_at(folder / "checkpoints" / "00000003", processes)
    parts = folder / "checkpoints" / f"{found.number:08}" / "parts"
    assert parts.is_dir() == (first > 1)
    agent = found.state["loop"]["position"]["agent"].policy.model
    main(["export", str(folder), "--output", str(tmp_path / "policy")])
    exported = load_file(tmp_path / "policy" / "model.safetensors")
    for name, value in exported.items():
        assert torch.equal(value, agent[name]), name
    ended(started(["train", "--resume", str(folder)], later))
    assert_same_run(folder, alone)


def by_torchrun(words: list[str], size: int) -> subprocess.Popen[str]:
    """As docs/scale.md starts a run: `torchrun --nproc-per-node SIZE -m rewardswap ...`."""
    torchrun = ["-m", "torch.distributed.run", "--standalone", "--nproc-per-node", str(size)]
    return subprocess.Popen(
        [sys.executable, *torchrun, "-m", "rewardswap", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def test_torchrun_ends_all_where_a_rank_is_killed_and_the_run_goes_on(
    alone: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "run"
    torchrun = by_torchrun([*RUN, "--output", str(folder)], 2)
    await_checkpoint(folder / "checkpoints" / "00000003", [torchrun])
    ranks = psutil.Process(torchrun.pid).children()
    assert len(ranks) == 2
    ranks[1].kill()
    said = torchrun.communicate(timeout=120)[0]
    assert torchrun.returncode != 0 and "SIGKILL" in said, said
    assert not any(rank.is_running() for rank in ranks)
    assert not (folder / "summary.json").exists()
    ended([by_torchrun(["train", "--resume", str(folder)], 2)])
    assert_same_run(folder, alone)


def test_ranks_in_parts_push_whole_weights_to_servers_of_their_own(tmp_path: Path) -> None:
    """What two servers sample for two ranks is what they sample for one process."""
    words = [
        *("train", "demo-grpo", "--env.generated-games", "80", "--env.evaluation-tasks", "4"),
        *("--batch.tasks", "4", "--batch.group-size", "8", "--budget", "3"),
        *("--policy.learning-rate", "1e-4", "--rollout.engine", "server"),
    ]
    with ExitStack() as closing:
        servers = []
        for _ in range(2):
            served = CompletionServer(load_language_model("base-agent").model)
            served.models = [{"id": "small", "max_model_len": 512}]
            servers.append(closing.enter_context(served))
        words += ["--rollout.url", servers[0].url, "--rollout.more-urls", servers[1].url]
        one, parts = tmp_path / "one", tmp_path / "parts"
        ended(started([*words, "--output", str(one)], 1))
        sharded = ["--policy.sharded", "true", "--output", str(parts)]
        ended(started([*words, *sharded], 2))
    assert_same_run(parts, one)
    moved = [row["engine_gap_max"] for row in rows(parts)[1:] if "engine_gap_max" in row]
    assert moved and max(moved) < 1e-4  # sampled with the weights that were trained
    assert all(server.cache_resets == 2 * (2 + 3) for server in servers)


def test_an_adapter_in_parts_is_exported_merged_and_goes_on(tmp_path: Path) -> None:
    """W + alpha / rank B A, worked out here of what is in the checkpoint."""
    folder, rank, alpha = tmp_path / "run", 4, 8.0
    words = [
        *("train", "demo-grpo", "--env.generated-games", "80", "--env.evaluation-tasks", "2"),
        *("--batch.tasks", "8", "--batch.group-size", "4", "--budget", "4"),
        *("--policy.lora-rank", str(rank), "--policy.lora-alpha", str(alpha)),
        *("--policy.learning-rate", "1e-3", "--policy.sharded", "true", "--checkpoint.every", "1"),
    ]
    found = killed_at(
        folder / "checkpoints" / "00000002", started([*words, "--output", str(folder)], 2)
    )
    trained = found.state["learners"]["policy"].model
    main(["export", str(folder), "--output", str(tmp_path / "policy")])
    exported = load_file(tmp_path / "policy" / "model.safetensors")
    start = load_language_model("base-agent").model.state_dict()
    adapted = 0
    for name, value in exported.items():
        layer = name.removesuffix(".weight")
        a, b = (trained.get(f"{layer}.lora_{end}.default.weight") for end in ("A", "B"))
        if a is None or b is None:
            assert torch.equal(value, start[name]), name
            continue
        adapted += 1
        assert a.shape[0] == rank and bool(b.any())
        torch.testing.assert_close(value, start[name] + alpha / rank * b @ a, atol=1e-6, rtol=0)
    assert 2 * adapted == len([name for name in trained if ".lora_" in name]) > 0
    ended(started(["train", "--resume", str(folder)], 1))
    assert len(rows(folder)) == 4
