"""What the doctor says of a machine where all is well, and of each thing that is wrong."""

import json
import shutil
import tomllib
from collections import namedtuple
from pathlib import Path
from typing import Any

import pytest
import torch

from rewardswap.cli import main
from rewardswap.doctor import content, machine, packages
from rewardswap.doctor.check import Check
from rewardswap.doctor.command import Examination, examine
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.models.batching import TokenScores
from rewardswap.models.loading import model_folder
from rewardswap.models.policy import Policy

ROOT = Path(__file__).parents[2]
SMALL = ["--env.generated-games=1"]


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("ALFWORLD_DATA", raising=False)


def ended(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, str]:
    """Exit code, and what is printed."""
    code = 0
    try:
        main(["doctor", *SMALL, *words])
    except SystemExit as stop:
        code = int(stop.code or 0)
    return code, capsys.readouterr().out


def test_all_is_well_here(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = ended(capsys)
    *lines, last = text.splitlines()
    assert (code, last) == (0, "everything that is needed is there")
    states = [line.split()[0] for line in lines]
    assert set(states) <= {"ok", "optional", "->"}
    for state, following in zip(states, [*states[1:], "end"], strict=True):
        assert (state == "optional") == (following == "->")  # what to do about it
    names = [line.split()[1] for line in lines if not line.startswith(" ")]
    assert names[:7] == ["python", "packages", "threads", "gpu", "memory", "disk", "folder"]
    assert names[-4:] == ["alfworld", "data", "model", "turn"]
    where = str(Path.cwd())
    assert max(len(line.replace(where, "")) for line in lines) < 80
    assert "ok       data         alfworld: 400 tasks in split held_out" in lines


def test_the_same_for_programs(capsys: pytest.CaptureFixture[str]) -> None:
    code, text = ended(capsys, "--json")
    record = json.loads(text)
    assert (code, record["ok"]) == (0, True)
    turn = record["checks"][-1]
    assert (turn["name"], turn["state"], turn["needed"]) == ("turn", "ok", True)


def test_what_is_needed_and_wrong_is_named_and_costs_the_exit_code(
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, text = ended(capsys, "--model", "nowhere")
    assert code == 1
    assert "wrong    model        model folder nowhere does not exist" in text
    assert text.splitlines()[-1] == "wrong: model"
    code, text = ended(capsys, "--model", "nowhere", "--json")
    assert (code, json.loads(text)["ok"]) == (1, False)
    main_words = ["doctor", "--env.games", "nowhere"]
    with pytest.raises(SystemExit) as stop:
        main(main_words)
    assert stop.value.code == 1
    assert capsys.readouterr().out.splitlines()[-1] == "wrong: data"


def test_keys_that_do_nothing_here(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main(["doctor", "--env.turn-limit=3"])
    assert stop.value.code == 2
    assert "--env.turn-limit does nothing for a check" in capsys.readouterr().err


def test_a_runs_folder_is_a_model(tmp_path: Path) -> None:
    shutil.copytree(model_folder("base-agent"), tmp_path / "run" / "checkpoint")
    env = Alfworld(generated_games=1)
    found = list(content.check_play(env, str(tmp_path / "run"), "cpu"))
    assert [check.state for check in found] == ["ok", "ok", "ok"]


def test_python_too_old(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(packages.platform, "python_version", lambda: "3.9.1")
    check = packages.check_python()
    assert (check.state, check.found) == ("wrong", "3.9.1, but >=3.11 is needed")
    assert check.fails


def test_packages_that_are_not_there_or_out_of_range(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"rich": None, "tyro": "3.0"}
    installed = packages._installed
    monkeypatch.setattr(packages, "_installed", lambda name: versions.get(name, installed(name)))
    found = [check.found for check in packages.check_packages()]
    assert found == ["tyro is 3.0, but <2,>=1.0 is needed", "rich is not installed"]
    names = [check.name for check in examine(Examination())]
    assert names == ["python", "packages", "packages"]  # without them nothing can be tried


def test_extras_say_what_they_give_and_how_they_are_had(monkeypatch: pytest.MonkeyPatch) -> None:
    versions = {"peft": "9.0", "httpx2": "2.1", "spacy": None}
    monkeypatch.setattr(packages, "_installed", versions.get)
    found = {check.name: check for check in packages.check_extras()}
    lora = found["[lora]"]
    assert (lora.state, lora.found) == ("wrong", "peft is 9.0, but <1,>=0.17 is needed")
    assert not lora.fails
    assert found["[server]"] == Check("[server]", "ok", "--rollout.engine server", needed=False)
    assert found["[webshop]"].state == "optional"
    assert found["[webshop]"].advice == "pip install 'rewardswap[webshop]'"
    assert "[dev]" not in found


def test_every_extra_is_explained() -> None:
    table = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = table["project"]["optional-dependencies"].keys() - {packages.DEVELOPMENT}
    assert extras <= packages.EXTRAS.keys()


Properties = namedtuple("Properties", ("name", "total_memory"))


def test_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    assert machine.check_gpu("cpu").found == "none; everything runs on the CPU"
    asked = machine.check_gpu("cuda:1")
    assert (asked.fails, asked.found) == (True, "none, but --device cuda:1 asks for one")
    monkeypatch.setattr(machine.Path, "exists", lambda path: True)
    monkeypatch.setattr(torch.version, "cuda", None)
    built = machine.check_gpu("cpu")
    assert (built.state, built.fails) == ("wrong", False)
    assert "built without CUDA" in built.found
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    monkeypatch.setattr(
        torch.cuda, "get_device_properties", lambda number: Properties(f"G{number}", 80 * 2**30)
    )
    assert machine.check_gpu("cuda").found == "G0, 80 GiB; G1, 80 GiB"


def test_memory_and_disk(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "_free_memory", lambda: 1.2 * 2**30)
    assert machine.check_memory().found.startswith("1.2 of ")
    assert machine.check_memory().fails
    monkeypatch.setattr(machine, "_free_memory", lambda: 1.6 * 2**30)
    assert machine.check_memory().state == "ok"
    Usage = namedtuple("Usage", ("free",))
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: Usage(0.9 * 2**30))
    assert machine.check_disk(tmp_path).fails
    monkeypatch.setattr(machine.shutil, "disk_usage", lambda path: Usage(2**30))
    assert machine.check_disk(tmp_path).found == f"1.0 GiB free in {tmp_path}"


def test_free_memory_is_the_systems_own() -> None:
    assert 0 < machine._free_memory() <= machine._pages("SC_PHYS_PAGES")


def test_a_folder_that_takes_no_files(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def refused(**_: Any) -> None:
        raise PermissionError(13, "Permission denied")

    assert machine.check_writing(tmp_path).state == "ok"
    assert list(tmp_path.iterdir()) == []
    monkeypatch.setattr(machine.tempfile, "NamedTemporaryFile", refused)
    check = machine.check_writing(tmp_path)
    assert (check.fails, check.found) == (True, f"{tmp_path}: Permission denied")


def test_the_folder_of_official_games(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    assert content.check_official_games().state == "optional"
    monkeypatch.setenv("ALFWORLD_DATA", str(tmp_path))
    wrong = content.check_official_games()
    assert (wrong.state, wrong.fails) == ("wrong", False)
    (tmp_path / "json_2.1.1").mkdir()
    assert content.check_official_games().found == f"--env.games {tmp_path}/json_2.1.1"


def test_a_trainer_that_differs_from_the_sampler(monkeypatch: pytest.MonkeyPatch) -> None:
    score = Policy.score

    def shifted(self: Policy, *rest: Any) -> TokenScores:
        found = score(self, *rest)
        return TokenScores(found.logprob - 0.002, found.entropy)

    env = Alfworld(generated_games=1)
    monkeypatch.setattr(Policy, "score", shifted)
    *_, turn = content.check_play(env, None, "cpu")
    assert turn.fails
    assert "differ by 2.0e-03 nats" in turn.found


def test_an_environment_that_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: Any) -> None:
        raise RuntimeError("no more")

    monkeypatch.setattr("rewardswap.envs.alfworld.world.AlfworldEnvironment.step", broken)
    *_, turn = content.check_play(Alfworld(generated_games=1), None, "cpu")
    assert turn.fails
    assert turn.found.startswith("an episode broke: ")
    assert "no more" in turn.found
