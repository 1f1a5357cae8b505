"""`--env NAME` from outside: another environment with settings of its own."""

import json
import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from commands import refused
from rewardswap.cli import main
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.webshop import WebShop
from rewardswap.models.loading import model_folder
from rewardswap.recipes import demo
from rewardswap.settings import read_run, write_run

DATA = Path(__file__).parents[2] / "shared" / "webshop"
SHOP = ["--env", "webshop", "--env.evaluation-tasks=4", "--env.turn-limit=2"]
SMALL = [*SHOP, "--env.products=60", "--budget=1", "--batch.tasks=4", "--batch.group-size=2"]


@pytest.fixture
def reader() -> str:
    """A model that has never seen a shop: a folder, so that nobody takes it for an agent of it."""
    return str(model_folder("base-agent"))


@pytest.mark.parametrize("command", [["train", "demo"], ["eval"]], ids=lambda words: words[0])
@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--env", "webshap"], "unknown environment 'webshap'; did you mean 'webshop'?"),
        (["--env"], "--env needs a name; the environments are alfworld, webshop"),
        (["--env=", "--seed=1"], "--env needs a name"),
        (["--env", "--seed=1"], "--env needs a name"),
        (["--env.products=5"], "--env.products is a setting of webshop"),
        (["--env=webshop", "--env.games=x"], "--env.games is a setting of alfworld"),
        (["--env.evaluation-games=5"], "did you mean '--env.evaluation-tasks'?"),
        (["--env=webshop", "--env.mode=rich"], "env.mode must be one of text, text_rich, short"),
        (["--env=webshop", "--env.turn-limit=0"], "env.turn_limit must be at least 1, got 0"),
        (["--env=webshop", "--env.data=d", "--env.products=5"], "env.products does nothing with"),
        (["--env=webshop", "--env.data=d", "--env.products=1000"], "--env.products does nothing"),
        (["--env=webshop", "--env.instructions=synthetic"], "--env.instructions does nothing"),
        (["--env.games=x", "--env.generated_games=4000"], "--env.generated-games does nothing in"),
        (["--env.window=2"], "--env.window does nothing in the chat prompt"),
        (["--env.prompt=verl_agent", "--env.thinking=template"], "--env.thinking does nothing in"),
        (["--env.action-format=xml"], "env.action_format must be one of text, tags, tools"),
        (["--env=webshop", "--env=alfworld", "--env.seed=1"], "--env.seed is a setting of webshop"),
    ],
)
def test_environments_that_cannot_be_had(
    command: list[str], words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    line = refused(capsys, *command, *words)
    assert said in line
    assert "Error parsing" not in line


def test_an_agent_of_another_environment_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    for words in (["eval", "--model"], ["train", "demo", "--policy.model"]):
        line = refused(capsys, *words, "base-agent", "--env=webshop")
        assert "'base-agent' is the small agent of alfworld and cannot read webshop" in line


def test_an_evaluation_trains_on_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "eval", "--env.train-split", "train")
    assert "--env.train-split does nothing in an evaluation" in line


