"""The methods' cards: what their files say of themselves, for the command and the docs."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, fields

from rewardswap.methods import METHODS
from rewardswap.methods.base import Method

HEADINGS = ("Paper", "Idea in one sentence", "Formula", "Defaults from", "Deviations")
"""What every card says, in this order."""


@dataclass(frozen=True)
class Card:
    """One method in words."""

    name: str
    title: str
    """The first line of its file."""
    sections: Mapping[str, str]
    """The text under each heading."""
    defaults: str
    """Settings whose default differs from what methods share, and its own ones."""

    @property
    def paper(self) -> str:
        """The paper's line."""
        return self.sections["Paper"]


def card(name: str, kind: type[Method]) -> Card:
    """The card of a method; raises ValueError naming a heading that its file lacks."""
    text = (sys.modules[kind.__module__].__doc__ or "").strip()
    title, *lines = text.splitlines()
    sections: dict[str, str] = {}
    heading = ""
    for line in lines:
        start, colon, rest = line.partition(":")
        if colon and start in HEADINGS:
            heading, line = start, rest
        if heading:
            sections[heading] = f"{sections.get(heading, '')} {line.strip()}".strip()
    missing = [needed for needed in HEADINGS if needed not in sections]
    if missing:
        raise ValueError(f"the file of method {name!r} has no {missing[0]!r} in its docstring")
    return Card(name, title, sections, _defaults(kind))


def cards() -> list[Card]:
    """The cards of all methods, in the order of the registry."""
    return [card(name, kind) for name, kind in METHODS.items()]


def table() -> str:
    """All methods as a Markdown table: the docs' page is made of it."""
    rows = [
        f"| `{c.name}` | {c.paper} | {c.sections['Idea in one sentence']} | "
        f"{c.sections['Formula']} | {c.defaults} |"
        for c in cards()
    ]
    head = "| method | paper | idea | formula | defaults of its own |\n|---|---|---|---|---|"
    return "\n".join([head, *rows]).replace("||", "\\|\\|")


def _defaults(kind: type[Method]) -> str:
    shared = {field.name: field.default for field in fields(Method)}
    own = [
        f"{field.name} {field.default}"
        for field in fields(kind)
        if field.name not in shared or field.default != shared[field.name]
    ]
    return ", ".join(own) or "the shared ones"
