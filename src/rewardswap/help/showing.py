"""How help comes onto the screen."""

import pydoc
import shutil
import sys
from collections.abc import Mapping
from typing import Any

from rewardswap.described import indented
from rewardswap.help.settings import settings_text
from rewardswap.help.shape import Help
from rewardswap.help.texts import GROUPS, HELPS

HEAD = "usage: rewardswap COMMAND ...   (rewardswap COMMAND --help: what it takes)"
TAIL = """\
rewardswap --version"""


def show_help(program: str, *settings: Any) -> None:
    """Print the help of the command that `program` begins with, and the settings given.

    On a terminal that it does not fit on it is paged, so that its beginning is seen first.
    """
    text = help_of(program).screen()
    rest = settings_text(*settings)
    _page(f"{text}\n\n{rest}\n" if rest else f"{text}\n")


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
