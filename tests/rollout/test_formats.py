"""Forms of actions: what is read, what is an error, and how the agent is told."""

import json
from typing import Any

import pytest

from rewardswap.rollout.formats import ActionFormat, Reading, TagFormat, ToolFormat, make_format
from rewardswap.rollout.thinking import Thinking, checked_thinking, thinks, without_thinking


def call(name: Any = "act", **arguments: Any) -> str:
    return json.dumps({"name": name, "arguments": arguments})


def tagged(text: str) -> str:
    return f"<tool_call>\n{text}\n</tool_call>"


GO = Reading("go west", True)
ONE = call(action=" go west ")


@pytest.mark.parametrize(
    ("said", "rest", "thought"),
    [
        (" go ", "go", False),
        ("<think>a</think> go ", "go", True),
        ("a</think>go", "go", True),  # the header opened it
        ("<think>a</think>no<think>b</think>go", "go", True),
        ("<think>cut off", "", True),
        ("go <think>cut off", "go", True),
        ("", "", False),
    ],
)
def test_thinking_is_no_part_of_an_action(said: str, rest: str, thought: bool) -> None:
    assert (without_thinking(said), thinks(said)) == (rest, thought)


@pytest.mark.parametrize(
    ("name", "said", "action"),
    [
        ("text", " go west\n", "go west"),
        ("text", "<think>hm</think>\ngo west", "go west"),
        ("text", "", ""),
        ("tags", "<think>hm</think><action> go west </action>", "go west"),
        ("tags", "<think><action>no</action></think>So: <action>go\nwest</action>.", "go\nwest"),
        ("tools", ONE, "go west"),
        ("tools", tagged(ONE), "go west"),
        ("tools", f"I go.\n{tagged(ONE)}", "go west"),
        ("tools", f"<think>{tagged(ONE)}</think>{tagged(call(action='stay'))}", "stay"),
        ("tools", f"[{ONE}]", "go west"),
        ("tools", '{"name": "act", "parameters": {"action": "go west"}}', "go west"),
        ("tools", f"<tool_call>{ONE}", "go west"),
        ("tools", call(action="größer 大"), "größer 大"),
    ],
)
def test_what_is_in_form(name: str, said: str, action: str) -> None:
    assert make_format(name).read(said) == Reading(action, True)


def test_an_action_in_tags_without_thinking_is_sent_but_not_in_form() -> None:
    said = "<action>go west</action>"
    assert TagFormat().read(said) == Reading("go west", False)
    assert TagFormat(thinking=False).read(said) == GO


@pytest.mark.parametrize(
    ("name", "said", "reason"),
    [
        ("tags", "go west", "one <action> </action> is needed, there are 0"),
        ("tags", "<action>go west", "there are 0"),
        ("tags", "<action>a</action><action>b</action>", "there are 2"),
        ("tools", "go west", "the tool call is not valid JSON"),
        ("tools", "", "the tool call is not valid JSON"),
        ("tools", ONE[:-1], "the tool call is not valid JSON"),
        ("tools", tagged(ONE[:-1]), "the tool call is not valid JSON"),
        ("tools", "[" * 100_000, "the tool call is not valid JSON"),
        ("tools", "9" * 5000, "the tool call is not valid JSON"),
        ("tools", ONE + ONE, "the tool call is not valid JSON"),
        ("tools", tagged(ONE) + tagged(ONE), "one tool call is needed, there are 2"),
        ("tools", f"[{ONE}, {ONE}]", "one tool call is needed, there are 2"),
        ("tools", "[]", "one tool call is needed, there are 0"),
        ("tools", call("buy", action="x"), 'there is no tool "buy", only "act"'),
        ("tools", call(["act"], action="x"), 'there is no tool ["act"], only "act"'),
        ("tools", '"act"', 'a tool call needs a "name" and "arguments"'),
        ("tools", '{"arguments": {"action": "x"}}', 'needs a "name"'),
        ("tools", '{"name": "act"}', '"act" takes the argument "action" and no other'),
        ("tools", call(), '"act" takes the argument "action" and no other'),
        ("tools", call(action="x", often=2), '"act" takes the argument "action" and no other'),
        ("tools", '{"name": "act", "arguments": "x"}', 'takes the argument "action"'),
        ("tools", call(action=3), 'the argument "action" must be text'),
        ("tools", call(action="\ud800"), 'the argument "action" must be text'),
    ],
)
def test_what_cannot_be_sent_says_why(name: str, said: str, reason: str) -> None:
    reading = make_format(name).read(said)
    assert (reading.action, reading.well_formed) == (said, False)
    assert reading.error.startswith("Nothing was done: ") and reading.error.endswith(".")
    assert reason in reading.error


def test_every_form_but_plain_text_is_asked_for() -> None:
    assert make_format("text").request == ""
    assert "<think>" in make_format("tags").request
    assert "<think>" not in make_format("tags", thinking=False).request
    assert "<action>" in make_format("tags", thinking=False).request
    # the call that is shown is one that is read
    shown = ToolFormat().request.splitlines()[-1]
    assert ToolFormat().read(shown) == Reading("look", True)


@pytest.mark.parametrize("name", ["text", "tags", "tools"])
def test_they_are_formats(name: str) -> None:
    assert isinstance(make_format(name), ActionFormat)


def test_unknown_names_are_refused() -> None:
    with pytest.raises(ValueError, match=r"action format 'xml', take one of \['text', 'tags', 't"):
        make_format("xml")
    with pytest.raises(ValueError, match=r"thinking 'off', take one of \['template', 'kept', 's"):
        checked_thinking("off")
    kept: Thinking = checked_thinking("kept")
    assert kept == "kept"
