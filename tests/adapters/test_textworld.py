"""Real games of TextWorld; `tw-make` makes them here."""

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

import pytest

from rewardswap.adapters.textworld import TextWorldGames
from rewardswap.envs.base import World
from rewardswap.inspection.check import check_environment

needs_it = pytest.mark.skipif(find_spec("textworld") is None, reason="textworld is not installed")


@pytest.fixture(scope="module")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("games")
    for split, seed in (("train", 1), ("train", 2), ("held_out", 3)):
        made = ["tw-coin_collector", "--level", "2", "--seed", str(seed), "--silent"]
        made += ["--output", str(folder / split / f"{seed}.z8")]
        subprocess.run([Path(sys.executable).with_name("tw-make"), *made], check=True)
    return folder


@needs_it
def test_a_game_is_played_to_its_end(games: Path) -> None:
    world = TextWorldGames(games, turn_limit=9)
    assert isinstance(world, World)
    first, _ = world.tasks("train")
    live = world.make()
    start = live.reset(first)
    assert "$$" not in start.text and "coin" in start.text and "-= " in start.text
    assert start.progress == 0 and "look" in start.admissible
    odd = live.step("fly to\nthe moon")
    assert not odd.valid and not odd.terminated
    assert odd.observation.state_key == start.state_key
    there, back = next((c for c in start.admissible if c.startswith("go ")), ""), None
    moved = live.step(there)
    assert moved.valid and moved.observation.state_key != start.state_key and back is None
    last = live.step("take coin")
    assert last.terminated and last.success and last.outcome == 1 and last.task_score == 1
    with pytest.raises(ValueError, match=r"no game is under way; call reset\(task\)"):
        live.step("look")
    assert live.reset(first) == start
    live.close()


@needs_it
def test_it_has_no_fault(games: Path) -> None:
    found = check_environment(TextWorldGames(games, turn_limit=6))
    assert found.faults == (), str(found)


@needs_it
def test_splits_are_folders(games: Path, tmp_path: Path) -> None:
    world = TextWorldGames(games)
    assert world.splits == ["held_out", "train"] and world.remarks("train") == []
    with pytest.raises(ValueError, match=r"unknown split 'moon', this world has \['held_out', 't"):
        world.tasks("moon")
    (tmp_path / "train").mkdir()
    with pytest.raises(ValueError, match=r"train has no game \(\.z8, \.ulx\); `tw-make` makes"):
        TextWorldGames(tmp_path).tasks("train")
    (tmp_path / "train" / "1.z8").write_bytes((games / "train" / "1.z8").read_bytes())
    assert "1 of 1 games of train have no .json" in TextWorldGames(tmp_path).remarks("train")[0]


def test_a_folder_without_splits_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"has no folder in it; put games into .*/train and"):
        TextWorldGames(tmp_path)


@pytest.mark.skipif(find_spec("textworld") is not None, reason="textworld is installed")
def test_without_the_package_it_says_what_to_install(tmp_path: Path) -> None:
    (tmp_path / "train").mkdir()
    with pytest.raises(ValueError, match=r"need textworld; pip install 'rewardswap\[textworld\]'"):
        TextWorldGames(tmp_path)
