"""What the commands for process reward models have in common on the command line."""

from collections.abc import Sequence
from pathlib import Path

from rich.console import Console

from rewardswap.help.showing import HELP
from rewardswap.options import UsageError, leading
from rewardswap.rewards.cache import FeatureCache


def data_after(words: Sequence[str], program: str) -> tuple[Path, list[str]]:
    """The folder of a collection, which comes first, and the other words; any where help is asked.

    Raises UsageError where there is none, or a second word.
    """
    first, rest = leading(words)
    if any(word in HELP for word in rest):
        return Path(), rest
    if len(first) != 1:
        raise UsageError(f"{program} needs the folder of one collection first, got {first}")
    return Path(first[0]), rest


def cache_of(folder: Path | None) -> FeatureCache | None:
    """The cache of a folder, which is made; raises UsageError where it cannot be."""
    if folder is None:
        return None
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise UsageError(f"--cache {folder} cannot be made: {error.strerror}") from error
    return FeatureCache(folder)


def say_cache(cache: FeatureCache | None, console: Console) -> None:
    """Say how many forward passes were read from disk, and how many were computed."""
    if cache is not None:
        said = f"{cache.hits} forward passes read from {cache.folder}, {cache.misses} computed"
        console.print(said, highlight=False, markup=False)
