"""The command `rewardswap`: train, eval, demo, methods, recipes."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, field, fields, is_dataclass, replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any, TypeVar, get_type_hints

# Threads that wait must sleep: where another program runs too, spinning ones cost a factor of ten.
# It is read when torch is imported, and whoever has set it keeps it.
os.environ["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")

import tyro
from rich.console import Console

from rewardswap.configuration import EnvironmentConfig, Run, unknown
from rewardswap.evaluation import Evaluation
from rewardswap.methods.cards import cards
from rewardswap.recipes import RECIPES
from rewardswap.settings import LOOP_SECTIONS, named_method, read_run

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class EvaluationRun:
    """One evaluation of one model on one panel."""

    model: str = "base-agent"
    """`base-agent`, a folder of a Hugging Face causal LM, or a run's checkpoint folder."""
    seed: int = 0
    """Seed of every sampled token."""
    temperature: float = 1.0
    """Sampling temperature; 0 is greedy."""
    action_tokens: int | None = None
    """Most tokens of one action; none: what the model's generation_config.json says, else 512."""
    device: str = "cpu"
    """Torch device of the model."""
    output: Path | None = None
    """File for the table as JSON; none: the screen only."""
    env: EnvironmentConfig = field(default_factory=EnvironmentConfig)


class UsageError(Exception):
    """A mistake of the caller: one line, exit code 2."""


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; mistakes of the caller are one line on stderr and exit code 2."""
    words = list(sys.argv[1:] if arguments is None else arguments)
    console = Console()
    try:
        if not words or words[0] in ("-h", "--help"):
            console.print(_usage(), highlight=False, markup=False)
            return
        command = COMMANDS.get(words[0])
        if command is None:
            raise UsageError(unknown("command", words[0], COMMANDS))
        command(words[1:], console)
    except UsageError as error:
        line = " ".join(str(error).split())
        sys.stderr.write(f"rewardswap: {line}\n")
        raise SystemExit(2) from None


def train(words: list[str], console: Console) -> None:
    """Train from a recipe or a config.toml, with any setting changed."""
    if not words or words[0] in ("-h", "--help"):
        console.print(
            "usage: rewardswap train RECIPE [--KEY VALUE ...]\n"
            "       rewardswap train RUN/config.toml [--KEY VALUE ...]\n"
            f"recipes: {', '.join(RECIPES)}; keys: rewardswap train RECIPE --help",
            highlight=False,
            markup=False,
        )
        return
    start, rest = _with_method(_starting_run(words[0]), words[1:])
    run = parse(Run, start, rest, f"rewardswap train {words[0]}")
    _refuse_idle(run, rest)
    _train(run, console)


def _with_method(start: Run, words: Sequence[str]) -> tuple[Run, list[str]]:
    """The run with the method that `--method` names, and the other words."""
    rest = list(words)
    places = [n for n, word in enumerate(rest) if word.partition("=")[0] == "--method"]
    if not places:
        return start, rest
    place = places[-1]
    _, equals, name = rest.pop(place).partition("=")
    if not equals:
        if place == len(rest):
            raise UsageError("--method needs a name; `rewardswap methods` lists them")
        name = rest.pop(place)
    kind = checked(lambda: named_method(name))
    if type(start.method) is kind:
        return start, rest
    return checked(lambda: replace(start, method=kind())), rest


def _refuse_idle(run: Run, words: Sequence[str]) -> None:
    """A setting that is named and would do nothing is a mistake."""
    reasons = {
        f"loop {run.loop!r}": LOOP_SECTIONS if run.loop != "rspo" else (),
        "a loop that does not explore": () if run.swap.explore_steps else ("reward",),
        f"dense reward {run.reward.dense!r}": (
            ()
            if run.reward.dense == "learned"
            else ("reward.model", "reward.trajectories", "reward.group", "reward.temperatures")
        ),
        "official games": () if run.env.games is None else ("env.generated",),
    }
    for reason, sections in reasons.items():
        for word in words:
            if word.startswith(tuple(f"--{section}" for section in sections)):
                raise UsageError(f"{word.split('=')[0]} does nothing in {reason}")


def demo(words: list[str], console: Console) -> None:
    """Train the small agent that ships with the package by RSPO in generated rooms."""
    train(["demo", *words], console)


def evaluate(words: list[str], console: Console) -> None:
    """Evaluate a model on a fixed panel of games."""
    run = parse(EvaluationRun, EvaluationRun(), words, "rewardswap eval")
    from rewardswap.screen import evaluation_table
    from rewardswap.stage import make_stage

    if not 0 <= run.temperature < float("inf"):
        raise UsageError(f"temperature must be a number from 0 on, got {run.temperature}")
    if run.output is not None and (run.output.is_dir() or not run.output.parent.is_dir()):
        raise UsageError(f"--output {run.output} is no file in a folder that exists")
    stage = checked(
        lambda: make_stage(
            run.env,
            run.model,
            device=run.device,
            temperature=1.0,
            action_tokens=run.action_tokens,
        )
    )
    evaluation: Evaluation = stage.evaluate(run.seed, run.temperature)
    console.print(evaluation_table(run.model, evaluation))
    if run.output is not None:
        run.output.write_text(json.dumps(evaluation.as_dict(), indent=2) + "\n", encoding="utf-8")


def make_base_agent(words: list[str], console: Console) -> None:
    """Make a small base agent by supervised learning; resumes where it was stopped."""
    from rewardswap.sft import BaseAgentConfig, run

    config = parse(BaseAgentConfig, None, words, "rewardswap sft")
    checked(lambda: run(config, console))


def methods(words: list[str], console: Console) -> None:
    """List the methods that a loop can wrap, with their papers and defaults."""
    for method in cards():
        console.print(f"{method.name:28} {method.title}", highlight=False, markup=False)
        console.print(f"{'':28} {method.paper}", highlight=False, markup=False)
        console.print(f"{'':28} {method.defaults}", highlight=False, markup=False)


def recipes(words: list[str], console: Console) -> None:
    """List the recipes."""
    for name, make in RECIPES.items():
        summary = (make.__doc__ or "").strip().splitlines()[0]
        console.print(f"{name:26} {summary}", highlight=False, markup=False)


COMMANDS: dict[str, Callable[[list[str], Console], None]] = {
    "train": train,
    "eval": evaluate,
    "demo": demo,
    "sft": make_base_agent,
    "methods": methods,
    "recipes": recipes,
}


def _train(run: Run, console: Console) -> None:
    from rewardswap.screen import Screen
    from rewardswap.session import Training
    from rewardswap.trainer import RunStoppedError

    training = checked(lambda: Training(run))
    try:
        training.execute(Screen(console))
    except RunStoppedError as error:
        sys.stderr.write(f"rewardswap: {error}; the record so far is in {training.folder.path}\n")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        path = training.folder.path
        sys.stderr.write(f"rewardswap: stopped by hand; the record so far is in {path}\n")
        raise SystemExit(130) from None


def _starting_run(name: str) -> Run:
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"there is no configuration file {name}")
        return replace(checked(lambda: read_run(path)), output=None)
    if name not in RECIPES:
        raise UsageError(unknown("recipe", name, RECIPES))
    return RECIPES[name]()


def checked(build: Callable[[], Settings]) -> Settings:
    """The value, with a ValueError of its making as a caller's mistake."""
    try:
        return build()
    except ValueError as error:
        raise UsageError(str(error)) from error


