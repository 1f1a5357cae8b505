"""Gymnasium-style environments as worlds: what they say, what is derived, what is refused."""

from functools import partial
from typing import Any

import pytest

from adapters.strange_environments import Count, Scripted, Told
from rewardswap.adapters.seeded import HELD_OUT_FROM, SeededWorld, TextEnvironment, label
from rewardswap.envs.base import Environment, Step, World

WORLD = SeededWorld(Count, train_tasks=20, held_out_tasks=5)


def played(steps: list[Any], opening: Any = "hello", **attributes: Any) -> list[Step]:
    """What a scripted environment's steps are in the contract."""
    world = SeededWorld(partial(Scripted, opening, steps, **attributes))
    live = world.make()
    live.reset(world.tasks("train")[0])
    return [live.step("go") for _ in steps]


def counted(wanted: int, world: SeededWorld = WORLD) -> tuple[Any, str]:
    """A live environment at the start of the first task with this number."""
    live = world.make()
    for task in world.tasks("train"):
        if (seen := live.reset(task)).text.endswith(f"of {wanted}"):
            return live, seen.text
    raise AssertionError(wanted)


def test_it_is_a_world_of_seeds_and_the_splits_share_none() -> None:
    assert isinstance(WORLD, World) and isinstance(WORLD.make(), Environment)
    assert isinstance(Count(), TextEnvironment)
    train, held_out = WORLD.tasks("train"), WORLD.tasks("held_out")
    assert [WORLD.seed(task) for task in train] == list(range(20))
    assert [WORLD.seed(task) for task in held_out] == list(range(HELD_OUT_FROM, HELD_OUT_FROM + 5))
    assert len({task.id for task in [*train, *held_out]}) == 25
    assert {task.family for task in train} == {"count"}
    more = SeededWorld(Count, train_tasks=30, held_out_tasks=9)
    assert more.tasks("train")[:20] == train and more.tasks("held_out")[:5] == held_out
    with pytest.raises(ValueError, match=r"unknown split 'moon', this world has \['held_out', 't"):
        WORLD.tasks("moon")


def test_what_is_not_said_is_derived() -> None:
    live, text = counted(2)
    assert text == "0 of 2"
    steps = [live.step(action) for action in ("up", "what", "up", "stop")]
    assert [step.observation.text for step in steps] == ["1 of 2", "1 of 2", "2 of 2", "2 of 2"]
    assert [step.observation.state_key for step in steps] == [
        "1 of 2",
        "1 of 2",
        "2 of 2",
        "2 of 2",
    ]
    assert [step.observation.progress for step in steps] == [0, 0, 0, 1]
    assert [step.terminated for step in steps] == [False, False, False, True]
    assert [(step.success, step.outcome) for step in steps] == [(False, 0.0)] * 3 + [(True, 1.0)]
    assert all(step.valid and step.task_score is None for step in steps)
    assert all(step.observation.admissible == () for step in steps)


def test_a_wrong_end_is_no_success() -> None:
    live, _ = counted(1)
    step = live.step("stop")
    assert step.terminated and not step.success and step.outcome == 0


def test_what_info_says_holds() -> None:
    world = SeededWorld(Told)
    assert world.instructions == "Count." and world.turn_limit == 6
    live, _ = counted(1, world)
    first, second = live.step("jump"), live.step("up")
    assert not first.valid and second.valid
    assert second.observation.admissible == ("up", "stop")
    assert second.observation.state_key == "1/1"
    assert second.observation.progress == 0.25
    last = live.step("stop")
    assert last.success and last.outcome == 1 and last.task_score == 0.5


def test_without_a_word_of_it_an_action_is_valid_where_it_was_admissible() -> None:
    one = ("b", 0.0, False, False, {"admissible": ["stay"]})
    steps = played([one, one], ("a", {"admissible": ["go"]}))
    assert [step.valid for step in steps] == [True, False]


def test_the_sum_of_rewards_is_the_dense_reward() -> None:
    rewards = [-1.0, 2.5, 0.5]
    steps = [("a", reward, False, False, {}) for reward in rewards[:2]]
    steps.append(("b", rewards[2], True, False, {}))
    found = played(steps, return_range=(-1.0, 3.0))
    # sums -1, 1.5, 2 of (-1, 3): (sum + 1) / 4
    assert [step.observation.progress for step in found] == [0.0, 0.625, 0.75]
    assert found[-1].outcome == 0.5 and not found[-1].success


