"""The command `rewardswap`: train, eval, demo, methods, recipes."""

import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path

# Threads that wait must sleep: where another program runs too, spinning ones cost a factor of ten.
# It is read when torch is imported, and whoever has set it keeps it.
os.environ["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")

from rich.console import Console

from rewardswap.checks import plain_text
from rewardswap.comparison.command import report
from rewardswap.configuration import Run
from rewardswap.data import data
from rewardswap.env_config import ENVIRONMENTS
from rewardswap.evaluation_command import evaluate
from rewardswap.experiments.command import experiment
from rewardswap.methods.cards import card, listing, page
from rewardswap.model_fetch.command import model
from rewardswap.names import unknown
from rewardswap.options import (
    Choice,
    UsageError,
    checked,
    one_line,
    parse,
    refuse_named,
    with_choices,
)
from rewardswap.plan.settings import DryRunSettings, PlanSettings, split_words
from rewardswap.prm.command import prm
from rewardswap.recipes import RECIPES
from rewardswap.run_options import run_of
from rewardswap.settings import named_method, read_run


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; mistakes of the caller are one line and exit code 2.

    What the system refuses (a file, a full disk) is one line and exit code 1; Ctrl-C's is 130.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    console = Console()
    try:
        if not words or words[0] in ("-h", "--help"):
            console.print(_usage(), highlight=False, markup=False)
            return
        command = COMMANDS.get(words[0])
        if command is None:
            raise UsageError(unknown("command", words[0], COMMANDS))
        for word in words:
            checked(partial(plain_text, "the word", word))
        command(words[1:], console)
    except UsageError as error:
        sys.stderr.write(f"rewardswap: {one_line(error)}\n")
        raise SystemExit(2) from None
    except OSError as error:  # a path, a file or a stream that the system refuses
        where = "" if error.filename is None else f"{error.filename}: "
        sys.stderr.write(f"rewardswap: {one_line(f'{where}{error.strerror or error}')}\n")
        raise SystemExit(1) from None
    except KeyboardInterrupt:
        sys.stderr.write("rewardswap: stopped by hand\n")
        raise SystemExit(130) from None


def train(words: list[str], console: Console) -> None:
    """Train from a recipe or a config.toml, with any setting changed."""
    if not words or words[0] in ("-h", "--help"):
        console.print(
            "usage: rewardswap train RECIPE [--KEY VALUE ...]\n"
            "       rewardswap train RUN/config.toml [--KEY VALUE ...]\n"
            "       rewardswap train --resume RUN\n"
            f"recipes: {', '.join(RECIPES)}\n"
            "keys: rewardswap train RECIPE --help\n"
            "--method NAME takes another method: rewardswap methods\n"
            f"--env NAME takes another environment: {', '.join(ENVIRONMENTS)}\n"
            "--dry-run [--dry-run-layers N] tries everything once, with random weights",
            highlight=False,
            markup=False,
        )
        return
    if words[0] == "--resume":
        _train(_run_to_resume(words[1:]), console, resume=True)
        return
    trial, rest = split_words(DryRunSettings, words)
    settings = parse(DryRunSettings, DryRunSettings(), trial, "rewardswap train")
    run = _run_of(rest, "train")
    if settings.dry_run:
        refuse_named({"in a dry run": ["output"]}, rest)
        _rehearse(run, settings, console)
    else:
        _train(run, console)


def plan(words: list[str], console: Console) -> None:
    """Say what a run needs in memory, tokens and FLOPs, before anything is loaded."""
    from rewardswap.plan.command import USAGE, plan_run

    if not words or words[0] in ("-h", "--help"):
        console.print(USAGE, highlight=False, markup=False)
        return
    mine, rest = split_words(PlanSettings, words)
    settings = parse(PlanSettings, PlanSettings(), mine, "rewardswap plan")
    if not plan_run(_run_of(rest, "plan"), settings, console):
        raise SystemExit(1)


def _run_of(words: list[str], command: str) -> Run:
    """The run that a recipe or a config.toml and the words behind it say."""
    if not words or words[0].startswith("-"):
        raise UsageError(f"{command} needs a recipe first: {', '.join(RECIPES)}")
    return run_of(_starting_run(words[0]), words[1:], f"rewardswap {command} {words[0]}")


def demo(words: list[str], console: Console) -> None:
    """Train the small agent that ships with the package by RSPO in generated rooms."""
    train(["demo", *words], console)


