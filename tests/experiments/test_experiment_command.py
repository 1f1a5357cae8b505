"""The command: what it lists and refuses, and one real run from its file to its result."""

import json
import os
import signal
import subprocess
import sys
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
from pretended import Made, two_arms
from rich.console import Console

from commands import refused
from rewardswap.cli import main
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.experiments.command import HOLDERS, stopped_by_signal
from rewardswap.experiments.experiment import Experiment, Job
from rewardswap.experiments.places import Places
from rewardswap.experiments.process import Progress, last_line, progress_of, training, undisturbed
from rewardswap.experiments.progress import Board, Row, line, spelled, table
from rewardswap.experiments.registry import EXPERIMENTS
from rewardswap.experiments.small import smoke
from rewardswap.experiments.store import Results, present_code
from rewardswap.lock import locked

MINE = """
[arms.{name}]
recipe = "demo-grpo"
budget = 4
"""


def test_experiments_are_listed(capsys: pytest.CaptureFixture[str]) -> None:
    main(["experiment"])
    text = " ".join(capsys.readouterr().out.split())
    for name, make in EXPERIMENTS.items():
        assert f"{name} (" in text
        assert make().summary.split("?")[0].lower() in text.lower()
    main(["experiment", "smoke", "--list"])
    said = capsys.readouterr().out
    assert "0 of 4 runs done, 4 left, 4 of unknown length" in said


