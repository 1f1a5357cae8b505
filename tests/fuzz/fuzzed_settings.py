"""Words of the command line, and TOML files of runs and of experiments."""

import json
import string
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import cache
from pathlib import Path
from random import Random
from types import NoneType
from typing import Any, Literal, get_args, get_origin
from unittest.mock import patch

import tomli_w
from fuzzed import ReachedError, command
from fuzzed_values import NUMBERS, changed, damaged, text, value

import rewardswap.sft
from rewardswap.comparison.command import ReportSettings
from rewardswap.configuration import Run
from rewardswap.data import GenerateWebShop, PrepareWebShop
from rewardswap.env_config import ENVIRONMENTS
from rewardswap.evaluation_command import EvaluationRun
from rewardswap.experiments.command import ExperimentSettings
from rewardswap.export_command import ExportSettings
from rewardswap.methods import METHODS, method_class
from rewardswap.model_fetch.command import Fetch
from rewardswap.options import option_types
from rewardswap.prm.collect_settings import Collecting
from rewardswap.prm.eval_command import Judging
from rewardswap.prm.train_command import Fitting
from rewardswap.recipes import RECIPES
from rewardswap.run_folder import RunFolder
from rewardswap.settings import as_toml, read_run, write_run

HEAVY = (
    "rewardswap.training_commands._rehearse",
    "rewardswap.plan.command.plan_run",
    "rewardswap.stage.make_stage",
    "rewardswap.prm.collect_command._Collector.collection",
    "rewardswap.data.write_catalogue",
    "rewardswap.model_fetch.fetching.fetch",
    "rewardswap.experiments.command._run",
)
"""Where settings were read and the work begins."""
STARTS: Mapping[tuple[str, ...], Any] = {
    **{("train", name): RECIPES[name]() for name in RECIPES},
    ("plan", "demo"): RECIPES["demo"](),
    ("demo",): RECIPES["demo"](),
    ("eval",): EvaluationRun(),
    ("sft",): rewardswap.sft.BaseAgentConfig(),
    ("export", "run"): ExportSettings,
    ("prm", "collect", "--output", "data"): Collecting(),
    ("prm", "train", "data"): Fitting(),
    ("prm", "eval", "data"): Judging(),
    ("experiment", "smoke"): ExperimentSettings(),
    ("report", "run"): ReportSettings(),
    ("data", "generate", "webshop"): GenerateWebShop,
    ("data", "prepare", "webshop"): PrepareWebShop,
    ("model", "fetch", "smollm2-135m"): Fetch(),
    ("methods",): None,
    ("recipes",): None,
}
"""Commands and what they read."""


def _reached(*words: object, **named: object) -> None:
    raise ReachedError


def _train(run: Run, cluster: object, console: object) -> None:
    """In place of training: what must hold of every run that was accepted."""
    write_run(run, Path("accepted.toml"))
    again = as_toml(read_run(Path("accepted.toml")))
    assert again == as_toml(run), "it is read back as another run"
    made = run.output or Path("runs") / f"{run.recipe}-now"
    inside = Path.cwd() in (Path.cwd() / made).resolve().parents
    if run.output is None or inside:
        folder = RunFolder(made)
        folder.write_environment()
        folder.close()
        _remove(made)
    raise ReachedError


def _remove(folder: Path) -> None:
    for path in sorted(folder.rglob("*"), reverse=True):
        path.rmdir() if path.is_dir() else path.unlink()
    folder.rmdir()


@contextmanager
def settings_only() -> Iterator[None]:
    """Commands read their settings and end with ReachedError where the work would begin."""
    with ExitStack() as stack:
        stack.enter_context(patch("rewardswap.training_commands._train", _train))
        stack.enter_context(patch.object(rewardswap.sft, "run", _reached))
        for name in HEAVY:
            stack.enter_context(patch(name, _reached))
        yield


@cache
def options() -> Mapping[str, Any]:
    """Every option of every command, and its type."""
    found: dict[str, Any] = {"--help": bool, "--dry-run": bool, "--env": str, "--method": str}
    for settings in filter(None, STARTS.values()):
        found |= option_types(settings)
    for env in ENVIRONMENTS.values():
        found |= option_types(env(), "--env.")
    for name in METHODS:
        found |= option_types(method_class(name)(), "--method.")
    return found


def _word(hint: Any, random: Random) -> list[str]:
    """Words for a setting of a type: most of them such as it takes."""
    draw = random.random()
    inner = [part for part in get_args(hint) if part is not NoneType]
    if draw < 0.25:
        return [text(random)]
    if draw < 0.35:
        return [str(random.choice(NUMBERS[:-6]))]
    if get_origin(hint) is Literal:
        return [str(random.choice(inner))]
    if get_origin(hint) is tuple:
        return [_word(inner[0], random)[0] for _ in range(random.randint(0, 3))]
    if inner:
        return _word(inner[0], random)
    if hint is bool:
        return [random.choice(("true", "false", "True", "1"))]
    if hint in (int, float):
        return [str(random.choice((0, 1, 2, 3, 4, 8, 64, 0.1, 0.5, 0.25)))]
    return [random.choice(("x", "runs/x", "grpo", "ppo", "webshop", "progress", "none"))]


