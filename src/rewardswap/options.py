"""Settings from the words of a command line; what is wrong with them, in one line."""

import copy
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, fields, is_dataclass
from functools import partial
from io import StringIO
from itertools import takewhile
from types import NoneType
from typing import Any, Literal, TypeVar, get_args, get_origin, get_type_hints

import tyro

from rewardswap.help.showing import HELP, show_help
from rewardswap.names import dotted, unknown

Settings = TypeVar("Settings")

LONGEST_LINE = 1000
"""Most characters of an error that are shown."""


@dataclass(frozen=True)
class Choice:
    """A setting that an option of its own replaces as a whole, by a name."""

    setting: str
    """Name of the setting, and of the option."""
    named: Callable[[str], type]
    """The class of a name; raises ValueError for an unknown one."""
    names: str
    """Where the names are found, for a person who gives none."""


class UsageError(Exception):
    """A mistake of the caller: one line, exit code 2."""


def leading(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words before the first key, and the others."""
    first = list(takewhile(lambda word: not word.startswith("-"), words))
    return first, list(words[len(first) :])


def one_line(said: object) -> str:
    """What an error or a text says, in one line without characters that steer a terminal.

    Of more than 1,000 characters the middle is left out, with how many these were (ours).
    """
    line = " ".join(str(said).split())
    line = "".join(c for c in line if c.isprintable())
    if len(line) <= LONGEST_LINE:
        return line
    half = LONGEST_LINE // 2
    left_out = f" [... {len(line) - 2 * half} characters ...] "
    return line[:half] + left_out + line[-half:]


def checked(build: Callable[[], Settings]) -> Settings:
    """The value, with a ValueError of its making as a caller's mistake."""
    try:
        return build()
    except ValueError as error:
        raise UsageError(str(error)) from error


def parse(
    kind: type[Settings],
    default: Settings | None,
    words: list[str],
    program: str,
    elsewhere: Mapping[str, str] | None = None,
    beside: Iterable[str] = (),
) -> Settings:
    """The settings with the changes of the command line; unknown keys name the nearest one.

    `elsewhere` says of keys that other choices have what to give for them, `beside` names keys
    that the program has read before, one of which may have been meant. A word that asks for
    help prints that of the command and ends with exit code 0.
    """
    if any(word in HELP for word in words):
        show_help(program, kind if default is None else default, words=words)
        raise SystemExit(0)
    start: dict[str, Any] = {} if default is None else {"default": default}
    options = option_types(kind if default is None else default)
    for word in words:
        key = word.split("=", 1)[0]
        if key.startswith("--") and key.replace("_", "-") not in options:
            hint = (elsewhere or {}).get(key.replace("_", "-"))
            if hint is not None:
                raise UsageError(f"{key} {hint}")
            raise UsageError(unknown("key", key, {*options, *beside}).split(" Known:")[0])
    printed = StringIO()
    try:
        with redirect_stderr(printed), redirect_stdout(printed):
            read = partial(
                tyro.cli,
                kind,
                prog=program,
                args=_spelled(words, options),
                config=(tyro.conf.FlagConversionOff,),
                **start,
            )
            settings: Settings = checked(read)
            return settings
    except SystemExit:
        raise UsageError(_first_reason(printed.getvalue(), words, options)) from None


def with_choices(
    start: Settings, words: Sequence[str], *choices: Choice
) -> tuple[Settings, list[str]]:
    """The settings with what `--method NAME` and its like choose, and the other words.

    Whether these and the other settings go together is checked when all words are read.
    """
    rest = list(words)
    for choice in choices:
        name, rest = _named_last(choice, rest)
        if name is None:
            continue
        kind = checked(partial(choice.named, name))
        if type(getattr(start, choice.setting)) is not kind:
            start = copy.copy(start)
            object.__setattr__(start, choice.setting, checked(kind))
    return start, rest


def _named_last(choice: Choice, words: Sequence[str]) -> tuple[str | None, list[str]]:
    """What the choice's option is given last, none without it, and the other words."""
    found: str | None = None
    rest: list[str] = []
    given = iter(words)
    for word in given:
        key, equals, value = word.partition("=")
        if key != f"--{choice.setting}":
            rest.append(word)
            continue
        found = value if equals else next(given, "")
        if not found or found.startswith("--"):
            raise UsageError(f"--{choice.setting} needs a name; {choice.names}")
    return found, rest


def refuse_named(idle: Mapping[str, Sequence[str]], words: Sequence[str]) -> None:
    """Raise UsageError for an option that does nothing; `idle` has their starts by the reason."""
    for reason, starts in idle.items():
        for word in words:
            key = word.split("=")[0].replace("_", "-")
            if key.startswith(tuple(f"--{start}" for start in starts)):
                raise UsageError(f"{key} does nothing {reason}")


def option_types(settings: Any, prefix: str = "--") -> dict[str, Any]:
    """All options of a settings class or of a value of one, nested ones dotted, and their types."""
    kind = settings if isinstance(settings, type) else type(settings)
    found: dict[str, Any] = {}
    hints = get_type_hints(kind)
    for name in (setting.name for setting in fields(kind)):
        option = prefix + name.replace("_", "-")
        inner = hints[name] if isinstance(settings, type) else getattr(settings, name)
        if is_dataclass(inner):
            found |= option_types(inner, f"{option}.")
        else:
            found[option] = hints[name]
    return found


def _spelled(words: Sequence[str], options: Mapping[str, Any]) -> list[str]:
    """The words with `none`, `true` and `false` as tyro spells them, where a setting takes them."""
    spelled: list[str] = []
    key = ""
    for word in words:
        start, equals, value = word.partition("=")
        if word.startswith("--"):
            key = start.replace("_", "-")
        else:
            start, equals, value = "", "", word
        hint = options.get(key)
        if (value.lower() == "none" and NoneType in get_args(hint)) or (
            value.lower() in ("true", "false") and hint is bool
        ):
            value = value.capitalize()
        spelled.append(start + equals + value)
    return spelled


def _first_reason(text: str, words: Sequence[str], options: Mapping[str, Any]) -> str:
    """What tyro's framed message says, in one line that names the setting."""
    lines = [line.strip(" │╭╮╰╯─") for line in text.splitlines()]
    kept = [line for line in lines if not line.startswith("For full helptext")]
    said = " ".join(line for line in kept if line.strip("-"))
    said = said.removeprefix("Value error ")
    named = re.search(r"(?:Error parsing |argument ')(--[a-z0-9.-]+)", said)
    if named is not None and named[1].rstrip(".") in options:
        option = named[1].rstrip(".")
        name = option.removeprefix("--").replace("-", "_")
        return f"{name} must be {_wanted(options[option])}, got {_given(words, option)}"
    missing = re.match(r"Required options Missing from [^:]*: (\S+)", said)
    if missing is not None:
        return f"--{missing[1].removeprefix('--')} is missing; give it a value"
    section, colon, message = said.removeprefix("Error parsing ").partition(": ")
    if said.startswith("Error parsing ") and colon:
        prefix = f"--{section}."
        inside = [key.removeprefix(prefix) for key in options if key.startswith(prefix)]
        if inside:
            return dotted(section, message, [key.replace("-", "_") for key in inside])
        return message
    if "Unrecognized options: " in said:
        return f"words that belong to no key: {said.rpartition(': ')[2]}"
    return said or "the settings could not be read"


def _wanted(hint: Any) -> str:
    """What a setting of this type takes, in words."""
    plain = {bool: "true or false", int: "a whole number", float: "a number"}
    inner = get_args(hint)
    if get_origin(hint) is Literal:
        return f"one of {', '.join(inner)}"
    if get_origin(hint) is tuple:
        count = "" if inner[-1] is Ellipsis else f"{len(inner)} "
        return f"{count}words" if inner[0] is str else f"{count}numbers"
    if NoneType in inner:
        return f"{_wanted(next(part for part in inner if part is not NoneType))} or none"
    return plain.get(hint, "one word")


def _given(words: Sequence[str], option: str) -> str:
    """What the command line gives to an option, quoted."""
    values: list[str] = []
    key = ""
    for word in words:
        if word.startswith("--"):
            start, equals, value = word.partition("=")
            key = start.replace("_", "-")
            if key == option:
                values = [value] if equals else []
        elif key == option:
            values.append(word)
    return repr(" ".join(values)) if values else "nothing"
