"""What a person sees while a run goes on: a bar, a line per update, tables of success."""

from collections.abc import Iterable, Sequence
from pathlib import Path

from rich.console import Console
from rich.markup import escape
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from rewardswap.collector import Phase
from rewardswap.configuration import Run
from rewardswap.evaluation import Evaluation, Panel, Tally
from rewardswap.methods import method_name
from rewardswap.models.learner import Metrics
from rewardswap.report.series import dense_reward_key
from rewardswap.rewards.quality import ProcessRewardQuality
from rewardswap.shown import cell, slim_table, visible_text
from rewardswap.statistics import Interval
from rewardswap.types import Trajectory

COLUMNS = (
    ("update", 6),
    ("phase", 7),
    ("success", 7),
    ("dense", 6),
    ("kl", 7),
    ("clip-/+", 11),
    ("ess", 4),
    ("turns", 5),
    ("invalid", 7),
    ("seconds", 7),
)
"""Name and width in characters of what a line per update shows; a line fits 80."""


class Screen:
    """Prints through one console; a quiet one prints nothing."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self._progress: Progress | None = None
        self._unit, self._total = "update", 0
        self._header_due = True

    def start(
        self,
        run: Run,
        folder: Path,
        panel: Panel,
        training_tasks: int,
        remarks: Iterable[str],
    ) -> None:
        """Say what is about to happen, and what a reader of its numbers must know."""
        self._unit = "update" if run.budget_unit == "agent_updates" else run.budget_unit
        self._total = run.budget
        unit = run.budget_unit.replace("_", " ")
        plan = f"{method_name(run.method)} in loop {run.loop}, {run.budget} {unit}, seed {run.seed}"
        self._say(f"[bold]{escape(run.recipe)}[/]: {plan}")
        self._say(
            f"{training_tasks} tasks to learn from, {len(panel.tasks)} held out "
            f"({panel.split}, panel {panel.hash}); record in {escape(str(folder))}"
        )
        print_remarks(self.console, remarks)

    def resumed(self, update: int, passed_over: Iterable[str]) -> None:
        """Say where a run goes on, and which checkpoints it could not go on from."""
        for words in passed_over:
            self.warn(f"passed over a checkpoint: {words}")
        self._say(f"going on behind update {update}")

    def stopping(self) -> None:
        """Say that Ctrl-C was heard."""
        self._say("[yellow]stopping behind this turn; Ctrl-C once more stops at once[/]")

    def collected(self, trajectories: Sequence[Trajectory]) -> None:
        """Say on what the process reward model is fitted."""
        wins = sum(trajectory.success for trajectory in trajectories)
        self._say(
            f"fitting the process reward on {len(trajectories)} rollouts of the start policy "
            f"({wins} successes)"
        )

    def fitted(self, quality: ProcessRewardQuality) -> None:
        """Say how good the process reward model is, beside the length-only baseline."""
        self.console.print(quality.table())
        if quality.warning:
            self._say(f"[yellow]warning:[/] {escape(quality.warning)}")

    def evaluated(self, when: str, evaluation: Evaluation) -> None:
        """Print the table of success per kind of task."""
        self.close()
        print_evaluation(self.console, f"held-out tasks {when} training", evaluation)

    def updated(self, metrics: Metrics, phase: Phase) -> None:
        """A line per update, and the bar."""
        if self._progress is None:
            self._start_bar()
        if self._header_due:
            self._say(" ".join(name.rjust(width) for name, width in COLUMNS))
            self._header_due = False
        cells = _cells(metrics, phase)
        line = " ".join(c.rjust(width) for c, (_, width) in zip(cells, COLUMNS, strict=True))
        self._say(line if phase == "learn" else f"[dim]{line}[/]")
        if self._progress is not None:
            self._progress.update(self._progress.task_ids[0], completed=metrics.get(self._unit, 0))

    def warn(self, words: str) -> None:
        """Say what the numbers warn of."""
        self._say(f"[yellow]warning:[/] {escape(visible_text(words))}")

    def finish(self, before: Evaluation, after: Evaluation, seconds: float, report: Path) -> None:
        """The result in one line, and the path of the report last."""
        old, new = before.total, after.total
        gain = 100 * (new.success - old.success)
        score = f", score {old.task_score:.3f} -> {new.task_score:.3f}," if after.is_scored else ""
        self._say(
            f"[bold]success {_percent(old)} -> {_percent(new)}[/] ({gain:+.1f} points){score} "
            f"on {old.tasks} held-out tasks in {seconds:.0f} s"
        )
        self.console.print(str(report), soft_wrap=True, highlight=False, markup=False)

    def _say(self, text: str) -> None:
        self.console.print(text, highlight=False)

    def _start_bar(self) -> None:
        self._progress = Progress(
            TextColumn("{task.description}"),
            BarColumn(),
            MofNCompleteColumn(),
            TimeRemainingColumn(),
            console=self.console,
            transient=True,
        )
        self._progress.add_task(self._unit.replace("_", " "), total=self._total)
        self._progress.start()

    def close(self) -> None:
        """Take the bar away, also when a run stops."""
        if self._progress is not None:
            self._progress.stop()
            self._progress = None


def _cells(metrics: Metrics, phase: Phase) -> list[str]:
    def shown(name: str, form: str, scale: float = 1.0) -> str:
        return format(metrics[name] * scale, form) if name in metrics else "-"

    dense = dense_reward_key(metrics) or "dense_reward_mean"
    clips = f"{shown('clip_low_share', '.1%')}/{shown('clip_high_share', '.1%')}"
    return [
        format(metrics["update"], ".0f"),
        phase,
        shown("success", ".1%"),
        shown(dense, ".3f"),
        shown("kl_old", ".1e"),
        clips if "clip_low_share" in metrics else "-",
        shown("effective_sample_size", ".2f"),
        shown("turns_mean", ".1f"),
        shown("invalid_rate", ".1%"),
        format(metrics["seconds"], ".0f"),
    ]


def _percent(tally: Tally) -> str:
    low, high = tally.interval
    return f"{tally.success:.1%} [{low:.1%}, {high:.1%}]"


def print_evaluation(console: Console, title: str, evaluation: Evaluation) -> None:
    """The table, and what makes its numbers say little."""
    console.print(evaluation_table(title, evaluation))
    for warning in evaluation.warnings:
        console.print(f"[yellow]warning:[/] {escape(visible_text(warning))}", highlight=False)


def print_remarks(console: Console, remarks: Iterable[str]) -> None:
    """What a reader of results must know, each sentence once."""
    for remark in dict.fromkeys(remarks):
        console.print(visible_text(remark), highlight=False, markup=False)


def evaluation_table(title: str, evaluation: Evaluation) -> Table:
    """Success with its interval, per kind of task, in all and per origin; scores where there are.

    Intervals are Wilson's over tasks, the one per origin is Student's t over origins.
    """
    scored, origins, panel = evaluation.is_scored, evaluation.origins, evaluation.panel
    table = slim_table(escape(visible_text(title)))
    caption = (
        f"split {panel.split}, panel {panel.hash}, {evaluation.sampling.text}, "
        "95 % Wilson intervals"
    )
    table.add_column("task type", overflow="fold")
    score = ("score",) if scored else ()
    for name in ("tasks", "success", "interval", *score, "turns", "invalid"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, tally in [*evaluation.families.items(), ("all", evaluation.total)]:
        cells = [str(tally.tasks), f"{tally.success:.1%}", _range(tally.interval)]
        cells += [f"{tally.task_score:.3f}"] if scored else []
        cells += [f"{tally.mean_turns:.1f}", f"{tally.invalid_action_rate:.1%}"]
        table.add_row(cell(name), *cells, style="bold" if name == "all" else "")
    if origins is not None:
        cells = [f"{origins.success:.1%}", _range(origins.interval)]
        table.add_row(f"per {panel.origin} ({origins.origins})", "", *cells)
        caption += (
            f"; per {panel.origin}: every {panel.origin} counts the same, Student's t interval"
        )
    table.caption = escape(visible_text(caption))
    return table


def _range(interval: Interval | None) -> str:
    return "-" if interval is None else f"{interval[0]:.1%} - {interval[1]:.1%}"
