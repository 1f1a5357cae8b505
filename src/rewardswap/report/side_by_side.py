"""Several runs on one page: their curves overlaid, their tables side by side."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from rewardswap.report.overlay import overlaid_plot, overlaid_reward_plot, success_curves
from rewardswap.report.page import policy_of, templates
from rewardswap.report.plots import MOST_RUNS, SMALL
from rewardswap.report.records import Json, RunRecord, read_run
from rewardswap.report.series import with_evaluations, with_explorer_updates
from rewardswap.report.tables import facts, family_rows, headline, panel_in_words, plain

APART = ("output", "recipe", "checkpoint", "record")
"""Settings that say nothing of how two runs differ."""


def write_side_by_side(runs: Sequence[Path], folder: Path) -> Path:
    """Write `runs.html` of run folders, finished or not, into a folder; the path of the page.

    Raises ValueError for fewer than two runs or more than can be told apart, what `read_run`
    raises, and where the folder cannot be written.
    """
    if not 2 <= len(runs) <= MOST_RUNS:
        raise ValueError(f"from 2 to {MOST_RUNS} runs stand side by side, got {len(runs)}")
    page = folder / "runs.html"
    text = render_side_by_side(dict(zip(names_of(runs), map(read_run, runs), strict=True)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        page.write_text(text, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ValueError(f"{folder} cannot be written: {error.strerror}; give another") from error
    return page


def names_of(runs: Sequence[Path]) -> list[str]:
    """The folders' names, or whole paths where two have one name."""
    names = [run.resolve().name for run in runs]
    if len(set(names)) == len(names):
        return names
    paths = [str(run.resolve()) for run in runs]
    twice = next((path for path in paths if paths.count(path) > 1), None)
    if twice is not None:
        raise ValueError(f"{twice} is given twice; give each run once")
    return paths


def render_side_by_side(records: Mapping[str, RunRecord]) -> str:
    """The page as HTML: no script, no network."""
    metrics = {
        name: with_explorer_updates(with_evaluations(record)) for name, record in records.items()
    }
    large = [overlaid_plot(metrics, curve) for curve in success_curves()]
    large += overlaid_reward_plot(metrics)
    small = [overlaid_plot(metrics, curve) for curve in SMALL]
    rows = {name: family_rows(r.before, r.after) for name, r in records.items()}
    families = sorted({row.name for found in rows.values() for row in found[:-1]})
    return (
        templates()
        .get_template("runs.html.jinja")
        .render(
            names=list(records),
            heads={name: headline(record) for name, record in records.items()},
            panels={name: panel_in_words(r.after or r.before or {}) for name, r in records.items()},
            facts={name: dict(facts(record.summary)) for name, record in records.items()},
            differing=differing({name: record.config for name, record in records.items()}),
            notes=[f"{name}: {note}" for name, record in records.items() for note in record.notes],
            mixed=len({panel_key(record) for record in records.values()}) > 1,
            families=[*families, *(["all tasks"] if families else [])],
            rows={name: {row.name: row for row in found} for name, found in rows.items()},
            large=[plot for plot in large if plot],
            small=[plot for plot in small if plot],
            policy=policy_of("", None),
        )
    )


def panel_key(record: RunRecord) -> str:
    """What two runs must share for their successes to be comparable."""
    found = record.after or record.before or {}
    return f"{found.get('panel')} {found.get('temperature')}"


def differing(configs: Mapping[str, str | None]) -> dict[str, list[str]]:
    """Dotted settings whose values are not the same in all runs, with the value of each run."""
    settings = {name: _settings(text) for name, text in configs.items()}
    keys = sorted({key for found in settings.values() for key in found})
    values = {key: [found.get(key, "–") for found in settings.values()] for key in keys}
    return {
        key: told
        for key, told in values.items()
        if len(set(told)) > 1 and key.partition(".")[0] not in APART
    }


def _settings(text: str | None) -> dict[str, str]:
    try:
        return _flat(tomllib.loads(text or ""), "")
    except (ValueError, RecursionError):
        return {}


def _flat(settings: Json, above: str) -> dict[str, str]:
    found: dict[str, str] = {}
    for name, value in settings.items():
        inner: Any = _flat(value, f"{above}{name}.") if isinstance(value, dict) else None
        found |= {f"{above}{name}": plain(value)} if inner is None else inner
    return found
