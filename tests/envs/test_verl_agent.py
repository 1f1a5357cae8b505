"""verl-agent's prompts: what they tell, and how an action is read."""

import pytest
from small_rooms import kitchen
from stocked_shop import MUG, stocked_catalogue

from rewardswap.envs.alfworld.prompts import AlfworldPrompts
from rewardswap.envs.alfworld.world import GameWorld
from rewardswap.envs.base import Observation
from rewardswap.envs.verl_agent import REQUEST, VERL_AGENT, VerlAgentStyle
from rewardswap.envs.webshop import ShopWorld
from rewardswap.envs.webshop.prompts import ShopPrompts

STYLES = [AlfworldPrompts(), ShopPrompts()]


@pytest.mark.parametrize("style", STYLES)
def test_the_action_stands_between_the_first_tags_in_lower_case(style: VerlAgentStyle) -> None:
    found = style.action("<think>hm</think> <ACTION> Go To Desk 1 </action> <action>look</action>")
    assert found == ("go to desk 1", True)


@pytest.mark.parametrize("style", STYLES)
@pytest.mark.parametrize(
    "text",
    [
        "<action>look</action>",
        "<THINK>hm</THINK><action>look</action>",
        "<THINK>hm</think><action>look</action>",
        "<think>hm<action>look</action>",
        "<think>\u53bb</think><action>look</action>",
    ],
)
def test_a_broken_format_still_acts_but_is_not_valid(style: VerlAgentStyle, text: str) -> None:
    found = style.action(text)
    assert found == ("look", False)


def test_without_tags_the_last_characters_are_the_action() -> None:
    text = "x" * 40 + "Y" * 25
    assert AlfworldPrompts().action(text) == ("x" * 5 + "y" * 25, False)
    assert ShopPrompts().action(text) == ("y" * 20, False)


ROOM = """\
-= Welcome to TextWorld, ALFRED! =-

You are in the middle of a room. Looking quickly around you, you see a cabinet 1, a countertop 1, \
a fridge 1, a microwave 1, a shelf 1, and a sinkbasin 1.

Your task is to: put some mug on shelf."""
CABINET = Observation("The cabinet 1 is closed.", ("help", "look", "open cabinet 1"), "", 0.0)


def test_the_first_turn_of_alfworld_tells_the_observation_that_names_the_task() -> None:
    world = GameWorld({"train": [kitchen()]})
    (task,) = world.tasks("train")
    first = world.make().reset(task)
    assert first.text == ROOM
    prompt = world.prompt_styles[VERL_AGENT].prompt(first.text, (), 0, first)
    lines = [f"'{command}'" for command in first.admissible if command != "help"]
    assert len(lines) == len(first.admissible) - 1
    assert prompt.splitlines() == [
        "You act in a house by text commands.",
        *f"Observation: {ROOM}".splitlines(),
        "Actions that you can take now:",
        *lines,
        *REQUEST.splitlines(),
    ]


def test_a_later_turn_of_alfworld_tells_the_task_and_the_latest_turns() -> None:
    history = [("You see nothing.", "look"), ("You arrive.", "go to cabinet 1")]
    assert AlfworldPrompts().prompt(ROOM, history, 5, CABINET).splitlines() == [
        "You act in a house by text commands.",
        "Your task is to: put some mug on shelf.",
        "Steps taken so far: 5; the latest 2 observations and actions:",
        "[Observation 4: 'You see nothing.', Action 4: 'look']",
        "[Observation 5: 'You arrive.', Action 5: 'go to cabinet 1']",
        "This is step 6.",
        "Observation: The cabinet 1 is closed.",
        "Actions that you can take now:",
        "'look'",
        "'open cabinet 1'",
        *REQUEST.splitlines(),
    ]


def test_a_later_turn_without_history_still_tells_the_task() -> None:
    lines = AlfworldPrompts().prompt(ROOM, (), 5, CABINET).splitlines()
    assert lines[1:3] == [
        "Your task is to: put some mug on shelf.",
        "Observation: The cabinet 1 is closed.",
    ]


def test_pages_of_the_shop_are_told_below_the_instruction_piece_by_piece() -> None:
    world = ShopWorld(stocked_catalogue())
    style = world.prompt_styles[VERL_AGENT]
    environment = world.make()
    first = environment.reset(next(t for t in world.tasks("train") if t.origin == MUG))
    task = first.text.split(" [SEP] ")[2]
    results = environment.step("search[linen shirt]").observation
    assert style.prompt(first.text, (), 0, first).splitlines() == [
        "You shop in a web store by text actions.",
        f"Your task is to: {task}",
        "Observation: 'Search'",
        "Actions that you can take now:",
        "'search[<your query>]'",
        *REQUEST.splitlines(),
    ]
    pairs = [(first.text, "search[linen shirt]")]
    assert style.prompt(first.text, pairs, 1, results).splitlines() == [
        "You shop in a web store by text actions.",
        f"Your task is to: {task}",
        "Steps taken so far: 1; the latest 1 observations and actions:",
        "[Observation 1: ''Search'', Action 1: 'search[linen shirt]']",
        "This is step 2.",
        "Observation: 'Back to Search' [SEP] 'Page 1 (Total results: 1)' [SEP] 'Next >' [SEP] "
        "'B000000002' [SEP] 'Linen Shirt <b>&' [SEP] '$100.0'",
        "Actions that you can take now:",
        "'click[back to search]'",
        "'click[next >]'",
        "'click[b000000002]'",
        *REQUEST.splitlines(),
    ]


def test_a_page_without_the_instruction_is_told_as_it_is() -> None:
    assert ShopPrompts().shown("a [SEP] b", "buy a mug") == "a [SEP] b"


def test_the_style_is_there_for_full_sentences_only() -> None:
    assert GameWorld({}, "short").prompt_styles == {}
    assert list(ShopWorld(stocked_catalogue(), mode="text").prompt_styles) == [VERL_AGENT]
    for mode in ("text_rich", "short"):
        assert ShopWorld(stocked_catalogue(), mode=mode).prompt_styles == {}
