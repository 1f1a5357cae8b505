"""Games as a world: splits, tasks, the environment contract, and what goes wrong with files."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from jaxtyping import TypeCheckError
from small_rooms import kitchen

from rewardswap.envs.alfworld.game import game_id
from rewardswap.envs.alfworld.world import AlfworldWorld, GameWorld, Style
from rewardswap.types import Task

GAMES = [kitchen(), kitchen(task="place a mug on the shelf.")]
WIN = ["go to shelf 1", "take mug 2 from countertop 1", "move mug 2 to shelf 1"]


def world(style: Style = "full") -> GameWorld:
    return GameWorld({"train": GAMES[:1], "held_out": GAMES[1:]}, style, turn_limit=7)


def test_tasks_are_named_by_content() -> None:
    assert world().tasks("train") == [Task(game_id(GAMES[0]), "pick_and_place_simple")]
    assert world().tasks("held_out") == [Task(game_id(GAMES[1]), "pick_and_place_simple")]
    assert world().turn_limit == 7


def test_one_game_played_to_its_end() -> None:
    this = world()
    (task,) = this.tasks("train")
    environment = this.make()
    first = environment.reset(task)
    assert first.text.endswith("Your task is to: put some mug on shelf.")
    assert "go to shelf 1" in first.admissible
    assert first.progress == 0.0
    steps = [environment.step(action) for action in WIN]
    assert [s.valid for s in steps] == [True] * 3
    assert [s.terminated for s in steps] == [s.success for s in steps] == [False, False, True]
    assert [s.outcome for s in steps] == [0.0, 0.0, 1.0]
    assert [s.observation.progress for s in steps] == [0.0, 0.5, 1.0]
    with pytest.raises(ValueError, match="won already; call reset"):
        environment.step("look")


def test_an_inadmissible_action_is_answered_and_marked() -> None:
    this = world()
    environment = this.make()
    before = environment.reset(this.tasks("train")[0])
    step = environment.step("dance")
    assert (step.valid, step.terminated, step.success, step.outcome) == (False, False, False, 0.0)
    assert step.observation.text == "Nothing happens."
    assert step.observation.state_key == before.state_key


def test_reset_is_exact_also_after_another_game() -> None:
    this = world()
    one, two = this.tasks("train")[0], this.tasks("held_out")[0]
    environment = this.make()
    first = environment.reset(one)
    environment.step(WIN[0])
    assert environment.reset(two).text != first.text
    assert environment.reset(one) == first
    assert this.make().reset(one) == first


def test_the_short_style_says_the_same_in_few_words() -> None:
    this = world("short")
    environment = this.make()
    assert this.instructions == "" and world().instructions
    assert environment.reset(this.tasks("train")[0]).text == (
        "you see cabinet 1 countertop 1 fridge 1 microwave 1 shelf 1 sinkbasin 1 . "
        "task : put some mug on shelf ."
    )
    assert environment.step("go to cabinet 1").observation.text == "at cabinet 1 closed ."


def test_step_before_reset_and_after_close() -> None:
    this = world()
    environment = this.make()
    with pytest.raises(ValueError, match="not begun"):
        environment.step("look")
    environment.reset(this.tasks("train")[0])
    environment.close()
    with pytest.raises(ValueError, match="not begun"):
        environment.step("look")


def test_unknown_things_are_named() -> None:
    with pytest.raises(ValueError, match=r"split 'test', this world has \['held_out', 'train'\]"):
        world().tasks("test")
    with pytest.raises(ValueError, match="unknown task 'nobody'"):
        world().make().reset(Task("nobody", "pick_and_place_simple"))
    with pytest.raises((ValueError, TypeCheckError), match="'tiny'"):
        GameWorld({}, style="tiny")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="turn_limit is 0"):
        GameWorld({}, turn_limit=0)


def test_held_out_games_are_not_trained_on() -> None:
    with pytest.raises(ValueError, match=f"'train' share 1 games, such as {game_id(GAMES[0])}"):
        GameWorld({"train": GAMES[:1], "valid": GAMES})
    GameWorld({"valid": GAMES, "valid_small": GAMES[:1]})


def test_a_game_twice_in_a_split_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'train' has game .* twice"):
        GameWorld({"train": [GAMES[0], replace(GAMES[0], walkthrough=("look",))]})


def lay(folder: Path, split: str, content: str) -> Path:
    path = folder / split / "pick-Mug" / "trial_1" / "game.tw-pddl"
    path.parent.mkdir(parents=True)
    path.write_text(content)
    return path


def test_a_missing_folder(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"nowhere.*alfworld-download.*\$ALFWORLD_DATA"):
        AlfworldWorld(tmp_path / "nowhere")


def test_a_missing_and_an_empty_split(tmp_path: Path) -> None:
    this = AlfworldWorld(tmp_path)
    with pytest.raises(ValueError, match="unknown split 'test', ALFWorld has"):
        this.tasks("test")
    with pytest.raises(ValueError, match=r"'train' has no folder .*train; .*alfworld-download"):
        this.tasks("train")
    (tmp_path / "train").mkdir()
    with pytest.raises(ValueError, match=r"train has no game .*alfworld-download"):
        this.tasks("train")


CONTENT = {
    "pddl_domain": "(define (domain other))",
    "grammar": "",
    "pddl_problem": "",
    "solvable": True,
    "walkthrough": [],
}


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("{", "is not JSON"),
        ("[]", "expected a JSON object, got list"),
        ('{"pddl_domain": ""}', "key 'grammar' is missing"),
        (json.dumps(CONTENT), "its PDDL domain is not ALFWorld's"),
    ],
)
def test_a_broken_file_is_named(tmp_path: Path, content: str, message: str) -> None:
    lay(tmp_path, "train", content)
    with pytest.raises(ValueError, match=rf"trial_1/game.tw-pddl.*{message}.*alfworld-download"):
        AlfworldWorld(tmp_path).tasks("train")


def test_what_is_left_out_is_counted(tmp_path: Path) -> None:
    lay(tmp_path, "train", json.dumps({**CONTENT, "solvable": False}))
    movable = tmp_path / "train" / "pick_and_place_with_movable_recep-Mug" / "trial_1"
    movable.mkdir(parents=True)
    (movable / "game.tw-pddl").write_text("")
    this = AlfworldWorld(tmp_path)
    with pytest.raises(ValueError, match="has no game"):
        this.tasks("train")
    assert this.left_out["train"] == {
        "marked unsolvable": 1,
        "movable receptacle or sliced object": 1,
    }
