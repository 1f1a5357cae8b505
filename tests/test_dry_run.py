"""`rewardswap train --dry-run`: everything once, nothing left."""

import shutil
from pathlib import Path

import pytest
import torch

from commands import refused
from rewardswap.cli import main
from rewardswap.models.loading import load_language_model, model_folder
from rewardswap.plan.dry_run import random_weights

SMALL = [
    "--env.generated-games=12",
    "--env.evaluation-tasks=6",
    "--batch.tasks=4",
    "--batch.group-size=4",
]
DRY = ["train", "demo", "--dry-run", *SMALL, "--swap.alpha=0.25"]
ALONE = ["train", "demo", "--dry-run", *SMALL, "--loop=on_policy"]


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to run in, in which nothing may be left."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def agent(tmp_path: Path) -> Path:
    """The base agent without its weights, to be spoilt."""
    folder = tmp_path / "agent"
    shutil.copytree(model_folder("base-agent"), folder)
    (folder / "model.safetensors").unlink()
    return folder


def row(printed: str, name: str) -> list[str]:
    """Cells of a row of the table."""
    line = next(line for line in printed.splitlines() if line.strip("│ ").startswith(name))
    return [cell.strip() for cell in line.strip("│").split("│")][1:]


def test_every_step_of_a_loop_is_done_once(
    capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    main(DRY)
    printed = capsys.readouterr().out
    assert "957,824 random weights in 4 layers" in printed
    assert "explore ┃ harvest ┃ learn" in " ".join(printed.split())
    assert row(printed, "turns") == ["12", "12", "12"]  # 3 tasks of 4, one turn each
    assert row(printed, "invalid actions") == ["0%", "0%", "0%"]
    assert row(printed, "rows ") == ["12", "-", "16"]
    assert row(printed, "rows without gradient") == ["0", "-", "0"]
    assert all(float(norm) > 0 for norm in row(printed, "gradient norm") if norm != "-")
    assert "a process reward model was fitted" in printed
    assert "peak memory" in printed
    assert list(elsewhere.iterdir()) == []


def test_the_file_of_weights_is_not_read(agent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main([*DRY, "--policy.model", str(agent), "--dry-run-layers", "2"])
    printed = " ".join(capsys.readouterr().out.split())
    assert "random weights in 2 layers (--dry-run-layers: fewer than the model has)" in printed


def test_random_weights_have_the_shape_and_the_seed() -> None:
    folder = model_folder("base-agent")
    one, again = (random_weights(folder, layers=None, seed=3).state_dict() for _ in range(2))
    real = load_language_model("base-agent").model.state_dict()
    assert {name: value.shape for name, value in one.items()} == {
        name: value.shape for name, value in real.items()
    }
    assert all(torch.equal(one[name], again[name]) for name in one)
    assert not any(torch.equal(one[name], real[name]) for name in one if "proj" in name)


def test_a_critic_learns_too_though_it_warms_up_first(capsys: pytest.CaptureFixture[str]) -> None:
    main([*ALONE, "--method", "ppo", "--method.critic-warmup", "1"])
    printed = capsys.readouterr().out
    assert [norm == "-" for norm in row(printed, "gradient norm")] == [True, False]
    assert all(float(norm) > 0 for norm in row(printed, "critic's gradient norm"))


@pytest.mark.parametrize(
    "words",
    [
        ["--env", "webshop", "--env.products", "300"],
        ["--method", "dapo"],
        ["--swap.explore-steps", "0", "--swap.harvest-temperatures", "0.7", "1.3"],
        ["--policy.lora-rank", "2"],
        ["--policy.precision", "bfloat16"],
        ["--rollout.engine", "server", "--rollout.slots", "3"],  # none is asked
    ],
)
def test_other_runs_go_through(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main([word for word in DRY if "games" not in word or "webshop" not in words] + words)
    assert "learn" in capsys.readouterr().out


def test_a_wrong_template_is_caught(agent: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (agent / "chat_template.jinja").write_text("{{ messages[-1].content }}")
    line = refused(capsys, *DRY, "--policy.model", str(agent))
    assert "the chat template" in line


@pytest.mark.parametrize(
    "words", [["--env.action-format", "tools"], ["--env.prompt=verl_agent", "--env.wording=full"]]
)
def test_a_form_that_the_tokenizer_cannot_say_is_caught(
    words: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(capsys, *DRY, *words)
    assert "no well-formed action is found in" in line


def test_a_world_without_tasks_is_caught(
    capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    games = elsewhere / "games"
    (games / "train").mkdir(parents=True)
    (games / "valid_seen").mkdir()
    line = refused(capsys, "train", "demo", "--dry-run", "--env.games", str(games))
    assert str(games) in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--output", "x"], "--output does nothing in a dry run"),
        (["--dry-run-layers", "9"], "dry_run_layers is 9, the model has 4"),
        (["--dry-run-layers", "0"], "dry_run_layers must be at least 1, got 0"),
        (["--method", "ppo", "--reward.dense-credit", "reward_to_go"], "does nothing in PPO"),
        (["--method", "max_rl", "--reward.dense-credit", "sum"], "returns below 0"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], elsewhere: Path
) -> None:
    assert said in refused(capsys, *DRY, *words)
    assert list(elsewhere.iterdir()) == []


def test_layers_belong_to_a_dry_run(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "train", "demo", "--dry-run-layers", "2")
    assert "dry_run_layers does nothing without dry_run" in line
