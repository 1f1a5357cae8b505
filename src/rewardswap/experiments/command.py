"""The command `rewardswap experiment`."""

import signal
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.table import Table

from rewardswap.checks import at_least, positive
from rewardswap.comparison.results import read_results
from rewardswap.experiments.experiment import Experiment, Job
from rewardswap.experiments.places import Places
from rewardswap.experiments.progress import Board, spelled
from rewardswap.experiments.registry import named_experiment
from rewardswap.experiments.runner import Runner
from rewardswap.experiments.schedule import expected_seconds
from rewardswap.experiments.store import MIXABLE, Results, present_code, repair
from rewardswap.help.showing import HELP, show_help
from rewardswap.lock import locked
from rewardswap.names import unknown
from rewardswap.options import UsageError, checked, parse
from rewardswap.plan.settings import split_words
from rewardswap.shown import visible_text

HOLDERS = "the experiment of process {}, or by runs that it left behind"
"""Who holds a folder of results or runs."""


@dataclass(frozen=True)
class ExperimentSettings:
    """What of an experiment is run, and where."""

    results: Path | None = None
    """Folder of results.jsonl; none: runs/NAME."""
    runs: Path | None = None
    """Folder of the run folders; none: `runs` in the folder of results."""
    arms: tuple[str, ...] = ()
    """Arms to run, none of them: all."""
    seeds: tuple[int, ...] = ()
    """Seeds in place of the arms' own, none of them: the arms' own."""
    jobs: int = 2
    """Processes at once, each with the threads that its run says."""
    hours: float | None = None
    """No run is started that would not end within so many hours; none: no limit."""
    mix: tuple[str, ...] = ()
    """What results may differ in: commits, panels, settings. Every new result then says so."""
    list: bool = False
    """Only say what there is."""

    def __post_init__(self) -> None:
        at_least(1, jobs=self.jobs)
        if self.hours is not None:
            positive(hours=self.hours)
        for kind in self.mix:
            if kind not in MIXABLE:
                raise ValueError(unknown("kind to mix", kind, MIXABLE))
        if len(set(self.seeds)) < len(self.seeds) or min(self.seeds, default=0) < 0:
            raise ValueError(f"seeds must be 0 or more, each once, got {[*self.seeds]}")


def experiment(words: list[str], console: Console) -> None:
    """Run an experiment's arms over seeds as processes; goes on where it was stopped."""
    if not words or words[0] in HELP:
        show_help("rewardswap experiment", ExperimentSettings(), words=words)
        return
    mine, others = split_words(ExperimentSettings, words[1:])
    program = f"rewardswap experiment {words[0]}"
    settings = parse(ExperimentSettings, ExperimentSettings(), [*others, *mine], program)
    chosen = checked(lambda: named_experiment(words[0]))
    jobs = checked(lambda: chosen.jobs(settings.arms, settings.seeds))
    if settings.list:
        _list(chosen, jobs, _results_folder(chosen, settings) / "results.jsonl", console)
        return
    with stopped_by_signal():
        try:
            skipped = checked(lambda: _run(chosen, jobs, settings, console))
        except KeyboardInterrupt:
            sys.stderr.write("rewardswap: stopped by hand; the same command goes on from here\n")
            raise SystemExit(130) from None
    if skipped:
        raise SystemExit(1)


def _run(
    chosen: Experiment, jobs: list[Job], settings: ExperimentSettings, console: Console
) -> set[str]:
    """Run what is missing; the arms that were skipped."""
    folder = _results_folder(chosen, settings)
    runs = settings.runs or folder / "runs"
    board, path = Board(console), folder / "results.jsonl"
    with ExitStack() as stack:
        folders = {folder.resolve(), runs.resolve()}
        locks = [stack.enter_context(locked(place, HOLDERS)) for place in sorted(folders)]
        if repair(path):
            board.say(f"half a line at the end of {path} was moved to {path}.cut")
        results = Results(path, chosen, present_code(), settings.mix)
        if results.mixed:
            board.say(f"mixed, and said in every new result: {', '.join(results.mixed)}")
        limit = None if settings.hours is None else settings.hours * 3600
        places = Places(runs, chosen)
        runner = Runner(
            chosen, results, places, board, at_once=settings.jobs, limit=limit, locks=locks
        )
        left = runner.execute(jobs)
    if left:
        board.say(f"{runner.left()}; the same command goes on")
    board.say(f"{len(results.lines)} results in {path}")
    return runner.skipped


def _results_folder(chosen: Experiment, settings: ExperimentSettings) -> Path:
    return settings.results or Path("runs") / chosen.name


def _list(chosen: Experiment, jobs: list[Job], path: Path, console: Console) -> None:
    if path.parent.is_file():
        raise UsageError(f"results {path.parent} is a file; give the folder of results.jsonl")
    there = path.is_file()
    lines = checked(lambda: read_results(path)) if there else []
    done = {(line["arm"], line["seed"]) for line in lines}
    title = escape(visible_text(f"{chosen.name}: {chosen.summary}"))
    made = Table(title=title, title_justify="left")
    for name in ("arm", "against", "needs", "done", "left", "seconds"):
        made.add_column(name, overflow="fold")  # a name is to be typed into --arms
    for arm in dict.fromkeys(job.arm for job in jobs):
        seconds = expected_seconds(arm, lines, chosen)
        own = [job for job in jobs if job.arm == arm]
        made.add_row(
            arm.name,
            arm.baseline or "-",
            arm.needs or "-",
            " ".join(str(job.seed) for job in own if job.key in done) or "-",
            " ".join(str(job.seed) for job in own if job.key not in done) or "-",
            "unknown" if seconds is None else f"{seconds:.0f}",
        )
    console.print(made)
    left = [job for job in jobs if job.key not in done]
    known = [expected_seconds(job.arm, lines, chosen) for job in left]
    total = f", {spelled(sum(filter(None, known)))} of processes" if any(known) else ""
    missing = f", {known.count(None)} of unknown length" if None in known else ""
    nothing = "" if there else escape(visible_text(f"; {path} is not there yet"))
    console.print(
        f"{len(jobs) - len(left)} of {len(jobs)} runs done, {len(left)} left{total}{missing}"
        f"{nothing}",
        highlight=False,
    )


@contextmanager
def stopped_by_signal() -> Iterator[None]:
    """SIGTERM and SIGHUP end the runs as Ctrl-C does."""
    signals = (signal.SIGTERM, signal.SIGHUP)
    before = [signal.signal(number, signal.default_int_handler) for number in signals]
    try:
        yield
    finally:
        for number, handler in zip(signals, before, strict=True):
            signal.signal(number, handler)
