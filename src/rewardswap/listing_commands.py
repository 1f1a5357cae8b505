"""The commands that list what there is: recipes and methods."""

from dataclasses import fields, is_dataclass
from inspect import cleandoc
from pathlib import Path
from typing import Any

from rich.console import Console

from rewardswap.configuration import Run
from rewardswap.described import indented, shown
from rewardswap.env_config import environment_name
from rewardswap.help.showing import HELP, show_help
from rewardswap.methods import method_name
from rewardswap.methods.cards import card, listing, page
from rewardswap.names import named, unknown
from rewardswap.options import UsageError, checked
from rewardswap.recipes import RECIPES
from rewardswap.settings import IDLE_SECTIONS, named_method

MORE_METHODS = """\
rewardswap methods NAME                one method with all its settings
rewardswap train RECIPE --method NAME  train with it
rewardswap methods --markdown          the table of docs/methods.md"""
MORE_RECIPES = """\
rewardswap recipes NAME                what one of them sets
rewardswap train NAME                  start it"""


def methods(words: list[str], console: Console) -> None:
    """List the methods that a loop can wrap; with a name, one method's card."""
    if words and words[0] in HELP:
        show_help("rewardswap methods")
        return
    if words == ["--markdown"]:
        text = page()
    elif not words:
        text = f"{listing()}\n\n{MORE_METHODS}"
    else:
        name = _only_name("method", words, ["--markdown"])
        text = checked(lambda: card(name, named_method(name)).text())
    _say(console, text)


def recipes(words: list[str], console: Console) -> None:
    """List the recipes; with a name, one of them."""
    if words and words[0] in HELP:
        show_help("rewardswap recipes")
        return
    if words:
        name = _only_name("recipe", words, [])
        _say(console, recipe_card(checked(lambda: named("recipe", name, RECIPES))()))
        return
    rows = [
        f"{name}\n{indented(cleandoc(make.__doc__ or '').splitlines()[0], 4)}"
        for name, make in RECIPES.items()
    ]
    _say(console, "\n".join([*rows, "", MORE_RECIPES]))


def recipe_card(run: Run) -> str:
    """What a recipe is, its settings that differ from the defaults, and how it is started."""
    about = cleandoc(RECIPES[run.recipe].__doc__ or "")
    settings = [f"  {setting}" for setting in _differing(run)]
    return "\n".join(
        [
            run.recipe,
            *(indented(part, 2) for part in about.split("\n\n")),
            "",
            f"method {method_name(run.method)}, environment {environment_name(run.env)}; what "
            "differs from the defaults:",
            *settings,
            "",
            "start it:",
            indented(f"rewardswap train {' '.join([run.recipe, *_needed(run)])}", 6, first=2),
        ]
    )


def _differing(run: Run) -> list[str]:
    """Settings that are not as in a run of the same method and environment by default."""
    plain = Run(recipe=run.recipe)
    parts: list[str] = []
    if type(run.method) is not type(plain.method):
        parts.append(f"--method {method_name(run.method)}  [{method_name(plain.method)}]")
    if type(run.env) is not type(plain.env):
        parts.append(f"--env {environment_name(run.env)}  [{environment_name(plain.env)}]")
    for name in (field.name for field in fields(run) if field.name not in IDLE_SECTIONS[run.loop]):
        value, default = getattr(run, name), getattr(plain, name)
        kind: Any = type(value)
        parts += _changes(name, value, default if kind is type(default) else kind())
    return parts


def _changes(name: str, value: Any, default: Any) -> list[str]:
    if value == default:
        return []
    if not is_dataclass(value):
        return [f"--{name.replace('_', '-')} {shown(value)}  [{shown(default)}]"]
    return [
        part
        for field in fields(value)
        for part in _changes(
            f"{name}.{field.name}", getattr(value, field.name), getattr(default, field.name)
        )
    ]


def _needed(run: Run) -> list[str]:
    """What has to be given beside the name: the folders of a model and of an environment's data."""
    if run.policy.model is None:
        return []
    folders = [f"--env.{field.name} FOLDER" for field in fields(run.env) if field.type == PATH]
    return ["--policy.model FOLDER", *folders]


PATH = Path | None


def _only_name(what: str, words: list[str], keys: list[str]) -> str:
    for word in words:
        if word.startswith("-"):
            raise UsageError(unknown("key", word, keys) if keys else f"unknown key {word!r}")
    if len(words) > 1:
        raise UsageError(f"one {what} at a time, got {' '.join(words)}")
    return words[0]


def _say(console: Console, text: str) -> None:
    console.print(text, highlight=False, markup=False, soft_wrap=True)
