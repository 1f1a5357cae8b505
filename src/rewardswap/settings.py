"""Configurations as TOML: written as resolved, read back strictly."""

import dataclasses
import tomllib
import types
import typing
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args, get_origin, get_type_hints

import tomli_w

from rewardswap.checks import plain_text
from rewardswap.configuration import Run
from rewardswap.env_config import ENVIRONMENTS, environment_name
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.methods import METHODS, method_class, method_name
from rewardswap.methods.base import Method
from rewardswap.names import dotted, named, unknown

Value = TypeVar("Value")

IDLE_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "rspo": (),
    "dense": ("swap",),
    "on_policy": ("swap", "reward"),
}
"""Sections of `Run` that a loop does not read."""


def write_run(run: Run, path: Path) -> None:
    """Write every setting that the run uses; `read_run` gives an equal run back."""
    beside = path.with_suffix(".part")
    beside.write_text(tomli_w.dumps(as_toml(run)), encoding="utf-8")
    beside.replace(path)


def read_run(path: Path) -> Run:
    """Read a run that `write_run` or a person wrote.

    Raises ValueError for text that is not TOML, unknown keys (naming the nearest), wrong types,
    and settings that would do nothing.
    """
    try:
        settings = tomllib.loads(path.read_text(encoding="utf-8"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"{path} is not a TOML file: {error}") from error
    loop = str(settings.get("loop", "rspo"))
    for section in IDLE_SECTIONS.get(loop, ()):
        if section in settings:
            raise ValueError(f"{path}: [{section}] does nothing in loop {loop!r}")
    run: Run = _value(Run, settings, str(path))
    return run


def named_method(name: str) -> type[Method]:
    """The method of a name or a `module:attribute`; ValueError names the nearest known one."""
    try:
        return method_class(name)
    except KeyError:
        raise ValueError(unknown("method", name, METHODS)) from None


def named_environment(name: str) -> type[EnvironmentConfig]:
    """The environment of a name; ValueError names the nearest known one."""
    return named("environment", name, ENVIRONMENTS)


def as_toml(run: Run) -> dict[str, Any]:
    """The settings that a run uses, as the tables of its config.toml."""
    settings: dict[str, Any] = _plain(dataclasses.asdict(run))
    settings["method"] = {"name": method_name(run.method), **settings["method"]}
    settings["env"] = {"name": environment_name(run.env), **settings["env"]}
    for section in IDLE_SECTIONS[run.loop]:
        del settings[section]
    return settings


def _plain(value: Any) -> Any:
    """TOML has no null: None is the word "none"."""
    if value is None:
        return "none"
    if isinstance(value, Mapping):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, tuple | list):
        return [_plain(part) for part in value]
    return str(value) if isinstance(value, Path) else value


def _value(hint: Any, raw: Any, where: str) -> Any:
    """`raw` as the annotated type, or ValueError saying where it is wrong."""
    if dataclasses.is_dataclass(hint) and isinstance(hint, type):
        return _dataclass(hint, raw, where)
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (types.UnionType, typing.Union):
        if raw == "none":
            return None
        return _value(next(a for a in arguments if a is not type(None)), raw, where)
    if origin is typing.Literal:
        if raw not in arguments:
            raise ValueError(f"{where} must be one of {list(arguments)}, got {raw!r}")
        return raw
    if origin is tuple and isinstance(raw, list):
        inner = arguments[:1] * len(raw) if arguments[-1] is Ellipsis else arguments
        if len(inner) == len(raw):
            return tuple(_value(i, r, where) for i, r in zip(inner, raw, strict=True))
    if isinstance(raw, str):
        plain_text(where, raw)
    if hint is Path and isinstance(raw, str):
        return Path(raw)
    if hint is float and type(raw) is int:
        return _float(raw, where)
    if not isinstance(hint, type) or type(raw) is not hint:
        raise ValueError(f"{where} must be of type {getattr(hint, '__name__', hint)}, got {raw!r}")
    return raw


def _float(raw: int, where: str) -> float:
    try:
        return float(raw)
    except OverflowError as error:
        raise ValueError(
            f"{where} must be below 1e308 in size, got a longer whole number"
        ) from error


def _dataclass(hint: type[Value], raw: Any, where: str) -> Value:
    if hint in (Method, EnvironmentConfig):
        if isinstance(raw, str):
            raw = {"name": raw}
        if isinstance(raw, Mapping):
            hint, raw = _named(hint, raw, where)
    if not isinstance(raw, Mapping):
        raise ValueError(f"{where} must be a table of settings, got {raw!r}")
    hints = {n: h for n, h in get_type_hints(hint).items() if get_origin(h) is not typing.ClassVar}
    for name in raw:
        if name not in hints:
            raise ValueError(f"{where}: {unknown('key', str(name), hints)}")
    inside = f"{where}: " if hint is Run else f"{where}."
    values = {name: _value(hints[name], part, f"{inside}{name}") for name, part in raw.items()}
    try:
        return hint(**values)
    except (TypeError, ValueError) as error:
        said = str(error)
        raise ValueError(
            f"{where}: {said}" if hint is Run else dotted(where, said, hints)
        ) from error


def _named(hint: type[Value], raw: Mapping[str, Any], where: str) -> tuple[type[Value], Any]:
    """The method or environment that a table names, and the other settings of the table."""
    rest = {key: part for key, part in raw.items() if key != "name"}
    if hint is EnvironmentConfig:  # a file without a name is from before there were others
        kind: type = named_environment(str(raw.get("name", "alfworld")))
    elif "name" in raw:
        kind = named_method(str(raw["name"]))
    else:
        raise ValueError(f"{where} needs a name; `rewardswap methods` lists them")
    return typing.cast(type[Value], kind), rest