def test_the_list_says_what_is_done(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    path = tmp_path / "two.toml"
    path.write_text(MINE.format(name="grpo") + MINE.format(name="rspo"))
    made = Made(tmp_path, two_arms())
    made.run(made.experiment.jobs([], [0]))
    main(["experiment", str(path), "--list", "--results", str(tmp_path), "--seeds", "0", "1"])
    said = capsys.readouterr().out
    rows = [[cell.strip() for cell in row.split("│")[1:-1]] for row in said.splitlines()]
    assert [row for row in rows if row] == [
        ["grpo", "-", "-", "0", "1", "10"],
        ["rspo", "-", "-", "0", "1", "10"],
    ]
    assert said.endswith("2 of 4 runs done, 2 left, 20 s of processes\n")


def test_a_list_of_nothing_says_so(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    words = ["experiment", "smoke", "--list", "--results"]
    main([*words, str(tmp_path / "[b]nowhere")])
    said = capsys.readouterr().out.replace("\n", "")
    assert said.endswith(f"; {tmp_path}/[b]nowhere/results.jsonl is not there yet")
    (tmp_path / "file").touch()
    assert "/file is a file; give the folder of" in refused(capsys, *words, str(tmp_path / "file"))


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["smok"], "did you mean 'smoke'"),
        (["smoke", "--arms", "grpa"], "unknown arm of smoke 'grpa'; did you mean 'grpo'"),
        (["smoke", "--jobs", "0"], "jobs must be at least 1, got 0"),
        (["smoke", "--hours", "0"], "hours must be above 0"),
        (["smoke", "--seeds", "1", "1"], "each once, got [1, 1]"),
        (["smoke", "--mix", "comits"], "did you mean 'commits'"),
        (["smoke", "--job", "1"], "did you mean '--jobs'"),
        (["none.toml"], "none.toml cannot be read as an experiment"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert message in refused(capsys, "experiment", *words)


def test_a_folder_in_use_is_refused(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    with locked(tmp_path, HOLDERS):
        said = refused(capsys, "experiment", "smoke", "--results", str(tmp_path))
    assert f"is in use by the experiment of process {os.getpid()}" in said


def test_a_folder_that_cannot_be_made_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    for key in ("--results", "--runs"):
        words = ["experiment", "smoke", "--results", str(tmp_path / "results"), key]
        said = refused(capsys, *words, str(tmp_path / "file"))
        assert "cannot be written: File exists" in said


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_other_signals_stop_as_a_hand_does(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(KeyboardInterrupt), stopped_by_signal():
        signal.raise_signal(number)
    assert signal.getsignal(number) == before


def test_a_real_run_goes_from_its_file_to_its_result(tmp_path: Path) -> None:
    env = Alfworld(generated_games=8, evaluation_tasks=6, turn_limit=2)
    arms = (replace(arm, run=replace(arm.run, budget=1, env=env)) for arm in smoke().arms)
    experiment = Experiment("tiny", "", tuple(arms))
    places, job = Places(tmp_path / "runs", experiment), Job(experiment.arms[1], 1)
    places.write_config(job)
    words = training(places.config(job), places.folder(job))
    assert words[:3] == [sys.executable, "-m", "rewardswap"]
    main(words[3:])
    assert places.is_finished(job)
    results = Results(tmp_path / "results.jsonl", experiment, present_code(), ("commits",))
    results.add(job, places.folder(job))
    stored = json.loads((tmp_path / "results.jsonl").read_text())
    assert (stored["arm"], stored["baseline"], stored["seed"]) == ("rspo", "grpo", 1)
    assert stored["counters"]["agent_updates"] == 1
    assert sum(map(len, stored["tasks"].values())) == stored["panel"]["tasks"] == 6
    progress = progress_of(places.folder(job), job.arm.run)
    assert progress.reached == 1
    assert progress.success is not None and 0 <= progress.success <= 1


def test_progress_is_read_from_a_file_that_grows(tmp_path: Path) -> None:
    run = smoke().arms[0].run
    assert progress_of(tmp_path, run) == Progress(0, None)
    rows = [{"phase": "learn", "update": n, "success": n / 10} for n in range(1, 8)]
    rows.insert(6, {"phase": "explore", "update": 6, "success": 1.0})
    text = "".join(json.dumps(row) + "\n" for row in rows)
    (tmp_path / "metrics.jsonl").write_text("x" * 70_000 + "\n" + text + '{"phase": "lea')
    found = progress_of(tmp_path, run)
    assert found.reached == 7
    assert found.success == pytest.approx((0.3 + 0.4 + 0.5 + 0.6 + 0.7) / 5)


def test_the_last_line_of_a_log_is_printable(tmp_path: Path) -> None:
    log = tmp_path / "log"
    log.write_bytes(b"one\n\x1b[31mtwo\xff\n \n")
    assert last_line(log) == "[31mtwo�"
    log.write_text("")
    assert last_line(log) == "nothing was printed"


def test_what_is_shown_of_a_run() -> None:
    row = Row(Job(smoke().arms[0], 1), "running", 12.4, Progress(3, 0.25))
    console = Console(width=100, record=True, file=StringIO())
    console.print(table([row], "1 left"))
    text = console.export_text()
    assert "3/4 agent updates" in text and "25.0%" in text and "1 left" in text
    assert line(row) == "running grpo seed 1: 3/4 agent updates, 12 s, success so far 25.0%"
    assert [spelled(s) for s in (119.0, 120.0, 7199.0, 7200.0)] == [
        "119 s",
        "2 min",
        "120 min",
        "2.0 h",
    ]


def test_the_table_is_shown_on_a_terminal(tmp_path: Path) -> None:
    path = tmp_path / "screen"
    with path.open("w") as file:
        board = Board(Console(file=file, force_terminal=True, width=100))
        row = Row(Job(smoke().arms[0], 0), "done", 12.0, Progress(4, None))
        board.ended(row)
        board.started(row.job)
        board.show([Row(Job(smoke().arms[1], 0), "running", 1.0, Progress(0, None))], "2 left")
        board.close()
    text = path.read_text()
    assert "done" in text and "running" in text and "started" not in text


def test_a_stop_waits_until_a_run_is_started() -> None:
    done: list[str] = []
    for number in (signal.SIGTERM, signal.SIGINT):
        with pytest.raises(KeyboardInterrupt), stopped_by_signal(), undisturbed():
            signal.raise_signal(number)
            done.append("started")
    assert done == ["started", "started"]
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.slow
def test_the_smoke_experiment_is_stopped_and_goes_on(tmp_path: Path) -> None:
    words = [sys.executable, "-m", "rewardswap", "experiment", "smoke", "--jobs", "1"]
    words += ["--results", str(tmp_path), "--mix", "commits"]
    child = subprocess.Popen(words, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert child.stdout is not None
    while not child.stdout.readline().startswith("done grpo seed 0"):
        assert child.poll() is None
    child.send_signal(signal.SIGTERM)
    _, said = child.communicate(timeout=60)
    assert (child.returncode, said.count("\n")) == (130, 1)
    assert "the same command goes on" in said
    with locked(tmp_path, HOLDERS):  # no run lives that would hold it
        pass
    subprocess.run(words, check=True, capture_output=True)
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    order = [(r["arm"], r["seed"]) for r in map(json.loads, lines)]
    assert order == [("grpo", 0), ("rspo", 0), ("grpo", 1), ("rspo", 1)]
