"""The report of a comparison: Markdown, one HTML page, CSV and PNG, into one folder."""

import csv
import re
from base64 import b64encode
from io import StringIO
from pathlib import Path
from typing import Any

from jinja2 import ChoiceLoader, Environment, PackageLoader, StrictUndefined

from rewardswap.comparison.arms import values_of
from rewardswap.comparison.comparing import Comparison
from rewardswap.comparison.plots import Plot, plots_of
from rewardswap.comparison.records import curves_table, tables_of
from rewardswap.comparison.tables import Table, count
from rewardswap.report.page import visible
from rewardswap.whole import written_whole

TITLE = "Comparison of runs"
PAGE = "report.html"
FORMULA = ("=", "+", "-", "@", "\t")
"""Beginnings of a text that a spreadsheet would compute; a quote in front keeps it a text."""


def write_comparison(comparison: Comparison, folder: Path) -> Path:
    """Write report.md, report.html, every table as CSV and every plot as PNG; path of the page.

    Files of the same names are overwritten; the same comparison gives the same bytes.

    Raises ValueError if the folder is a file or takes none, and UnwrittenError.
    """
    tables, plots = tables_of(comparison), plots_of(comparison)
    files = {f"{table.name}.csv": as_csv(table) for table in tables}
    files["curves.csv"] = as_csv(curves_table(comparison.curves))
    files["report.md"] = as_markdown(comparison, tables, plots)
    files[PAGE] = as_html(comparison, tables, plots)
    with written_whole(folder, over=PAGE) as beside:
        for name, content in files.items():
            (beside / name).write_text(content, encoding="utf-8", newline="\n")
        for plot in plots:
            (beside / f"{plot.name}.png").write_bytes(plot.png)
    return folder / PAGE


def summary(comparison: Comparison) -> str:
    """How much is compared, and of which commit and panel."""
    runs = [run for arm in comparison.arms for run in arm.runs]
    said = [count(len(runs), "run"), count(len(comparison.arms), "arm")]
    said += [f"commit {' and '.join(values_of('commits', runs))}"]
    said += [f"panel {' and '.join(values_of('panels', runs))}"]
    said += [f"temperature {' and '.join(values_of('temperatures', runs))}"]
    return ", ".join(said)


def as_csv(table: Table) -> str:
    """The raw rows, numbers to six digits, nothing where a value is unknown, no formulas."""
    text = StringIO()
    if table.rows:
        writer = csv.DictWriter(text, table.rows[0].keys(), lineterminator="\n")
        writer.writeheader()
        writer.writerows({key: _plain(value) for key, value in row.items()} for row in table.rows)
    return text.getvalue()


def _plain(value: Any) -> Any:
    if isinstance(value, str):
        seen = str(visible(value))
        return f"'{seen}" if seen.startswith(FORMULA) else seen
    return f"{value:.6g}" if isinstance(value, float) else value


def as_markdown(comparison: Comparison, tables: list[Table], plots: list[Plot]) -> str:
    """The report for a repository: tables, and plots as links to their files."""
    parts = [f"# {TITLE}", _escaped(summary(comparison)) + "."]
    parts += [f"- {_escaped(note)}" for note in comparison.notes]
    parts += [f"![{plot.title}]({plot.name}.png)" for plot in plots]
    for table in tables:
        parts += [f"## {table.title}", *(_escaped(note) for note in table.notes)]
        parts.append(_markdown_table(table))
    return "\n\n".join(parts) + "\n"


def _markdown_table(table: Table) -> str:
    if not table.rows:
        return "Nothing to show."
    lines = [[*table.shown], ["---"] * len(table.shown)]
    lines += [[_escaped(show(row)) for show in table.shown.values()] for row in table.rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _escaped(text: str) -> str:
    """Text that Markdown does not read as a table's border, HTML, a link or a line of its own."""
    return re.sub(r"([\\`*_\[\]<>|])", r"\\\1", " ".join(str(visible(text)).split()))


def as_html(comparison: Comparison, tables: list[Table], plots: list[Plot]) -> str:
    """One page with everything in it: no script, no network."""
    sources = [PackageLoader("rewardswap", room) for room in ("comparison", "report")]
    templates = Environment(
        loader=ChoiceLoader(sources),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return templates.get_template("comparison.html.jinja").render(
        title=TITLE,
        summary=summary(comparison),
        notes=comparison.notes,
        tables=tables,
        plots=[(plot, b64encode(plot.png).decode()) for plot in plots],
    )
