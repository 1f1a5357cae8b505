"""The commands that train: train, plan, demo, sft."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.console import Console

from rewardswap.cluster.settings import ClusterSettings
from rewardswap.configuration import Run
from rewardswap.help.showing import HELP, show_help
from rewardswap.names import unknown
from rewardswap.options import (
    Choice,
    UsageError,
    checked,
    one_line,
    option_types,
    parse,
    refuse_named,
    with_choices,
)
from rewardswap.plan.settings import DryRunSettings, PlanSettings, split_words
from rewardswap.ranks import Ranks
from rewardswap.recipes import RECIPES
from rewardswap.rollout.placement import HERE, Placement
from rewardswap.run_options import run_of
from rewardswap.settings import read_run


def train(words: list[str], console: Console) -> None:
    """Train from a recipe or a config.toml, with any setting changed."""
    if not words or words[0] in HELP:
        own = (DryRunSettings(), ClusterSettings())
        show_help("rewardswap train", Run(recipe="name"), *own, words=words)
        return
    where, rest = split_words(ClusterSettings, words)
    cluster = parse(ClusterSettings, ClusterSettings(), where, "rewardswap train")
    if rest[:1] == ["--resume"]:
        _train(_run_to_resume(rest[1:]), cluster, console, resume=True)
        return
    trial, rest = split_words(DryRunSettings, rest)
    settings = parse(DryRunSettings, DryRunSettings(), trial, "rewardswap train")
    run = _run_of(rest, "train", ClusterSettings, DryRunSettings)
    if settings.dry_run:
        refuse_named({"in a dry run": ["output"]}, rest)
        refuse_named({"in a dry run": ["cluster", "ray-"]}, where)
        _rehearse(run, settings, console)
    else:
        _train(run, cluster, console)


def plan(words: list[str], console: Console) -> None:
    """Say what a run needs in memory, tokens and FLOPs, before anything is loaded."""
    if not words or words[0] in HELP:
        show_help("rewardswap plan", PlanSettings(), Run(recipe="name"), words=words)
        return
    mine, rest = split_words(PlanSettings, words)
    settings = parse(PlanSettings, PlanSettings(), mine, "rewardswap plan")
    from rewardswap.plan.command import plan_run

    if not plan_run(_run_of(rest, "plan", PlanSettings), settings, console):
        raise SystemExit(1)


def demo(words: list[str], console: Console) -> None:
    """Train the small agent that ships with the package by RSPO in generated rooms."""
    if any(word in HELP for word in words):
        own = (DryRunSettings(), ClusterSettings())
        show_help("rewardswap demo", RECIPES["demo"](), *own, words=words)
        return
    train(["demo", *words], console)


def make_base_agent(words: list[str], console: Console) -> None:
    """Make a small base agent by supervised learning; resumes where it was stopped."""
    from rewardswap.sft import LESSONS, BaseAgentConfig, named_lessons, run

    env = Choice("env", named_lessons, f"there are lessons in {', '.join(LESSONS)}")
    start, rest = with_choices(BaseAgentConfig(), words, env)
    config = parse(BaseAgentConfig, start, rest, "rewardswap sft")
    checked(lambda: run(config, console))


def _run_of(words: list[str], command: str, *read: type[Any]) -> Run:
    """The run that a recipe or a config.toml and the words behind it say; `read` are the settings
    that the command has read already."""
    if not words or words[0].startswith("-"):
        raise UsageError(f"{command} needs a recipe first: {', '.join(RECIPES)}")
    beside = [key for settings in read for key in option_types(settings)]
    return run_of(_starting_run(words[0]), words[1:], f"rewardswap {command} {words[0]}", beside)


def _rehearse(run: Run, settings: DryRunSettings, console: Console) -> None:
    from rewardswap.errors import RunStoppedError
    from rewardswap.plan.dry_run import dry_run, show

    try:
        show(checked(lambda: dry_run(run, settings)), settings, console)
    except RunStoppedError as error:
        sys.stderr.write(f"rewardswap: {one_line(error)}\n")
        raise SystemExit(1) from None


def _train(run: Run, cluster: ClusterSettings, console: Console, *, resume: bool = False) -> None:
    if cluster.cluster == "ray":
        checked(lambda: cluster.check(run))
        from rewardswap.cluster.run import train_on_ray

        code, said = train_on_ray(run, cluster, _train_with, resume=resume)
    else:
        from rewardswap.distributed.process_group import joined

        with joined() as ranks:
            own = console if ranks.rank == 0 else Console(quiet=True)
            code, said = _train_with(ranks, run, own, resume=resume)
    if code:
        sys.stderr.write(f"rewardswap: {said}\n")
        raise SystemExit(code)


def _train_with(
    ranks: Ranks, run: Run, console: Console, *, resume: bool, placement: Placement = HERE
) -> tuple[int, str]:
    """Train as one of all ranks; the exit code, and what is to be said where it is not 0."""
    from rewardswap.errors import EngineError, EngineLostError, RunStoppedError
    from rewardswap.screen import Screen
    from rewardswap.session import Training

    training = checked(lambda: Training(run, resume=resume, ranks=ranks, placement=placement))
    try:
        training.execute(Screen(console))
    except (RunStoppedError, EngineError, KeyboardInterrupt) as error:
        if isinstance(error, EngineLostError) and placement.servers is not None:
            raise  # who places servers starts them again, and all ranks with them
        by_hand = isinstance(error, KeyboardInterrupt)
        said = "; ".join(
            [
                "stopped by hand" if by_hand else one_line(error),
                *map(one_line, getattr(error, "__notes__", ())),
            ]
        )
        path = training.checkpoints.folder.parent  # rank 0's, on every rank
        kept = training.checkpoints.numbers()
        then = "goes on" if kept else "begins it again: no checkpoint was kept yet"
        where = "" if ranks.size == 1 else f"rank {ranks.rank}: "
        return 130 if by_hand else 1, (
            f"{where}{said}; the record so far is in {path}, and "
            f"`rewardswap train --resume {path}` {then}"
        )
    return 0, ""


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
