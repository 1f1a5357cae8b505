"""Secrets in what is recorded of a command: they belong into the environment, and stay there."""

import os
import re
from collections.abc import Mapping, Sequence

HIDDEN = "***"
LEAST = 6
"""Characters; shorter values of the environment are no secrets worth the name (ours)."""
NAMES = re.compile(r"(KEY|TOKEN|SECRET|PASSWORD|PASSWD|CREDENTIAL)S?(_|$)", re.IGNORECASE)
"""Names of environment variables that hold secrets."""
SHAPES = (
    re.compile(r"(?<=://)[^/\s@]+(?=@)"),
    re.compile(r"(?i)(?<=[?&;-])((?:api[_-]?)?key|\w*token|secret|password)=[^&\s]+"),
    re.compile(r"\b(?:hf_|sk-|ghp_|github_pat_|AKIA)[A-Za-z0-9_-]{16,}"),
)
"""Credentials in a URL, values that are named as secrets, keys of well-known makers."""


def without_secrets(words: Sequence[str], environment: Mapping[str, str] = os.environ) -> str:
    """A command line with *** for every secret of the environment and everything shaped as one."""
    line = " ".join(words)
    for name, value in environment.items():
        if NAMES.search(name) and len(value) >= LEAST:
            line = line.replace(value, HIDDEN)
    for shape in SHAPES:
        line = shape.sub(HIDDEN, line)
    return line
