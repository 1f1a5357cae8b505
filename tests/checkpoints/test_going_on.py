"""Stopping and going on from the command: Ctrl-C, steps that are not finite, refusals."""

import errno
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from commands import refused
from killed import Kill, elsewhere, execute, record
from rewardswap.checkpoints.config import CheckpointConfig
from rewardswap.checkpoints.files import Checkpoints
from rewardswap.cli import main
from rewardswap.configuration import Run
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.models.policy import Policy
from rewardswap.recipes import demo
from rewardswap.rewards.sources import RewardConfig
from rewardswap.run_folder import RunFolder
from rewardswap.settings import write_run
from rewardswap.stage import Stage
from rewardswap.trainer import Trainer

RUN = replace(
    demo(),
    env=Alfworld(turn_limit=4, generated_games=40, evaluation_tasks=4),
    batch=Batch(tasks=4, group_size=4),
    swap=RewardSwap(1, 2, 1 / 4),
    reward=RewardConfig(dense="progress"),
    checkpoint=CheckpointConfig(every=1),
    budget=4,
)


@pytest.fixture(scope="module")
def finished(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder of a run that nothing stopped."""
    folder = tmp_path_factory.mktemp("finished")
    write_run(RUN, folder / "run.toml")
    train(folder / "whole")
    return folder / "whole"


@pytest.fixture
def whole(finished: Path, tmp_path: Path) -> dict[str, Any]:
    """What a run leaves that nothing stops, with its settings in `run.toml` of the folder."""
    write_run(RUN, tmp_path / "run.toml")
    return record(finished)


def train(folder: Path) -> None:
    main(["train", str(folder.parent / "run.toml"), "--output", str(folder)])


def interrupt_at(monkeypatch: pytest.MonkeyPatch, owner: Any, name: str, count: int) -> None:
    """Press Ctrl-C as soon as something is called for the n-th time."""
    real, calls = getattr(owner, name), [0]

    def interrupting(*args: Any, **kwargs: Any) -> Any:
        calls[0] += 1
        if calls[0] == count:
            signal.raise_signal(signal.SIGINT)
        return real(*args, **kwargs)

    monkeypatch.setattr(owner, name, interrupting)


@pytest.mark.parametrize(
    ("owner", "name", "count", "checkpoint"),
    [
        (Trainer, "collect", 2, 2),  # before the first turn of a rollout
        (Policy, "step", 4, 4),  # an optimizer step: the update is finished first
        (Trainer, "restore", 1, 3),
    ],
)
def test_ctrl_c_keeps_the_run_and_says_how_it_goes_on(
    owner: Any,
    name: str,
    count: int,
    checkpoint: int,
    whole: dict[str, Any],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    folder = tmp_path / "stopped"
    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stop:
        interrupt_at(patch, owner, name, count)
        train(folder)
    assert stop.value.code == 130
    said = capsys.readouterr()
    assert f"stopped by hand; the record so far is in {folder}" in said.err
    assert f"`rewardswap train --resume {folder}` goes on" in said.err
    assert "stopping behind this turn" in said.out
    assert max(int(p.name) for p in (folder / "checkpoints").iterdir()) == checkpoint
    main(["train", "--resume", str(folder)])
    assert record(folder) == whole
    (line,) = (folder / "resumes.jsonl").read_text().splitlines()
    assert json.loads(line)["checkpoint"] == checkpoint


def test_a_second_ctrl_c_stops_at_once(
    whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stopped"
    with monkeypatch.context() as patch, pytest.raises(SystemExit) as stop:
        interrupt_at(patch, Policy, "step", 3)
        interrupt_at(patch, Policy, "step", 3)
        train(folder)
    assert stop.value.code == 130
    assert not (folder / "checkpoint").exists()
    main(["train", "--resume", str(folder)])
    assert record(folder) == whole


def test_ctrl_c_in_a_terminal(tmp_path: Path) -> None:
    folder = tmp_path / "stopped"
    write_run(replace(RUN, loop="on_policy", budget=10), tmp_path / "run.toml")
    train(tmp_path / "whole")
    words = [sys.executable, "-m", "rewardswap", "train", str(tmp_path / "run.toml")]
    process = subprocess.Popen(
        [*words, "--output", str(folder)], stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    while not list(folder.glob("checkpoints/0*")):
        assert process.poll() is None
        time.sleep(0.01)
    process.send_signal(signal.SIGINT)
    said, _ = process.communicate(timeout=60)
    assert process.returncode == 130, said
    assert b"Traceback" not in said
    main(["train", "--resume", str(folder)])
    assert record(folder) == record(tmp_path / "whole")


def test_a_clock_that_goes_backwards_changes_nothing(
    whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stopped"
    now = [2e9]

    def earlier() -> float:
        now[0] -= 3600
        return now[0]

    monkeypatch.setattr(time, "time", earlier)
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        interrupt_at(patch, Policy, "step", 3)
        train(folder)
    for path in (folder / "checkpoints").rglob("*"):
        os.utime(path, (now[0], now[0]))
        now[0] -= 3600
    main(["train", "--resume", str(folder)])
    assert record(folder) == whole


def test_a_damaged_checkpoint_is_passed_over_and_said(
    whole: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "stopped"
    assert execute(elsewhere(RUN, folder), kill=Kill("optimizer step", 4)) == -9
    newest = max((folder / "checkpoints").iterdir())
    os.truncate(newest / "tensors.safetensors", 100)
    main(["train", "--resume", str(folder)])
    said = " ".join(capsys.readouterr().out.split())
    assert "warning: passed over a checkpoint:" in said
    assert record(folder) == whole


def spoil(monkeypatch: pytest.MonkeyPatch, first: int, last: int) -> None:
    """Make the log-probs of some optimizer steps not finite."""
    real, steps = Policy.step, [0]

    def spoiled(self: Policy, batch: Any, loss: Any, **more: Any) -> Any:
        steps[0] += 1
        if not first <= steps[0] <= last:
            return real(self, batch, loss, **more)

        def not_finite(scores: Any, part: Any) -> Any:
            value, metrics = loss(scores, part)
            return value * torch.tensor(float("nan")), {**metrics, "kl_old": float("nan")}

        return real(self, batch, not_finite, **more)

    monkeypatch.setattr(Policy, "step", spoiled)


def test_steps_that_are_not_finite_are_skipped_counted_and_end_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    run = replace(RUN, loop="dense", policy=replace(RUN.policy, minibatches=2))
    run = replace(run, checkpoint=CheckpointConfig(every=5, most_skipped=3))
    write_run(run, tmp_path / "run.toml")
    folder = tmp_path / "run"
    spoil(monkeypatch, 3, 6)  # updates 2 and 3, of two steps each
    words = ["train", str(tmp_path / "run.toml"), "--output", str(folder)]
    said = refused(capsys, *words, code=1)
    assert "the loss or the gradient of 3 optimizer steps in a row was not finite" in said
    assert f"`rewardswap train --resume {folder}` goes on" in said
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert [row["skipped_steps"] for row in rows] == [0, 2, 2]
    assert "NaN" not in (folder / "metrics.jsonl").read_text()
    assert len(load_file(folder / "not-finite.safetensors")["tokens"]) > 0
    assert max(int(p.name) for p in (folder / "checkpoints").iterdir()) == 3
    assert (folder / "checkpoint" / "model.safetensors").is_file()
    spoil(monkeypatch, 1, 99)  # counted on behind the checkpoint: the next one is enough
    assert "3 optimizer steps in a row" in refused(capsys, "train", "--resume", str(folder), code=1)
    rows = (folder / "metrics.jsonl").read_text().splitlines()
    assert len(rows) == 4


def test_what_raises_when_the_agent_is_back_is_not_kept_as_the_explorer(
    whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stopped"
    run = replace(RUN, checkpoint=CheckpointConfig(every=99))
    write_run(run, tmp_path / "run.toml")

    def no_memory(*_: Any) -> float:
        raise RuntimeError("out of memory")

    with monkeypatch.context() as patch, pytest.raises(RuntimeError, match="out of memory"):
        patch.setattr(Trainer, "divergence", no_memory)
        train(folder)
    main(["train", "--resume", str(folder)])
    assert record(folder) == whole


def test_a_run_that_has_ended_or_is_none_is_refused(
    finished: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "train", "--resume", str(finished))
    assert "has ended: there is nothing to go on with" in said
    assert "is no run folder" in refused(capsys, "train", "--resume", str(tmp_path))
    assert "needs one run folder and nothing else" in refused(capsys, "train", "--resume")
    said = refused(capsys, "train", "--resume", str(finished), "--budget", "9")
    assert "a run goes on with its own settings" in said


def stopped(folder: Path) -> Run:
    run = elsewhere(RUN, folder)
    assert execute(run, kill=Kill("optimizer step", 3)) == -9
    return run


def test_what_a_run_cannot_go_on_with_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "stopped"
    stopped(folder)
    kept = tmp_path / "kept"
    shutil.copytree(folder, kept)
    config = folder / "config.toml"
    config.write_text(config.read_text().replace("generated_seed = 0", "generated_seed = 1"))
    said = refused(capsys, "train", "--resume", str(folder))
    assert "cannot go on: its panel was " in said
    config.write_text(config.read_text().replace("generated_seed = 1", "generated_seed = 0"))
    config.write_text(config.read_text().replace("budget = 4", "budget = 5"))
    said = refused(capsys, "train", "--resume", str(folder))
    assert "cannot go on: its settings was " in said
    other = RunFolder(kept, resume=True)
    said = refused(capsys, "train", "--resume", str(kept))
    assert f"{kept} is in use by the run of process {os.getpid()}" in said
    other.close()
    os.truncate(kept / "metrics.jsonl", 10)
    assert "metrics.jsonl has 10 bytes" in refused(capsys, "train", "--resume", str(kept))


def test_before_the_first_checkpoint_a_run_starts_again(
    whole: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "stopped"
    with monkeypatch.context() as patch, pytest.raises(SystemExit):
        interrupt_at(patch, Stage, "evaluate", 1)
        train(folder)
    main(["train", "--resume", str(folder)])
    assert record(folder) == whole


@pytest.mark.parametrize("part", ["loop", "trainer", "before", "learners", "dense"])
def test_a_state_that_is_none_leaves_the_folder_as_it_is(
    part: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "stopped"
    stopped(folder)
    checkpoints = Checkpoints(folder / "checkpoints", keep=1)
    found = checkpoints.newest()
    assert found is not None
    checkpoints.write(found.number + 1, {**found.state, part: {"strange": 1}})
    before = record(folder)
    said = refused(capsys, "train", "--resume", str(folder), code=1)
    assert f"checkpoint {found.number + 1} does not fit this run" in said
    assert record(folder) == before


def test_what_was_killed_as_it_began_can_be_begun(tmp_path: Path) -> None:
    RunFolder(tmp_path / "run").close()
    write_run(RUN, tmp_path / "run.toml")
    train(tmp_path / "run")
    assert (tmp_path / "run" / "report.html").is_file()


def test_without_checkpoints_none_is_written_and_that_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write_run(replace(RUN, checkpoint=CheckpointConfig(every=0)), tmp_path / "run.toml")
    folder = tmp_path / "run"
    with pytest.MonkeyPatch.context() as patch, pytest.raises(SystemExit):
        interrupt_at(patch, Policy, "step", 3)
        train(folder)
    said = capsys.readouterr().err
    assert (
        f"`rewardswap train --resume {folder}` begins it again: no checkpoint was kept yet" in said
    )
    assert not (folder / "checkpoints").exists()


def test_a_full_disk_stops_the_run_and_damages_nothing(
    whole: dict[str, Any], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """No file may grow beyond a megabyte, which the weights would: the system refuses, not we."""
    folder = tmp_path / "stopped"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (2**20, limits[1]))
    try:
        words = ["train", str(tmp_path / "run.toml"), "--output", str(folder)]
        said = refused(capsys, *words, code=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert "a checkpoint cannot be written" in said
    assert "File too large" in said
    assert f"the policy was not kept: {folder / 'checkpoint'} cannot be written" in said
    assert not (folder / "checkpoint").exists(), "no configuration without weights"
    assert list((folder / "checkpoints").iterdir()) == []
    assert (folder / "evaluation-before.json").is_file()
    main(["train", "--resume", str(folder)])
    assert record(folder) == whole


@pytest.mark.parametrize("name", ["write", "write_evaluation", "write_environment"])
def test_a_file_that_cannot_be_written_stops_the_run(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "somewhere")

    write_run(RUN, tmp_path / "run.toml")
    monkeypatch.setattr(RunFolder, name, full)
    words = ["train", str(tmp_path / "run.toml"), "--output", str(tmp_path / "run")]
    said = refused(capsys, *words, code=1)
    assert said.startswith("rewardswap: somewhere cannot be written: No space left on device")
