"""From what the model wrote to the command of the environment, by verl-agent's text convention."""

import re
from dataclasses import dataclass

CHINESE = re.compile("[\u4e00-\u9fff]")


@dataclass(frozen=True, slots=True)
class Projection:
    """The command that is sent to the environment."""

    action: str
    valid: bool
    """Whether the text kept the format; the environment's own commands are not consulted."""


def alfworld_projection(text: str) -> Projection:
    """Lower-cased text between the first <action> and the first </action>, else the last 30 chars.

    Valid only with both action tags, both <think> tags and no Chinese character.
    """
    return _projection(text, fallback_characters=30)


def webshop_projection(text: str) -> Projection:
    """As `alfworld_projection`, with the last 20 characters where a tag is missing."""
    return _projection(text, fallback_characters=20)


def _projection(text: str, fallback_characters: int) -> Projection:
    lowered = text.lower()
    start, end = lowered.find("<action>"), lowered.find("</action>")
    if start == -1 or end == -1:
        return Projection(lowered[-fallback_characters:], valid=False)
    thinks = "<think>" in text and "</think>" in text
    action = lowered[start + len("<action>") : end].strip()
    return Projection(action, valid=thinks and CHINESE.search(text) is None)
