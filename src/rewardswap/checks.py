"""Checks of settings: each raises ValueError naming the setting and its value."""

import re

LEAST_TEMPERATURE = 0.001
"""Below it float32 leaves nothing of the differences between logits; 0, greedy, is apart (ours)."""


def at_least(bound: int | float, **settings: int | float) -> None:
    """Raise ValueError for a number below `bound`."""
    for name, value in settings.items():
        if value < bound:
            raise ValueError(f"{name} must be at least {bound}, got {value}")


def positive(**settings: float) -> None:
    """Raise ValueError for a number that is not above 0."""
    for name, value in settings.items():
        if not value > 0:
            raise ValueError(f"{name} must be above 0, got {value}")


NAME = re.compile(r"[a-z0-9]([a-z0-9._-]{0,98}[a-z0-9_-])?")
"""Names that are names of folders everywhere."""
RESERVED = re.compile(r"(con|prn|aux|nul|com[0-9]|lpt[0-9])(\..*)?")
"""Names that Windows keeps for devices."""


def folder_name(what: str, name: str) -> None:
    """Raise ValueError for a name that cannot name a folder everywhere."""
    if not NAME.fullmatch(name) or RESERVED.fullmatch(name):
        raise ValueError(
            f"{what} {name!r} cannot name a folder everywhere; take at most 100 small letters, "
            "digits, '.', '_' and '-', with a letter or digit first, and no name of a device"
        )


def plain_text(what: str, text: str) -> None:
    """Raise ValueError for what no file can hold as text: NUL, and bytes that are no UTF-8."""
    if any(c == "\0" or "\ud800" <= c <= "\udfff" for c in text):
        raise ValueError(f"{what} {text!r} holds NUL or bytes that are no UTF-8; leave them out")
