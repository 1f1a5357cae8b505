"""Dense rewards that fail, from outside: one line, and nothing of the run is lost."""

import json
from pathlib import Path
from typing import Any

import pytest

from commands import refused
from rewardswap.cli import main
from rewardswap.dense import DenseReward

TINY = [
    "--budget=2",
    "--env.evaluation-tasks=4",
    "--env.generated-games=40",
    "--env.turn-limit=3",
    "--batch.tasks=4",
    "--batch.group-size=4",
    "--swap.explore-steps=1",
    "--swap.learn-steps=2",
    "--swap.alpha=0.25",
]
MODULE = """
import sys
asked = 0
def fails(trajectory):
    global asked
    asked += 1
    if asked > {allowed}:
        {fault}
    return [float(len(turn.action)) for turn in trajectory.turns]
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """Writes a module of one's own, under a name that no other test imports."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))

    def write(name: str, text: str) -> None:
        (tmp_path / f"{name}.py").write_text(text)

    return write


@pytest.mark.parametrize(
    ("allowed", "fault", "evaluations"),
    [
        (2, "raise KeyError('first line\\nsecond \\x1b[31mline')", ["before"]),  # as it evaluates
        (4 + 24 + 2, "sys.exit(0)", ["before", "after"]),  # after training
    ],
)
def test_a_run_that_a_reward_stops_keeps_its_policy_and_its_evaluations(
    allowed: int,
    fault: str,
    evaluations: list[str],
    own_module: Any,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    name = f"failing_{allowed}"
    own_module(name, MODULE.format(allowed=allowed, fault=fault))
    run = tmp_path / "run"
    words = [*TINY, f"--reward.dense={name}:fails", "--output", str(run)]
    said = refused(capsys, "train", "demo", *words, code=1)
    assert "the dense reward 'fails' of task '" in said
    assert "\x1b" not in said
    assert (run / "checkpoint" / "model.safetensors").is_file()
    assert sorted(run.glob("evaluation-*.json")) == sorted(
        run / f"evaluation-{when}.json" for when in evaluations
    )
    rows = (run / "trajectories" / f"{evaluations[-1]}.jsonl").read_text().splitlines()
    assert [json.loads(row)["process_reward"] for row in rows] == [None] * 4


def test_a_loop_that_cannot_teach_an_online_reward_is_said(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refit(self: DenseReward, groups: Any) -> None:
        raise ValueError(f"all {len(groups)} groups have outcome 0")

    monkeypatch.setattr(DenseReward, "refitted", True)
    monkeypatch.setattr(DenseReward, "refit", refit)
    main(["train", "demo", *TINY, "--reward.dense=progress", "--output", str(tmp_path / "run")])
    rows = (tmp_path / "run" / "warnings.jsonl").read_text().splitlines()
    said = [row for row in map(json.loads, rows) if row["kind"] == "not_refitted"]
    assert [row["words"] for row in said] == [
        "the process reward was not refitted: all 12 groups have outcome 0"
    ]
    assert said[0]["update"] == 2
    summary = json.loads((tmp_path / "run" / "summary.json").read_text())
    assert summary["warnings"]["not_refitted"] == 1


@pytest.mark.parametrize(
    ("text", "dense", "said"),
    [
        ("x = 1 / 0", "{}:f", "ZeroDivisionError"),
        ("import sys; sys.exit(3)", "{}:f", "SystemExit"),
        ("def f(:", "{}:f", "SyntaxError"),
        ("", ".{}:f", "TypeError"),
    ],
)
def test_modules_that_cannot_be_imported(
    text: str, dense: str, said: str, own_module: Any, capsys: pytest.CaptureFixture[str]
) -> None:
    name = f"broken_{said.lower()}"
    own_module(name, text)
    line = refused(capsys, "train", "demo", *TINY, "--reward.dense", dense.format(name))
    assert "cannot be imported: " + said in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--seed", str(2**63)], "seed must be below 2^63"),
        (["--reward.dense=any:outcome"], "would have the name of the outcome reward"),
        (["--reward.planted-phrase="], "plants nothing"),
        (["--reward.planted-phrase=take", "--reward.planted-bonus=0"], "plants nothing"),
        (
            ["--swap.harvest-temperatures", "0.5", "0.7", "1.0", "1.3"],
            "a harvest of 3 tasks cannot be played at 4 temperatures",
        ),
        (["--swap.harvest-temperatures", "0.0001", "1.0"], "must be at least 0.001, got 0.0001"),
        (["--swap.replay-ages=true", "--swap.staleness.tau=-1"], "loops and finite, got -1.0"),
    ],
)
def test_rewards_and_harvests_that_cannot_be(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    line = refused(capsys, "train", "demo", *TINY, "--output", str(tmp_path / "run"), *words)
    assert said in line
    assert not (tmp_path / "run").exists()