def test_panels_that_the_split_cannot_fill(
    reader: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["eval", "--model", reader, "--env=webshop", "--env.products=60"]
    line = refused(capsys, *words, "--env.evaluation-tasks=9999")
    assert "env.evaluation_tasks is 9999, but split 'valid' has" in line
    assert "'test'" in refused(capsys, *words, "--env.split=tset")
    line = refused(capsys, *words[:4], "--env.data", str(tmp_path))
    assert f"{tmp_path}: has none of items_shuffle_1000.json" in line
    line = refused(capsys, *words, "--env.prompt=verl_agent", "--env.mode=short")
    assert "no prompt style 'verl_agent'" in line


def test_a_key_of_another_environment_names_it(capsys: pytest.CaptureFixture[str]) -> None:
    line = refused(capsys, "eval", "--env.data", "folder")
    assert "--env.data is a setting of webshop; add --env webshop" in line
    line = refused(capsys, "train", "webshop-demo", "--env.games=folder")
    assert "--env.games is a setting of alfworld; add --env alfworld" in line
    line = refused(capsys, "eval", "--env", "webshop", "--env.products", "1000001")
    assert "env.products must be at most 1000000, got 1000001" in line


def test_help_shows_the_keys_of_the_environment_in_force(
    capsys: pytest.CaptureFixture[str],
) -> None:
    for name, own, other in (("alfworld", "games", "data"), ("webshop", "data", "games")):
        with pytest.raises(SystemExit):
            main(["eval", "--env", name, "--help"])
        text = capsys.readouterr().out
        assert f"\n  --env.{own} " in text
        assert f"\n  --env.{other} " not in text


def test_a_run_in_the_shop_leaves_its_record_and_can_be_repeated(
    reader: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    words = ["--policy.model", reader, "--policy.minibatches=1", "--loop=on_policy"]
    main(["train", "demo", *SMALL, *words, "--output", str(tmp_path / "first")])
    printed = capsys.readouterr().out
    first = tmp_path / "first"
    env = read_run(first / "config.toml").env
    assert env == WebShop("valid", "train", 2, 4, "chat", products=60, mode="short")
    remarks = json.loads((first / "remarks.json").read_text())
    assert list(remarks) == ["train", "valid"]
    for said in (remarks["train"][0], remarks["valid"][0]):
        assert said.split(";")[0] in " ".join(printed.split())
    evaluation = json.loads((first / "evaluation-after.json").read_text())
    assert evaluation["panel"]["remarks"] == remarks["valid"]
    assert evaluation["per_origin"]["origin"] == "product"
    played = (first / "trajectories/after.jsonl").read_text().splitlines()
    products = {json.loads(line)["origin"] for line in played}
    assert evaluation["per_origin"]["origins"] == len(products - {""}) > 1
    summary = json.loads((first / "summary.json").read_text())
    assert summary["task_score_after"] == evaluation["task_score"]
    main(["train", str(first / "config.toml"), "--output", str(tmp_path / "second")])
    for name in ("trajectories/train.jsonl", "trajectories/after.jsonl", "remarks.json"):
        assert (first / name).read_text() == (tmp_path / "second" / name).read_text()


@pytest.mark.parametrize("prompt", ["chat", "verl_agent"])
def test_the_real_shop_is_evaluated(
    prompt: str, reader: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    if not DATA.exists():
        pytest.skip("the real products are not at ../shared/webshop")
    mode = [] if prompt == "chat" else ["--env.mode=text", "--env.prompt", prompt]
    words = ["--model", reader, "--env.data", str(DATA), *SHOP, *mode]
    main(["eval", *words, "--output", str(tmp_path / "table.json")])
    table = json.loads((tmp_path / "table.json").read_text())
    assert (table["panel"]["split"], table["panel"]["tasks"]) == ("valid", 4)
    printed = " ".join(capsys.readouterr().out.split())
    assert table["panel"]["remarks"][0] in printed
    assert "per product: every product counts the same" in printed


def test_a_table_that_cannot_be_written_is_a_line_of_text(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "table.json"
    file.symlink_to(tmp_path / "nowhere" / "table.json")
    words = ["--env.generated-games=12", "--env.evaluation-tasks=5", "--env.turn-limit=1"]
    line = refused(capsys, "eval", *words, "--output", str(file))
    assert f"{file} is no file in a folder that exists" in line


def test_a_runs_policy_is_evaluated_in_the_runs_environment(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    env = Alfworld(generated_games=40, evaluation_tasks=2, turn_limit=3)
    write_run(replace(demo(), env=env), tmp_path / "config.toml")
    shutil.copytree(model_folder("base-agent"), tmp_path / "checkpoint")
    far = tmp_path / "a-folder-whose-name-is-longer-than-a-line-of-eighty-columns" / "checkpoint"
    shutil.copytree(tmp_path, far.parent)
    for name in (tmp_path, far):
        main(["eval", "--model", str(name)])
        said = " ".join(capsys.readouterr().out.split())
        assert f"in the environment of {name}, alfworld" in said
        assert "all" in said and " 2 " in said
    main(["eval", "--model", str(tmp_path), "--env.evaluation-tasks", "3", "--env.turn-limit", "2"])
    assert "in the environment of" not in capsys.readouterr().out
