"""The command `rewardswap report`."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rewardswap.comparison.arms import MIXABLE
from rewardswap.help.showing import HELP, show_help
from rewardswap.names import unknown
from rewardswap.options import UsageError, checked, leading, parse


@dataclass(frozen=True)
class ReportSettings:
    """How results are compared, and where the report goes."""

    output: Path | None = None
    """Folder of the report; none: one run folder's own report is written anew."""
    baseline: str | None = None
    """The arm that others are compared with which name none; a run folder means its own."""
    mix: tuple[str, ...] = ()
    """What may differ between compared results: commits, settings, temperatures, budgets."""

    def __post_init__(self) -> None:
        for kind in self.mix:
            if kind not in MIXABLE:
                raise ValueError(unknown("kind to mix", kind, MIXABLE))


def report(words: list[str], console: Console) -> None:
    """Compare runs: tables and plots; or write one run's report anew."""
    if not words or words[0] in HELP:
        show_help("rewardswap report", ReportSettings(), words=words)
        return
    first, rest = leading(words)
    paths = [Path(word) for word in first]
    settings = parse(ReportSettings, ReportSettings(), rest, "rewardswap report")
    if not paths:
        raise UsageError("report needs files of results or run folders first, then its keys")
    from rewardswap.comparison.sources import is_run_folder

    if settings.output is None:
        if len(paths) > 1 or not is_run_folder(paths[0]):
            raise UsageError("--output is missing; give a folder for the report")
        if rest:
            raise UsageError(f"{rest[0]} does nothing for one run folder without --output")
        _one_run(paths[0], console)
        return
    _compared(paths, settings, settings.output, console)


def _one_run(run: Path, console: Console) -> None:
    from rewardswap.report import write_report

    page = checked(lambda: write_report(run))
    console.print(f"the run's own report, written anew: {page}", highlight=False, markup=False)


def _compared(paths: list[Path], settings: ReportSettings, output: Path, console: Console) -> None:
    from rewardswap.comparison.comparing import compare
    from rewardswap.comparison.page import summary, write_comparison
    from rewardswap.comparison.sources import arm_of, gather
    from rewardswap.report.page import visible

    def say(line: object) -> None:
        console.print(visible(line), highlight=False, markup=False, soft_wrap=True)

    beside = _side_by_side(paths, output)
    if beside is not None:
        say(f"side by side: {beside}")
    try:
        results = gather(paths)
        baseline = settings.baseline and arm_of(settings.baseline, paths, results)
        found = compare(results, baseline, settings.mix)
    except ValueError as error:
        if beside is None or settings.baseline or settings.mix:
            raise UsageError(str(error)) from error
        say(f"no comparison of arms beside it: {error}")
        return
    page = checked(lambda: write_comparison(found, output))
    for line in (summary(found), *found.notes, found.mixture, str(page)):
        if line:
            say(line)


def _side_by_side(paths: list[Path], output: Path) -> Path | None:
    """The page of several different run folders, finished or not; none where they are not that."""
    from rewardswap.comparison.sources import is_run_folder
    from rewardswap.report.plots import MOST_RUNS
    from rewardswap.report.side_by_side import write_side_by_side

    apart = len({path.resolve() for path in paths})
    if not 2 <= len(paths) == apart <= MOST_RUNS or not all(map(is_run_folder, paths)):
        return None
    return checked(lambda: write_side_by_side(paths, output))
