"""Advice that a run takes: settings that its configuration accepts and that change it."""

from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path

from rewardswap.configuration import Run
from rewardswap.diagnosis.finding import Advice, Finding
from rewardswap.options import UsageError
from rewardswap.run_options import run_of
from rewardswap.settings import read_run


def settings_of(run: Path) -> Run | None:
    """The run as it was configured; none where its config.toml is not one of this version."""
    try:
        return replace(read_run(run / "config.toml"), output=None)
    except (ValueError, OSError):
        return None


def fitting(findings: Iterable[Finding], run: Run | None) -> tuple[Finding, ...]:
    """The findings with the advice that `run` takes; with all of it where that is unknown."""
    if run is None:
        return tuple(findings)
    return tuple(
        replace(f, seen=replace(f.seen, advice=tuple(a for a in f.seen.advice if takes(run, a))))
        for f in findings
    )


def takes(run: Run, advice: Advice) -> bool:
    """Whether the settings exist, go together with the others, and are not those of the run."""
    if not advice.settings:
        return True
    try:
        return run_of(run, advice.settings.split(), "rewardswap diagnose") != run
    except UsageError:
        return False
