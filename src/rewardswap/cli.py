"""The command `rewardswap`: train, eval, demo, methods, recipes."""

import json
import os
import sys
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

# Threads that wait must sleep: where another program runs too, spinning ones cost a factor of ten.
# It is read when torch is imported, and whoever has set it keeps it.
os.environ["OMP_WAIT_POLICY"] = os.environ.get("OMP_WAIT_POLICY", "PASSIVE")

from rich.console import Console

from rewardswap.checks import at_least
from rewardswap.configuration import Run, unknown
from rewardswap.data import data
from rewardswap.env_config import ENVIRONMENTS
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.evaluation import Evaluation
from rewardswap.methods.cards import card, listing, page
from rewardswap.model_fetch.command import model
from rewardswap.options import (
    Choice,
    UsageError,
    checked,
    option_types,
    parse,
    refuse_named,
    with_choices,
)
from rewardswap.plan.settings import DryRunSettings, PlanSettings, split_words
from rewardswap.recipes import RECIPES
from rewardswap.rollout.config import RolloutConfig
from rewardswap.rollout.engine import SamplingParams
from rewardswap.settings import LOOP_SECTIONS, named_environment, named_method, read_run

ENVIRONMENT = Choice("env", named_environment, f"the environments are {', '.join(ENVIRONMENTS)}")
METHOD = Choice("method", named_method, "`rewardswap methods` lists them")


@dataclass(frozen=True)
class EvaluationRun:
    """One evaluation of one model on one panel."""

    model: str | None = None
    """A folder of a Hugging Face causal LM, such as a run's checkpoint folder, or a name of
    `rewardswap model list`; none: the small agent that ships for the environment."""
    chat_template: Path | None = None
    """File of a Jinja chat template that takes the place of the model folder's; none: the
    folder's."""
    seed: int = 0
    """Seed of every sampled token."""
    temperature: float = 1.0
    """Sampling temperature; 0 is greedy."""
    top_p: float = 1.0
    """Only the most probable tokens whose probabilities add up to this; 1: all."""
    top_k: int = 0
    """Only this many most probable tokens; 0: all."""
    min_p: float = 0.0
    """Only tokens that have at least this share of the most probable one's probability; 0: all."""
    action_tokens: int | None = None
    """Most tokens of one action; none: what the model's generation_config.json says, else 512."""
    device: str = "cpu"
    """Torch device of the model."""
    output: Path | None = None
    """File for the table as JSON; none: the screen only."""
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    env: EnvironmentConfig = field(default_factory=Alfworld)


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; mistakes of the caller are one line and exit code 2, Ctrl-C's is 130."""
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
    except KeyboardInterrupt:
        sys.stderr.write("rewardswap: stopped by hand\n")
        raise SystemExit(130) from None


def train(words: list[str], console: Console) -> None:
    """Train from a recipe or a config.toml, with any setting changed."""
    if not words or words[0] in ("-h", "--help"):
        console.print(
            "usage: rewardswap train RECIPE [--KEY VALUE ...]\n"
            "       rewardswap train RUN/config.toml [--KEY VALUE ...]\n"
            f"recipes: {', '.join(RECIPES)}\n"
            "keys: rewardswap train RECIPE --help\n"
            "--method NAME takes another method: rewardswap methods\n"
            f"--env NAME takes another environment: {', '.join(ENVIRONMENTS)}\n"
            "--dry-run [--dry-run-layers N] tries everything once, with random weights",
            highlight=False,
            markup=False,
        )
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
    start, rest = with_choices(_starting_run(words[0]), words[1:], METHOD, ENVIRONMENT)
    run = parse(Run, start, rest, f"rewardswap {command} {words[0]}", _elsewhere())
    _refuse_idle(run, rest)
    return run


def _refuse_idle(run: Run, words: Sequence[str]) -> None:
    """A setting that is named and would do nothing is a mistake."""
    reasons: dict[str, Sequence[str]] = {
        f"in loop {run.loop!r}": LOOP_SECTIONS if run.loop != "rspo" else (),
        "in a loop that does not explore": () if run.swap.explore_steps else ("reward",),
        f"in dense reward {run.reward.dense!r}": (
            ()
            if run.reward.dense == "learned"
            else ("reward.model", "reward.trajectories", "reward.group", "reward.temperatures")
        ),
    }
    refuse_named({**reasons, **_idle_in(run.env)}, words)


