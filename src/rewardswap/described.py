"""What settings say of themselves: the docstrings of their fields, and their values as words."""

import ast
import inspect
import textwrap
from dataclasses import is_dataclass
from itertools import pairwise
from typing import Any

WIDTH = 80
"""Most characters of a line on the screen."""


def field_texts(kind: type) -> dict[str, str]:
    """The docstrings of a dataclass's fields, each in one line.

    A field that a subclass repeats may leave it out. Raises OSError for a class without a file.
    """
    found: dict[str, str] = {}
    for parent in reversed(kind.__mro__):
        if not is_dataclass(parent):
            continue
        body = ast.parse(textwrap.dedent(inspect.getsource(parent))).body[0]
        for field, text in pairwise(ast.iter_child_nodes(body)):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr):
                said = str(ast.literal_eval(text.value))
                found[ast.unparse(field.target)] = " ".join(said.split())
    return found


def shown(value: Any) -> str:
    """A value as the command line takes it."""
    if isinstance(value, tuple):
        return " ".join(shown(part) for part in value)
    return str(value).lower() if value is None or isinstance(value, bool) else str(value)


def indented(text: str, by: int, first: int | None = None) -> str:
    """Text in lines below 80 characters that begin with `by` spaces, the first with `first`."""
    return textwrap.fill(
        text,
        WIDTH - 1,
        initial_indent=" " * (by if first is None else first),
        subsequent_indent=" " * by,
        break_on_hyphens=False,
    )
