"""Every setting of a command with what it takes, its default and its docstring."""

from collections.abc import Iterator
from dataclasses import MISSING, dataclass, fields, is_dataclass
from inspect import cleandoc
from pathlib import Path
from types import NoneType
from typing import Any, Literal, get_args, get_origin, get_type_hints

from rewardswap.described import field_texts, indented, shown

LEGEND = (
    "settings: N is a whole number, X a number; [..] is the default; `none`, `true` and `false` "
    "are written as they are; `--help WORD` shows those alone that speak of WORD"
)
PLAIN = {bool: "true | false", int: "N", float: "X", Path: "PATH"}


@dataclass(frozen=True)
class Line:
    """One setting in words."""

    key: str
    """As the command line has it, with its dashes."""
    takes: str
    default: str | None
    """None: it has to be given."""
    text: str
    """Its docstring in one line: unit, and whose choice the default is."""

    def __str__(self) -> str:
        default = "must be given" if self.default is None else self.default
        head = f"{self.key} {self.takes}  [{default}]"
        return f"{indented(head, 6, first=2)}\n{indented(self.text, 6)}"


@dataclass(frozen=True)
class Section:
    """The settings of one dataclass."""

    title: str
    """What they are about; empty for a command's own ones."""
    lines: tuple[Line, ...]

    def about(self, word: str) -> "Section":
        """The section with those settings alone that have a word in them, in any case."""
        word = word.lower().replace("_", "-")
        kept = [line for line in self.lines if word in str(line).lower().replace("_", "-")]
        return Section(self.title, tuple(kept))


def sections(settings: Any, prefix: str = "", title: str = "") -> Iterator[Section]:
    """The settings of a value or of a class, nested ones behind those around them."""
    kind = settings if isinstance(settings, type) else type(settings)
    hints, texts = get_type_hints(kind), field_texts(kind)
    lines: list[Line] = []
    nested: list[tuple[str, Any, str]] = []
    for field in fields(kind):
        value = field.default if isinstance(settings, type) else getattr(settings, field.name)
        key = f"{prefix}{field.name.replace('_', '-')}"
        text = texts.get(field.name, "")
        if is_dataclass(value):
            nested.append((f"{key}.", value, text or _about(value)))
            continue
        default = None if value is MISSING else shown(value) or "nothing"
        lines.append(Line(f"--{key}", takes(hints[field.name]), default, text))
    if lines:
        yield Section(title, tuple(lines))
    for start, value, text in nested:
        yield from sections(value, start, f"--{start}*: {text}")


def takes(hint: Any) -> str:
    """What a setting of this type takes, in signs and words."""
    inner, origin = get_args(hint), get_origin(hint)
    if origin is Literal:
        return " | ".join(str(choice) for choice in inner)
    if origin is tuple:
        one = takes(inner[0])
        return f"{one} ..." if inner[-1] is Ellipsis else " ".join(map(takes, inner))
    if NoneType in inner:
        return " | ".join([*(takes(part) for part in inner if part is not NoneType), "none"])
    return PLAIN.get(hint, "TEXT")


def _about(value: Any) -> str:
    """The first paragraph of a class's docstring in one line, without what it raises."""
    return " ".join(cleandoc(value.__doc__ or "").split("\n\n")[0].partition("Raises")[0].split())


def settings_text(*settings: Any, about: str = "") -> str:
    """The settings of values or classes that speak of `about` as text; empty where none does."""
    everything = [section for each in settings for section in sections(each)]
    found = [part for section in everything if (part := section.about(about)).lines]
    if not found:
        return ""
    parts = [indented(LEGEND, 2, first=0)]
    for section in found:
        lines = "\n".join(map(str, section.lines))
        parts.append(f"{indented(section.title, 2, first=0)}\n{lines}" if section.title else lines)
    return "\n\n".join(parts)
