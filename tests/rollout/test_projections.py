import pytest

from rewardswap.rollout.projections import alfworld_projection, webshop_projection

PROJECTIONS = [alfworld_projection, webshop_projection]


@pytest.mark.parametrize("project", PROJECTIONS)
def test_the_action_stands_between_the_first_tags_in_lower_case(project) -> None:
    found = project("<think>hm</think> <ACTION> Go To Desk 1 </action> <action>look</action>")
    assert (found.action, found.valid) == ("go to desk 1", True)


@pytest.mark.parametrize("project", PROJECTIONS)
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
def test_a_broken_format_still_acts_but_is_not_valid(project, text: str) -> None:
    found = project(text)
    assert (found.action, found.valid) == ("look", False)


def test_without_tags_the_last_characters_are_the_action() -> None:
    text = "x" * 40 + "Y" * 25
    assert alfworld_projection(text).action == "x" * 5 + "y" * 25
    assert webshop_projection(text).action == "y" * 20
    assert not alfworld_projection(text).valid