@cache
def _own(start: tuple[str, ...]) -> list[str]:
    """The options of one command."""
    return list(option_types(STARTS[start])) if STARTS[start] else ["--markdown"]


def _key(start: tuple[str, ...], random: Random) -> str:
    key = random.choice(_own(start) if random.random() < 0.9 else list(options()))
    draw = random.random()
    if draw < 0.1:  # nearly a key
        place = random.randrange(len(key) + 1)
        return key[:place] + random.choice(string.printable) + key[place + 1 :]
    return f"--{text(random)}" if draw < 0.15 else key


def words(random: Random, folder: Path) -> None:
    """A command with one to four options, true ones, near ones and strange ones."""
    start = random.choice(list(STARTS))
    said = list(start)
    if random.random() < 0.1:
        said[random.randrange(len(said))] = text(random)
    for _ in range(random.choice((1, 1, 2, 3, 4))):
        key = _key(start, random)
        given = _word(options().get(key), random)
        joined = random.random() < 0.3 and len(given) == 1
        said += [f"{key}={given[0]}"] if joined else [key, *given]
    if random.random() < 0.05:
        said.insert(random.randrange(len(said) + 1), text(random))
    with settings_only():
        command(said)


def _toml(content: Any) -> bytes:
    """TOML of JSON values; what TOML cannot hold is a text."""
    whole = json.loads(json.dumps(content), parse_constant=float)
    return tomli_w.dumps(_without_none(whole)).encode("utf-8", "surrogatepass")


def _without_none(content: Any) -> Any:
    if isinstance(content, dict):
        return {key: _without_none(part) for key, part in content.items()}
    if isinstance(content, list):
        return [_without_none(part) for part in content]
    return "none" if content is None else content


@cache
def _runs() -> list[dict[str, Any]]:
    """Runs that recipes say, with every method, as tables."""
    made = [make() for make in RECIPES.values()]
    start = RECIPES["demo-grpo"]()
    made += [replace(start, method=method_class(name)()) for name in METHODS]
    return [as_toml(run) for run in made]


def _spoiled_toml(content: Any, random: Random) -> bytes:
    draw = random.random()
    if draw < 0.65:
        table = changed(content, random)
        return _toml(table if isinstance(table, dict) else {"x": table})
    whole = _toml(content)
    if draw < 0.75:  # a line twice, or another line
        lines = whole.split(b"\n")
        line = random.choice((random.choice(lines), _line(random)))
        lines.insert(random.randrange(len(lines)), line)
        return b"\n".join(lines)
    return damaged(whole, random)


def _line(random: Random) -> bytes:
    deep = random.choice((100, 5000))
    return random.choice(
        (
            b"x = " + b"[" * deep,
            b"x = " + b"{a=" * deep + b"1" + b"}" * deep,
            b".".join([b"a"] * deep) + b" = 1",
            b"[" + b".".join([b"env"] * 3) + b"]",
            b"seed = 1979-05-27T07:32:00Z",
            b"seed = " + b"9" * 5000,
            f"{text(random)!r} = 1".encode("utf-8", "surrogatepass"),
        )
    )


def run_files(random: Random, folder: Path) -> None:
    """The config.toml of a run, spoiled."""
    (folder / "config.toml").write_bytes(_spoiled_toml(random.choice(_runs()), random))
    with settings_only():
        command([random.choice(("train", "train", "plan")), "config.toml"])


EXPERIMENT: dict[str, Any] = {
    "summary": "two arms",
    "seeds": [0, 1],
    "arms": {
        "base": {"recipe": "demo-grpo", "batch": {"group_size": 4}, "budget": 3},
        "other": {"recipe": "demo", "baseline": "base", "method": "gigpo", "swap": {"alpha": 0.5}},
        "started": {"recipe": "webshop-demo", "needs": "base", "env": {"name": "webshop"}},
    },
}


def experiment_files(random: Random, folder: Path) -> None:
    """An experiment of one's own, spoiled; also its name and those of its arms."""
    content = dict(EXPERIMENT)
    if random.random() < 0.2:
        content["arms"] = {text(random): EXPERIMENT["arms"]["base"]}
    path = folder / "mine.toml"
    path.write_bytes(_spoiled_toml(content, random))
    also = random.choice(([], [], ["--list"], ["--arms", text(random)], ["--seeds", "1", "2"]))
    with settings_only():
        command(["experiment", path.name, *also])


def values_of_settings(random: Random, folder: Path) -> None:
    """A run whose one setting has a value of any type."""
    table = json.loads(json.dumps(random.choice(_runs())))
    section = random.choice([key for key, part in table.items() if isinstance(part, dict)])
    parent = random.choice((table, table[section]))
    parent[random.choice(list(parent))] = value(random)
    (folder / "config.toml").write_bytes(_toml(table))
    with settings_only():
        command(["train", "config.toml"])
