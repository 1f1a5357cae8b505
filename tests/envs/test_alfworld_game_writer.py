"""Generated games as official files; the texts of domain and grammar come from an official one."""

import tarfile
from dataclasses import replace
from pathlib import Path

import pytest

from rewardswap.envs.alfworld.game import TASK_TYPES, game_id
from rewardswap.envs.alfworld.game_writer import write_game
from rewardswap.envs.alfworld.generator import generate_game
from rewardswap.envs.alfworld.pddl import read_game
from rewardswap.envs.alfworld.world import AlfworldWorld

TAR = Path(__file__).parents[3] / "shared" / "alfworld" / "json_2.1.1.tar.xz"

pytestmark = pytest.mark.skipif(
    not TAR.is_file(), reason="needs an official game file from ../shared/alfworld"
)


@pytest.fixture(scope="module")
def official(tmp_path_factory):
    """The first official game of the archive, unpacked."""
    path = tmp_path_factory.mktemp("official") / "game.tw-pddl"
    with tarfile.open(TAR, "r|xz") as archive:
        for member in archive:
            if member.name.endswith("/game.tw-pddl"):
                path.write_bytes(archive.extractfile(member).read())
                return path
    raise AssertionError(f"{TAR} holds no game")


def test_what_is_written_reads_back_as_the_same_game(official, tmp_path):
    for seed, task_type in enumerate(TASK_TYPES):
        game = generate_game(seed, None, task_type)
        path = tmp_path / str(seed) / "game.tw-pddl"
        write_game(game, path, official)
        again = read_game(path)
        assert game_id(again) == game_id(game)
        assert again.walkthrough == game.walkthrough


def test_an_official_game_reads_back_as_itself(official, tmp_path):
    game = read_game(official)
    write_game(game, tmp_path / "game.tw-pddl", official)
    assert game_id(read_game(tmp_path / "game.tw-pddl")) == game_id(game)


def test_a_folder_of_written_games_is_a_world(official, tmp_path):
    games = [generate_game(seed) for seed in range(3)]
    for number, game in enumerate(games):
        write_game(game, tmp_path / f"valid_seen/g-{number}/trial_0/game.tw-pddl", official)
    tasks = AlfworldWorld(tmp_path).tasks("valid_seen")
    assert [task.id for task in tasks] == [game_id(game) for game in games]


def test_a_task_with_a_quote_is_refused(official, tmp_path):
    game = replace(generate_game(0), task='put a "mug" in shelf.')
    with pytest.raises(ValueError, match="quote"):
        write_game(game, tmp_path / "game.tw-pddl", official)


def test_another_file_to_take_the_texts_from_is_refused(tmp_path):
    other = tmp_path / "other.json"
    other.write_text("{}")
    with pytest.raises(ValueError, match="missing"):
        write_game(generate_game(0), tmp_path / "game.tw-pddl", other)