def make_base_agent(words: list[str], console: Console) -> None:
    """Make a small base agent by supervised learning; resumes where it was stopped."""
    from rewardswap.sft import LESSONS, BaseAgentConfig, named_lessons, run

    env = Choice("env", named_lessons, f"there are lessons in {', '.join(LESSONS)}")
    start, rest = with_choices(BaseAgentConfig(), words, env)
    config = parse(BaseAgentConfig, start, rest, "rewardswap sft")
    checked(lambda: run(config, console))


def methods(words: list[str], console: Console) -> None:
    """List the methods that a loop can wrap; with a name, one method's card."""
    if words in (["-h"], ["--help"]):
        text = METHODS_USAGE
    elif words == ["--markdown"]:
        text = page()
    elif not words:
        text = listing() + "\n\n" + METHODS_USAGE
    else:
        for word in words:
            if word.startswith("-"):
                raise UsageError(unknown("key", word, ["--markdown"]))
        if len(words) > 1:
            raise UsageError(f"one method at a time, got {' '.join(words)}")
        text = checked(lambda: card(words[0], named_method(words[0])).text())
    console.print(text, highlight=False, markup=False, soft_wrap=True)


def recipes(words: list[str], console: Console) -> None:
    """List the recipes."""
    if words and words not in (["-h"], ["--help"]):
        raise UsageError(f"rewardswap recipes takes no further words, got {' '.join(words)}")
    for name, make in RECIPES.items():
        summary = (make.__doc__ or "").strip().splitlines()[0]
        console.print(f"{name:31} {summary}", highlight=False, markup=False)


METHODS_USAGE = """\
rewardswap methods NAME                one method with all its settings
rewardswap train RECIPE --method NAME  train with it
rewardswap methods --markdown          the table of docs/methods.md"""

COMMANDS: dict[str, Callable[[list[str], Console], None]] = {
    "train": train,
    "plan": plan,
    "eval": evaluate,
    "prm": prm,
    "experiment": experiment,
    "report": report,
    "demo": demo,
    "sft": make_base_agent,
    "data": data,
    "model": model,
    "methods": methods,
    "recipes": recipes,
}


def _rehearse(run: Run, settings: DryRunSettings, console: Console) -> None:
    from rewardswap.errors import RunStoppedError
    from rewardswap.plan.dry_run import dry_run, show

    try:
        show(checked(lambda: dry_run(run, settings)), settings, console)
    except RunStoppedError as error:
        sys.stderr.write(f"rewardswap: {one_line(error)}\n")
        raise SystemExit(1) from None


def _train(run: Run, console: Console, *, resume: bool = False) -> None:
    from rewardswap.errors import RunStoppedError
    from rewardswap.screen import Screen
    from rewardswap.session import Training

    training = checked(lambda: Training(run, resume=resume))
    try:
        training.execute(Screen(console))
    except (RunStoppedError, KeyboardInterrupt) as error:
        by_hand = isinstance(error, KeyboardInterrupt)
        said = "; ".join(
            [
                "stopped by hand" if by_hand else one_line(error),
                *map(one_line, getattr(error, "__notes__", ())),
            ]
        )
        path = training.folder.path
        then = "goes on" if training.checkpoints.numbers() else "begins it again: none was kept"
        sys.stderr.write(
            f"rewardswap: {said}; the record so far is in {path}, and "
            f"`rewardswap train --resume {path}` {then}\n"
        )
        raise SystemExit(130 if by_hand else 1) from None


def _run_to_resume(words: list[str]) -> Run:
    """The run of a folder; its settings stay as they are, lest it end in other bits."""
    if len(words) != 1:
        raise UsageError(
            "train --resume needs one run folder and nothing else: a run goes on with its own "
            f"settings; got {' '.join(words) or 'nothing'}"
        )
    folder = Path(words[0])
    config = folder / "config.toml"
    if not config.is_file():
        raise UsageError(f"{folder} is no run folder: there is no {config.name} in it")
    return replace(checked(lambda: read_run(config)), output=folder)


def _starting_run(name: str) -> Run:
    if name.endswith(".toml"):
        path = Path(name)
        if not path.is_file():
            raise UsageError(f"there is no configuration file {name}")
        return replace(checked(lambda: read_run(path)), output=None)
    if name not in RECIPES:
        raise UsageError(unknown("recipe", name, RECIPES))
    return RECIPES[name]()


def _usage() -> str:
    rows = [f"  {name:10} {(run.__doc__ or '').strip()}" for name, run in COMMANDS.items()]
    head = "usage: rewardswap COMMAND ...   (rewardswap COMMAND --help lists its settings)"
    return "\n".join([head, "", *rows])
