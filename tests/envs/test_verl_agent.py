import pytest

from rewardswap.envs.alfworld.prompts import AlfworldPrompts
from rewardswap.envs.verl_agent import VerlAgentStyle
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
