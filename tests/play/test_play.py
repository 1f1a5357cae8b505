"""Playing in the terminal: what a person, the oracle and a model are shown, and how they leave."""

import io
import os
import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from rich.console import Console

from commands import refused
from rewardswap.cli import main
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.webshop import WebShop
from rewardswap.envs.base import Observation, Step
from rewardswap.envs.corridor import CorridorWorld
from rewardswap.models.loading import model_folder
from rewardswap.play.board import REFUSED, Board
from rewardswap.play.by_hand import Oracle, play_episode
from rewardswap.play.command import find_task
from rewardswap.recipes import demo
from rewardswap.rollout.episodes import EpisodeRequest
from rewardswap.settings import write_run
from rewardswap.stage import make_stage
from rewardswap.task import Task

ENV = Alfworld(evaluation_tasks=3, generated_games=1)
SMALL = ["--env.evaluation-tasks=3", "--env.generated-games=1"]


def played(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, said: str
) -> list[str]:
    """The lines that are printed to somebody who says these lines."""
    monkeypatch.setattr(sys, "stdin", io.StringIO(said))
    main(["play", *words])
    captured = capsys.readouterr()
    assert captured.err == ""
    return captured.out.splitlines()


def test_a_person_who_does_what_the_oracle_does_wins(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    world = ENV.world("full")
    task = world.tasks("held_out")[1]
    actions = world.solution(task)
    lines = played([*SMALL, "--task=2"], capsys, monkeypatch, "\n".join(actions))
    assert lines[:2] == [
        f"alfworld, held_out 2 of 3: {task.family}",
        f"task {task.id}, at most 12 turns",
    ]
    count = len(actions)
    end = f"won: outcome 1, {count} of at most 12 turns, 0 of them not valid"
    assert lines[-1] == end
    assert [line for line in lines if "> " in line] == [
        f"{turn}/12> {action}" for turn, action in enumerate(actions, 1)
    ]
    by_id = played([*SMALL, f"--task={task.id}"], capsys, monkeypatch, "\n".join(actions))
    assert by_id == lines
    by_oracle = played([*SMALL, "--task=2", "--by=oracle"], capsys, monkeypatch, "")
    hint = lines.index(next(line for line in lines if line.startswith("? lists")))
    assert by_oracle == [*lines[:hint], *lines[hint + 2 :]]


def test_what_a_person_asks_for_costs_no_turn(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    admissible = ENV.world("full").make().reset(ENV.world("full").tasks("held_out")[0]).admissible
    lines = played(SMALL, capsys, monkeypatch, "?\n\n??\nfly\n1\n??\nquit\nlook\n")
    assert lines.count("(nothing yet)") == 1
    first = lines.index(f"   1 {admissible[0]}")
    assert lines[first : first + len(admissible)] == [
        f"{n:4} {action}" for n, action in enumerate(admissible, 1)
    ]
    assert lines[lines.index("1/12> fly") + 1 :][:2] == ["Nothing happens.", REFUSED]
    assert "2/12> 1" in lines
    assert lines[lines.index("3/12> ??") :].count(f"2> {admissible[0]}") == 1  # the number's action
    assert lines[-1] == "left after 2 of at most 12 turns, not won"
    assert "3/12> look" not in lines


def test_the_end_of_the_input_leaves(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = played(SMALL, capsys, monkeypatch, "look\n")
    assert lines[-1] == "left after 1 of at most 12 turns, not won"


def test_the_turn_cap_ends_an_episode(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = played([*SMALL, "--env.turn-limit=2"], capsys, monkeypatch, "look\nfly\nlook\n")
    assert " ".join(lines[-2:]).endswith(
        "not won: outcome 0, 2 of at most 2 turns, 1 of them not valid; ended by the turn cap"
    )


def test_ctrl_c_leaves_with_the_shells_code(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(_: str) -> str:
        raise KeyboardInterrupt

    monkeypatch.setattr("builtins.input", stopped)
    with pytest.raises(SystemExit) as stop:
        main(["play", *SMALL])
    assert stop.value.code == 130
    captured = capsys.readouterr()
    assert captured.out.splitlines()[-1] == "left after 0 of at most 12 turns, not won"
    assert captured.err == "rewardswap: stopped by hand\n"


def test_a_real_pipe_of_bytes_that_are_no_text(tmp_path: Path) -> None:
    def ended(said: bytes) -> tuple[int, str, str]:
        process = subprocess.run(
            [sys.executable, "-m", "rewardswap", "play", *SMALL],
            input=said,
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env={**os.environ, "PYTHONUTF8": "0", "PYTHONIOENCODING": "utf-8"},
        )
        return process.returncode, process.stdout.decode(), process.stderr.decode()

    code, out, err = ended(b"look\n\x1b[2J\nquit\n")
    assert (code, err) == (0, "")
    assert "2/12> ␛[2J" in out
    assert "\x1b" not in out
    code, _, err = ended(b"\xff\xfe\n")
    assert code == 2
    assert err == "rewardswap: the input is no text in UTF-8; give lines of text\n"


def test_the_oracle_buys_what_is_asked_for(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    words = ["--by", "oracle", "--env", "webshop", "--env.products=60"]
    lines = played(words, capsys, monkeypatch, "")
    world = WebShop(products=60).world("full")
    count = len(world.solution(world.tasks("valid")[0]))
    end = f"won: outcome 1, score 1, {count} of at most 15 turns, 0 of them not valid"
    assert lines[-1] == end


def test_worlds_and_tasks_without_an_oracle() -> None:
    board = Board(Console(file=io.StringIO()), 5)
    with pytest.raises(ValueError, match="this environment has no oracle"):
        Oracle(CorridorWorld(), CorridorWorld().tasks("train")[0], board)


def test_a_model_is_shown_as_it_is_played(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    lines = played([*SMALL, "--by=base-agent", "--seed=5"], capsys, monkeypatch, "")
    stage = make_stage(ENV, "base-agent", device="cpu", temperature=1.0, action_tokens=None)
    request = EpisodeRequest(stage.panel.tasks[0], 0)
    (trajectory,) = stage.play([request], 5, 0, None).trajectories
    told = [
        f"{number}/12> {turn.action}   [log-prob {turn.logprobs.sum():.2f}, "
        f"{len(turn.action_ids)} tokens]"
        for number, turn in enumerate(trajectory.turns, 1)
    ]
    assert [line for line in lines if "/12> " in line] == told
    assert lines.count(REFUSED) == sum(not turn.valid for turn in trajectory.turns)
    end = " ".join(" ".join(lines).split())
    assert f"outcome {trajectory.outcome:g}, {len(told)} of at most 12 turns" in end


def test_a_runs_folder_plays_its_checkpoint_in_its_environment(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = tmp_path / "run"
    shutil.copytree(model_folder("base-agent"), run / "checkpoint")
    env = ENV.decided("short")
    write_run(replace(demo(), env=replace(env, turn_limit=2)), run / "config.toml")
    lines = played(["--by", str(run), "--temperature=0"], capsys, monkeypatch, "")
    assert lines[0].startswith("alfworld, held_out 1 of 3: ")
    assert "2 of at most 2 turns" in " ".join(lines[-2:])
    assert model_folder(str(run)) == run / "checkpoint"
    assert model_folder(str(run / "checkpoint")) == run / "checkpoint"
    (run / "config.json").touch()  # a model's folder that has one named so inside
    assert model_folder(str(run)) == run


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--by=oracle", "--seed=3"], "--seed does nothing --by oracle"),
        (["--temperature", "0.5"], "--temperature does nothing --by person"),
        (["--env.prompt=verl_agent"], "--env.prompt does nothing --by person"),
        (["--env.train-split=train"], "--env.train-split does nothing in play"),
        (["--task=0"], "task must be a number from 1 to 3 or the id of a task"),
        (["--task=4"], "got '4'"),
        (["--task=x"], "got 'x'"),
        (["--by=nowhere"], "model folder nowhere does not exist"),
        (["--by=base-agent", "--temperature=-1"], "temperature must be 0 or at least"),
        (["--env.split=nothing"], "unknown split 'nothing'"),
        (["--tusk=3"], "unknown key '--tusk'; did you mean '--task'?"),
    ],
)
def test_what_is_refused(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(""))
    assert said in refused(capsys, "play", *SMALL, *words)


def test_an_id_goes_before_a_number() -> None:
    tasks = [Task("7", "a"), Task("1", "b")]
    assert find_task(tasks, "1") is tasks[1]
    assert find_task(tasks, "2") is tasks[1]
    assert find_task(tasks, "7") is tasks[0]


class Marked:
    """An environment whose text would steer the terminal, and that may break its contract."""

    outcome = 1.0

    def reset(self, task: Task) -> Observation:
        return Observation("\x1b[31mred :smile: [bold]x[/]", ("go",), "a", 0.0)

    def step(self, action: str) -> Step:
        now = Observation("\x9b2Jgone", (), "b", 0.0)
        return Step(now, True, terminated=True, success=True, outcome=self.outcome)

    def close(self) -> None:
        pass


def test_no_text_steers_the_terminal() -> None:
    file = io.StringIO()
    board = Board(Console(file=file, force_terminal=True, width=80), 5)
    ending = play_episode(Marked(), Task("a", "b"), lambda *_: "go", board)
    assert ending is not None
    board.ended(ending)
    board.acted(0, "\x1b[1m", "note")
    lines = file.getvalue().splitlines()
    assert lines[0] == "␛[31mred :smile: [bold]x[/]"
    assert lines[1] == "\\u009b2Jgone"
    assert lines[-1] == "1/5> ␛[1m   [note]"
    assert "\x1b" not in file.getvalue() and "\x9b" not in file.getvalue()


def test_an_environment_that_breaks_its_contract_is_said() -> None:
    broken = Marked()
    broken.outcome = 2.0
    with pytest.raises(ValueError, match=r"outcome must be a number in \[0, 1\], got 2.0"):
        play_episode(broken, Task("a", "b"), lambda *_: "go", Board(Console(), 5))
