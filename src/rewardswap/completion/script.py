"""The script of a shell, made by shtab from a parser that stands for all commands."""

from argparse import ArgumentParser
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args, get_origin

import shtab

from rewardswap.completion.settings import Key, command_keys
from rewardswap.env_config import ENVIRONMENTS
from rewardswap.experiments.registry import EXPERIMENTS
from rewardswap.help.texts import HELPS
from rewardswap.methods import METHODS
from rewardswap.model_fetch.sources import SOURCES
from rewardswap.recipes import RECIPES
from rewardswap.rewards.sources import LEARNED, RULES
from rewardswap.sft import LESSONS

FOLDERS = ("model", "by", "policy.model", "reward.folder", "output", "resume", "data", "env.data")
"""Keys that take a folder."""
WORDS: Mapping[str, Iterable[str]] = {
    "train": RECIPES,
    "plan": RECIPES,
    "recipes": RECIPES,
    "methods": METHODS,
    "experiment": EXPERIMENTS,
    "model fetch": SOURCES,
    "completion": ("bash", "zsh"),
}
"""What stands first behind a command; the files of the folder are offered beside it."""
WORDS_OF_KEYS: Mapping[str, Sequence[str]] = {
    "reward.dense": (LEARNED, *RULES),
    "reward": RULES,
}
"""Names that a key knows, beside files, folders and functions that it takes as well."""
RUNS = ("view", "diagnose", "export")
"""Commands that read folders of runs and no files."""
PREAMBLE = {
    "bash": '_rewardswap_{name}() {{ compgen -W "{words}" -- "$1"; compgen -f -- "$1"; }}',
    "zsh": "_rewardswap_{name}() {{ compadd -- {words}; _files }}",
}
"""A shell's function that offers words and files."""


def script(shell: str) -> str:
    """What `shell` (bash or zsh) has to read once; raises KeyError for another one."""
    functions = [
        PREAMBLE[shell].format(name=_slug(name), words=" ".join(words))
        for name, words in WORDS.items()
    ]
    preamble: Any = {shell: "\n".join(functions)}
    return shtab.complete(_parser(), shell=shell, preamble=preamble)


def _parser() -> ArgumentParser:
    root = ArgumentParser("rewardswap")
    root.add_argument("--version", action="store_true", help="the version")
    parsers: dict[str, Any] = {"": root}
    inner: dict[str, Any] = {}
    keys = command_keys()
    for name, about in HELPS.items():
        for depth in range(len(name.split())):
            _add(parsers, inner, name.split()[: depth + 1], about.summary)
        _fill(parsers[name], name, keys.get(name, {}))
    return root


def _add(parsers: dict[str, Any], inner: dict[str, Any], words: list[str], summary: str) -> None:
    """A parser for a command, once, inside that of the words before its last."""
    name, above = " ".join(words), " ".join(words[:-1])
    if name in parsers:
        return
    if above not in inner:
        inner[above] = parsers[above].add_subparsers()
    parsers[name] = inner[above].add_parser(words[-1], help=summary, description=summary)


def _fill(parser: ArgumentParser, name: str, keys: Mapping[str, Key]) -> None:
    named = {f"{name} {word}" for word in ("collect", "fetch", "list", "prepare", "generate")}
    if name in WORDS:
        function = f"_rewardswap_{_slug(name)}"
        _completed(parser.add_argument("what", nargs="?"), {"bash": function, "zsh": function})
    elif not named & HELPS.keys():
        way = shtab.DIRECTORY if name in RUNS else shtab.FILE
        _completed(parser.add_argument("files", nargs="*"), way)
    if name in ("train", "plan", "demo"):
        parser.add_argument("--method", choices=list(METHODS), help="the method")
    if any(key.startswith("--env.") for key in keys):
        worlds = LESSONS if name == "sft" else ENVIRONMENTS
        parser.add_argument("--env", choices=list(worlds), help="the environment")
    if name == "train":
        _completed(parser.add_argument("--resume", help="a run's folder"), shtab.DIRECTORY)
    for key, about in keys.items():
        _add_key(parser, key, about)


def _add_key(parser: ArgumentParser, key: str, about: Key) -> None:
    several = get_origin(about.hint) is tuple
    option = parser.add_argument(
        key,
        choices=about.choices or WORDS_OF_KEYS.get(key.removeprefix("--")),
        nargs="+" if several else None,
        help=about.text.split(". ")[0].replace("%", "%%"),
    )
    if key.removeprefix("--") in FOLDERS:
        _completed(option, shtab.DIRECTORY)
    elif Path in (about.hint, *get_args(about.hint)):
        _completed(option, shtab.FILE)


def _completed(action: Any, way: Any) -> None:
    """Say how an argument is completed, in the attribute that shtab reads."""
    action.complete = way


def _slug(name: str) -> str:
    return name.replace(" ", "_")
