"""The methods' cards: what their files say of themselves, for the command and the docs."""

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from inspect import cleandoc

from rewardswap.described import field_texts, indented, shown
from rewardswap.methods import METHODS
from rewardswap.methods.base import Method

HEADINGS = ("Paper", "Idea in one sentence", "Formula", "Defaults from", "Deviations")
"""What every card says, in this order."""
PAGE_HEAD = """\
# Methods

A method is one file in `src/rewardswap/methods`: a frozen dataclass that says how rewards become
advantages and what the loss does with them. Loop `rspo` wraps any of them; `--loop on_policy` runs
one alone. This page is made of the files themselves by `make docs`; do not edit it.

```
rewardswap methods                            # the list
rewardswap methods gigpo                      # one method with all its settings
rewardswap train demo --method gigpo          # train with it
rewardswap train demo --method gigpo --method.step-weight 0.5
```

[A method of your own](add-a-method.md) needs no change of the package.
"""
SHARED_HEAD = """\
## Choices that all methods share

`--method.NAME VALUE` sets one, with `-` for `_`; in TOML they stand under `[method]`. A choice that
would do nothing in a method is refused.
"""
OWN_HEAD = """\
## Choices of single methods
"""


@dataclass(frozen=True)
class Setting:
    """One choice of a method."""

    name: str
    default: str
    text: str
    """Its docstring in one line."""


@dataclass(frozen=True)
class Card:
    """One method in words."""

    name: str
    title: str
    """The first line of its file, of its class where the file has several methods."""
    sections: Mapping[str, str]
    """The text under each heading."""
    settings: tuple[Setting, ...]
    """Its own choices first, then the shared ones, with the defaults of this method."""
    changed: tuple[str, ...]
    """Settings whose default differs from what methods share, and its own ones."""
    idle: tuple[str, ...]
    """Shared choices that do nothing in it."""

    @property
    def paper(self) -> str:
        """The paper's line."""
        return self.sections["Paper"]

    @property
    def defaults(self) -> str:
        """The changed settings and their values in one line."""
        found = [f"{s.name} {s.default}" for s in self.settings if s.name in self.changed]
        return ", ".join(found) or "the shared ones"

    def text(self) -> str:
        """The whole card for the screen."""
        parts = [f"{self.name}\n{indented(self.title, 2)}"]
        parts += [
            f"{name}\n{indented(self.sections[name], 2)}"
            for name in HEADINGS
            if name in self.sections
        ]
        settings = []
        for setting in self.settings:
            option = f"  --method.{setting.name.replace('_', '-')} {setting.default}"
            changed = setting.name in SHARED and setting.name in self.changed
            mark = "  (not the shared default)" if changed else ""
            settings.append(f"{option}{mark}\n{indented(setting.text, 6)}")
        parts.append("\n".join(["Settings and their defaults", *settings]))
        if self.idle:
            parts.append(f"Does nothing here\n{indented(', '.join(self.idle), 2)}")
        return "\n\n".join(parts)


SHARED = {field.name: field.default for field in fields(Method)}
"""The shared choices and their defaults."""


def card(name: str, kind: type[Method]) -> Card:
    """The card of a method; one from outside the package may lack what its file does not say.

    Raises ValueError naming a heading that the file of a method of the package lacks.
    """
    text = (sys.modules[kind.__module__].__doc__ or "").strip()
    title, *lines = text.splitlines() or [""]
    sections: dict[str, str] = {}
    heading = ""
    for line in lines:
        start, colon, rest = line.partition(":")
        if colon and start in HEADINGS:
            heading, line = start, rest
        if heading:
            sections[heading] = f"{sections.get(heading, '')} {line.strip()}".strip()
    if [method.__module__ for method in METHODS.values()].count(kind.__module__) > 1:
        title = cleandoc(kind.__doc__ or "").splitlines()[0]
    missing = [needed for needed in HEADINGS if needed not in sections]
    if missing and kind in METHODS.values():
        raise ValueError(f"the file of method {name!r} has no {missing[0]!r} in its docstring")
    values = {field.name: getattr(kind(), field.name) for field in fields(kind)}
    own = [n for n in values if n not in SHARED]
    used = [n for n in SHARED if n not in kind.idle]
    texts = field_texts(kind)
    return Card(
        name,
        title,
        sections,
        settings=tuple(Setting(n, shown(values[n]), texts.get(n, "")) for n in [*own, *used]),
        changed=tuple(n for n in [*own, *used] if n in own or values[n] != SHARED[n]),
        idle=tuple(n for n in SHARED if n in kind.idle),
    )


def cards() -> list[Card]:
    """The cards of all methods, in the order of the registry."""
    return [card(name, kind) for name, kind in METHODS.items()]


def listing() -> str:
    """All methods for the screen: a name, and below it title and paper."""
    return "\n".join(f"{c.name}\n{indented(c.title, 4)}\n{indented(c.paper, 4)}" for c in cards())


def table() -> str:
    """All methods as a Markdown table."""
    rows = [
        (f"`{c.name}`", c.paper, c.sections["Idea in one sentence"], c.sections["Formula"], own)
        for c in cards()
        for own in [c.defaults]
    ]
    return _markdown(("method", "paper", "idea", "formula", "defaults of its own"), rows)


def page() -> str:
    """The docs' page of methods: the cards, the shared choices, each method's own ones."""
    texts = field_texts(Method)
    shared = [(f"`{name}`", shown(value), texts[name]) for name, value in SHARED.items()]
    own = [
        (f"`{c.name}`", f"`{setting.name}`", setting.default, setting.text)
        for c in cards()
        for setting in c.settings
        if setting.name not in SHARED
    ]
    return "\n".join(
        [
            PAGE_HEAD,
            table(),
            "",
            SHARED_HEAD,
            _markdown(("choice", "default", "meaning"), shared),
            "",
            OWN_HEAD,
            _markdown(("method", "choice", "default", "meaning"), own),
        ]
    )


def _markdown(head: tuple[str, ...], rows: Sequence[tuple[str, ...]]) -> str:
    lines = [head, ("---",) * len(head), *rows]
    return "\n".join(
        "| " + " | ".join(cell.replace("|", "\\|") for cell in line) + " |" for line in lines
    )
