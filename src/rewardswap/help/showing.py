"""How help comes onto the screen."""

import pydoc
import shutil
import sys
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from rewardswap.described import indented
from rewardswap.help.settings import settings_text
from rewardswap.help.shape import Help
from rewardswap.help.texts import GROUPS, HELPS

HELP = ("-h", "--help")
"""Words that ask for help."""
HEAD = "usage: rewardswap COMMAND ...   (rewardswap COMMAND --help: what it takes)"
TAIL = """\
rewardswap --version"""


def show_help(program: str, *settings: Any, words: Sequence[str] = ()) -> None:
    """Print the help of the command that `program` begins with, and the settings given.

    A word behind `--help` in `words` leaves only the settings that speak of it. On a terminal that
    the text does not fit on it is paged, so that its beginning is seen first.
    """
    about = _behind_help(words)
    rest = settings_text(*settings, about=about)
    if about:
        _page(f"{rest or f'no setting speaks of {about!r}'}\n")
        return
    text = help_of(program).screen()
    _page(f"{text}\n\n{rest}\n" if rest else f"{text}\n")


def _behind_help(words: Sequence[str]) -> str:
    """The word behind the first that asks for help, if it is no key."""
    behind = [after for word, after in pairwise(words) if word in HELP]
    return behind[0] if behind and not behind[0].startswith("-") else ""


def help_of(program: str) -> Help:
    """The help of the longest command that a program's words begin with; KeyError for none."""
    words = program.split()[1:]
    for count in range(len(words), 0, -1):
        if (name := " ".join(words[:count])) in HELPS:
            return HELPS[name]
    raise KeyError(f"there is no help of {program!r}")


def usage(commands: Mapping[str, object]) -> str:
    """All commands in their groups, as `rewardswap --help` prints them."""
    parts = [HEAD]
    for group, helps in GROUPS.items():
        rows = [
            indented(f"{one.command:10}  {one.summary}", 14, first=2)
            for one in helps
            if one.command in commands
        ]
        parts.append("\n".join([group, *rows]))
    return "\n\n".join([*parts, TAIL])


def _page(text: str) -> None:
    lines = text.count("\n")
    if sys.stdout.isatty() and lines >= shutil.get_terminal_size().lines:
        pydoc.pager(text)
    else:
        sys.stdout.write(text)
