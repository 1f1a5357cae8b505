"""Forms in which an agent says its action: plain text, tags, or a call of a tool in JSON.

The forms are the field's; the wording, and what is an error, are ours.
"""

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from rewardswap.rollout.thinking import CLOSES, without_thinking

Tool = Mapping[str, Any]
"""A tool as a JSON schema, as chat templates take it."""


@dataclass(frozen=True, slots=True)
class Reading:
    """What an agent's text comes to."""

    action: str
    """The text to send to the environment, or what was said where there is none to send."""
    well_formed: bool
    """Whether what was said has the form that was asked for."""
    error: str = ""
    """What the agent is told in place of an observation where nothing is sent; empty: it is."""


@runtime_checkable
class ActionFormat(Protocol):
    """A form of actions: how the agent is told of it, and how it is read."""

    @property
    def request(self) -> str:
        """What the agent is told of the form behind the instructions; may be empty."""
        ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What a chat template that can tell of tools is given in place of `request`."""
        ...

    def read(self, said: str) -> Reading:
        """The action in what was said."""
        ...


class TextFormat:
    """All that is said behind the thinking is the action; every text is in form."""

    request = ""
    tools: tuple[Tool, ...] = ()

    def read(self, said: str) -> Reading:
        """What was said, without thinking and outer space."""
        return Reading(without_thinking(said), True)


@dataclass(frozen=True)
class TagFormat:
    """Thinking in <think> tags, then one action in <action> tags.

    Where there is not exactly one action nothing is sent; an action without the thinking that
    `thinking` asks for is sent, but is not in form.
    """

    thinking: bool = True
    tools: tuple[Tool, ...] = ()

    @property
    def request(self) -> str:
        """The tags, and what belongs into them."""
        action = "write your next action inside <action> </action> tags"
        if not self.thinking:
            return f"In each turn {action}."
        return f"In each turn first think inside <think> </think> tags, then {action}."

    def read(self, said: str) -> Reading:
        """The text between <action> and </action>, without outer space."""
        answer = without_thinking(said)
        found = re.findall("<action>(.*?)</action>", answer, re.DOTALL)
        if len(found) != 1:
            return _unsent(answer, f"one <action> </action> is needed, there are {len(found)}")
        return Reading(found[0].strip(), CLOSES in said or not self.thinking)


ACT: Tool = {
    "type": "function",
    "function": {
        "name": "act",
        "description": "Take one action in the world.",
        "parameters": {
            "type": "object",
            "properties": {"action": {"type": "string", "description": "The action's text."}},
            "required": ["action"],
        },
    },
}
"""The one tool: an environment's actions are text, so a tool per verb would say nothing more."""

CALL = re.compile("<tool_call>(.*?)(?:</tool_call>|$)", re.DOTALL)


class ToolFormat:
    """One call of the tool `act` in JSON.

    A call stands in <tool_call> tags (Qwen), or is all that is said behind the thinking (Llama 3),
    also as the only one of a list (Mistral). Whatever else is said is an error: nothing is sent,
    not even the first of two calls.
    """

    tools: tuple[Tool, ...] = (ACT,)

    @property
    def request(self) -> str:
        """The tool and the form of its call, for a template that cannot tell of tools."""
        example = json.dumps({"name": "act", "arguments": {"action": "look"}})
        return (
            f"You act by calling a tool, in each turn once:\n{json.dumps(ACT)}\n"
            f"Write a call in this form:\n<tool_call>{example}</tool_call>"
        )

    def read(self, said: str) -> Reading:
        """The argument `action` of the only call."""
        answer = without_thinking(said)
        try:
            return Reading(_argument(_only_call(answer)), True)
        except ValueError as error:
            return _unsent(answer, str(error))


def make_format(name: str, *, thinking: bool = True) -> ActionFormat:
    """A form of actions by its name: text, tags, or tools; raises ValueError for another name.

    `thinking` is whether tags ask for thinking before the action.
    """
    formats: dict[str, ActionFormat] = {
        "text": TextFormat(),
        "tags": TagFormat(thinking),
        "tools": ToolFormat(),
    }
    if name not in formats:
        raise ValueError(f"unknown action format {name!r}, take one of {list(formats)}")
    return formats[name]


def _unsent(answer: str, reason: str) -> Reading:
    return Reading(answer, False, f"Nothing was done: {reason}.")


def _only_call(answer: str) -> Any:
    """The only call of an answer; ValueError for none, several, or what is no JSON."""
    written = CALL.findall(answer) or [answer]
    calls: list[Any] = []
    for text in written:
        try:
            value = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise ValueError("the tool call is not valid JSON") from error
        calls += value if isinstance(value, list) else [value]
    if len(calls) != 1:
        raise ValueError(f"one tool call is needed, there are {len(calls)}")
    return calls[0]


def _argument(call: Any) -> str:
    """The action of a call; ValueError for another tool or other arguments."""
    if not isinstance(call, dict) or "name" not in call:
        raise ValueError('a tool call needs a "name" and "arguments"')
    if call["name"] != "act":
        raise ValueError(f'there is no tool {json.dumps(call["name"])}, only "act"')
    arguments = call.get("arguments", call.get("parameters"))
    if not isinstance(arguments, dict) or set(arguments) != {"action"}:
        raise ValueError('"act" takes the argument "action" and no other')
    action = arguments["action"]
    if not isinstance(action, str) or any("\ud800" <= sign <= "\udfff" for sign in action):
        raise ValueError('the argument "action" must be text')
    return action.strip()
