"""The command `rewardswap completion`."""

from rich.console import Console

from rewardswap.help.showing import HELP, show_help
from rewardswap.names import unknown
from rewardswap.options import UsageError

SHELLS = ("bash", "zsh")


def completion(words: list[str], console: Console) -> None:
    """Print the script of a shell."""
    if not words or words[0] in HELP:
        show_help("rewardswap completion")
        return
    if len(words) > 1:
        raise UsageError(f"one shell at a time, got {' '.join(words)}")
    if words[0] not in SHELLS:
        raise UsageError(unknown("shell", words[0], SHELLS))
    from rewardswap.completion.script import script

    console.file.write(f"{script(words[0])}\n")