def _elsewhere() -> dict[str, str]:
    """Keys that are no settings here: why, or of which environment they are settings."""
    known = {
        f"--{section}{name}": TRUNCATING
        for section in ("", "policy.", "rollout.", "evaluation-")
        for name in ("top-p", "top-k", "min-p")
    }
    for name, kind in ENVIRONMENTS.items():
        for option in option_types(kind, "--env."):
            known[option] = f"is a setting of {name}; add --env {name}"
    return known


def _idle_in(env: EnvironmentConfig) -> dict[str, Sequence[str]]:
    """Settings of an environment that do nothing, as the command line has them."""
    return {
        reason: [f"env.{name.replace('_', '-')}" for name in names]
        for reason, names in env.idle().items()
    }


def demo(words: list[str], console: Console) -> None:
    """Train the small agent that ships with the package by RSPO in generated rooms."""
    train(["demo", *words], console)


def evaluate(words: list[str], console: Console) -> None:
    """Evaluate a model on a fixed panel of tasks."""
    start, rest = with_choices(EvaluationRun(), words, ENVIRONMENT)
    run = parse(EvaluationRun, start, rest, "rewardswap eval", _elsewhere())
    refuse_named({"in an evaluation": ["env.train-split"], **_idle_in(run.env)}, rest)
    from rewardswap.screen import print_evaluation, print_remarks
    from rewardswap.stage import make_stage

    truncation: dict[str, Any] = {"top_p": run.top_p, "top_k": run.top_k, "min_p": run.min_p}
    checked(lambda: SamplingParams(run.temperature, **truncation))
    checked(
        lambda: at_least(1, action_tokens=1 if run.action_tokens is None else run.action_tokens)
    )
    if run.output is not None and (run.output.is_dir() or not run.output.parent.is_dir()):
        raise UsageError(f"--output {run.output} is no file in a folder that exists")
    stage = checked(
        lambda: make_stage(
            run.env,
            run.model,
            device=run.device,
            temperature=1.0,
            action_tokens=run.action_tokens,
            rollout=run.rollout,
            chat_template=run.chat_template,
        )
    )
    stage = replace(stage, sampling=replace(stage.sampling, **truncation))
    print_remarks(console, stage.panel.remarks)
    with closing(stage):
        evaluation: Evaluation = stage.evaluate(run.seed, run.temperature)
    print_evaluation(console, stage.model, evaluation)
    if run.output is not None:
        text = json.dumps(evaluation.as_dict(), indent=2) + "\n"
        try:
            run.output.write_text(text, encoding="utf-8")
        except OSError as error:
            raise UsageError(f"--output {run.output} cannot be written: {error}") from error


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


TRUNCATING = (
    "is refused in training: a sampler that leaves tokens out draws from another distribution than "
    "the policy's, and the ratio is not 1 on policy; `rewardswap eval` takes it"
)

METHODS_USAGE = """\
rewardswap methods NAME                one method with all its settings
rewardswap train RECIPE --method NAME  train with it
rewardswap methods --markdown          the table of docs/methods.md"""

COMMANDS: dict[str, Callable[[list[str], Console], None]] = {
    "train": train,
    "plan": plan,
    "eval": evaluate,
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
        sys.stderr.write(f"rewardswap: {error}\n")
        raise SystemExit(1) from None


def _train(run: Run, console: Console) -> None:
    from rewardswap.errors import RunStoppedError
    from rewardswap.screen import Screen
    from rewardswap.session import Training

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


def _usage() -> str:
    rows = [f"  {name:10} {(run.__doc__ or '').strip()}" for name, run in COMMANDS.items()]
    head = "usage: rewardswap COMMAND ...   (rewardswap COMMAND --help lists its settings)"
    return "\n".join([head, "", *rows])