def test_an_episode_that_is_truncated_is_over() -> None:
    last = played([("a", 0.0, False, True, {"success": False})])[0]
    assert last.terminated and not last.success


def test_after_the_end_and_before_the_start_a_step_is_refused() -> None:
    live = WORLD.make()
    with pytest.raises(ValueError, match=r"no episode is under way; call reset\(task\) bef"):
        live.step("up")
    live, _ = counted(0)
    live.step("stop")
    with pytest.raises(ValueError, match="no episode is under way"):
        live.step("up")


def test_an_action_outside_a_space_of_text_is_not_sent() -> None:
    class Text:
        def __contains__(self, action: str) -> bool:
            return len(action) < 3

    class Short(Count):
        action_space = Text()

    world = SeededWorld(Short)
    live, text = counted(1, world)
    step = live.step("u" * 9)
    assert not step.valid and step.observation.text == text
    assert live.step("up").valid


@pytest.mark.parametrize(
    ("steps", "opening", "said"),
    [
        ([], 7, r"the observation of reset must be a text, got 7"),
        ([], ("a", "b", "c"), r"reset must return a text, or a text and a dict"),
        ([], ("a", None), r"reset must return a text, or a text and a dict"),
        ([], ("a", {"admissible": "go"}), r"info\['admissible'\] must be a list of commands"),
        ([("a", 0.0, True, {})], "a", r"step must return \(observation, reward, terminated"),
        ([(7, 0.0, True, False, {})], "a", "the observation of step must be a text, got 7"),
        ([("a", "1", True, False, {})], "a", "reward must be a finite number, got '1'"),
        ([("a", float("nan"), True, False, {})], "a", "reward must be a finite number, got nan"),
        ([("a", 0.0, 1, False, {})], "a", "terminated must be True or False, got 1"),
        ([("a", 0.0, False, None, {})], "a", "truncated must be True or False, got None"),
        ([("a", 0.0, True, False, None)], "a", "info must be a dict, got None"),
        ([("a", 0.0, True, False, {"success": 1})], "a", r"info\['success'\] must be True or Fal"),
        ([("a", 2.0, True, False, {})], "a", r"sum to 2, outside return_range \(0, 1\); set the"),
        (
            [("a", -2.0, True, False, {"progress": 0.5})],
            ("a", {"progress": 0.5}),
            r"ended with a reward of -2, which is no outcome in \[0, 1\]; give info\['success'\]",
        ),
        ([("a", 0.0, False, False, {"progress": 0.5})], "a", "info gives 'progress' with some"),
    ],
)
def test_what_is_wrong_is_said_with_the_way_out(steps: list[Any], opening: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        played(steps, opening)


def test_a_maker_of_something_else_is_refused() -> None:
    class Pixels(Count):
        observation_space = object()

    with pytest.raises(ValueError, match=r"gave dict, which has no `reset`; it must give an env"):
        SeededWorld(dict)
    with pytest.raises(ValueError, match=r"the observation_space of .*Pixels is object, not Text"):
        SeededWorld(Pixels)
    with pytest.raises(ValueError, match=r"return_range \(1.0, 0.0\) must be the lowest"):
        SeededWorld(Count, return_range=(1.0, 0.0))
    with pytest.raises(ValueError, match="train_tasks must be at most 1000000, got 1000001"):
        SeededWorld(Count, train_tasks=HELD_OUT_FROM + 1)
    with pytest.raises(ValueError, match="turn_limit must be at least 1, got 0"):
        SeededWorld(Count, turn_limit=0)


def test_held_out_tasks_that_begin_as_training_tasks_are_told() -> None:
    said = WORLD.remarks("held_out")[0]  # four numbers, all of which are trained on
    assert said.startswith("5 of the first 5 held-out seeds begin exactly as one of the first 100")
    assert WORLD.remarks("train") == []
    with pytest.raises(ValueError, match="unknown split 'moon'"):
        WORLD.remarks("moon")


def test_the_environment_is_closed_and_its_name_has_its_arguments() -> None:
    made: list[Scripted] = []

    def make() -> Scripted:
        made.append(Scripted())
        return made[-1]

    live = SeededWorld(make).make()
    live.close()
    assert [one.closed for one in made] == [1, 1]
    assert label(partial(Scripted, "a", steps=[1])) == "Scripted('a', steps=[1])"