def parse(
    kind: type[Settings], default: Settings | None, words: list[str], program: str
) -> Settings:
    """The settings with the changes of the command line; unknown keys name the nearest one."""
    start: dict[str, Any] = {} if default is None else {"default": default}
    keys = _keys(kind if default is None else default)
    for word in words:
        key = word.split("=", 1)[0]
        if key.startswith("--") and key != "--help" and key.replace("_", "-") not in keys:
            raise UsageError(unknown("key", key, keys).split(" Known:")[0])
    printed = StringIO()
    try:
        with redirect_stderr(printed), redirect_stdout(printed):
            read = partial(tyro.cli, kind, prog=program, args=words, **start)
            settings: Settings = checked(read)
            return settings
    except SystemExit as stop:
        if not stop.code:
            sys.stdout.write(printed.getvalue())
            raise
        raise UsageError(_first_reason(printed.getvalue())) from None


def _keys(settings: Any, prefix: str = "--") -> list[str]:
    """All option names of a settings class or of a value of one, nested ones dotted."""
    kind = settings if isinstance(settings, type) else type(settings)
    found: list[str] = []
    hints = get_type_hints(kind)
    for name in (setting.name for setting in fields(kind)):
        option = prefix + name.replace("_", "-")
        inner = hints[name] if isinstance(settings, type) else getattr(settings, name)
        if is_dataclass(inner):
            found += _keys(inner, f"{option}.")
        else:
            found.append(option)
    return found


def _first_reason(text: str) -> str:
    """What tyro's framed message says, in one line."""
    lines = [line.strip(" │╭╮╰╯─-") for line in text.splitlines()]
    said = [line for line in lines if line and not line.startswith("For full helptext")]
    text = " ".join(said) or "the settings could not be read"
    return text.removeprefix("Value error ").removeprefix("Error parsing Run: ")


def _usage() -> str:
    rows = [f"  {name:10} {(run.__doc__ or '').strip()}" for name, run in COMMANDS.items()]
    head = "usage: rewardswap COMMAND ...   (rewardswap COMMAND --help lists its settings)"
    return "\n".join([head, "", *rows])
