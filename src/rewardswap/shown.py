"""Text of models, environments and files as a person may see it: nothing in it steers anything."""

import re

from rich import box
from rich.table import Table
from rich.text import Text

UNSEEN = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]"
)
"""Control, bidirectional-override and surrogate characters; not newline and tab."""


def visible_text(text: str) -> str:
    """Text with terminal escapes and other unseen characters replaced by symbols for them."""
    return UNSEEN.sub(_symbol, text)


def cell(text: str) -> Text:
    """Text for a table on screen: its escapes are seen, and its square brackets are no markup."""
    return Text(visible_text(text))


def slim_table(title: str, caption: str | None = None) -> Table:
    """A table without bars, so that the long names of ALFWorld's types fit a line of 80."""
    return Table(
        title=title,
        caption=caption,
        title_justify="left",
        caption_justify="left",
        box=box.SIMPLE_HEAD,
        pad_edge=False,
        collapse_padding=True,
        show_edge=False,
    )


def _symbol(match: re.Match[str]) -> str:
    code = ord(match.group())
    if code < 0x20:
        return chr(0x2400 + code)
    return "\u2421" if code == 0x7F else f"\\u{code:04x}"
