"""All rules on one run folder: what is seen, what is in order, what cannot be told."""

import json
import tomllib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardswap.diagnosis.finding import SEVERITIES, Finding, Rule
from rewardswap.diagnosis.observed import DoesNotApplyError, NoDataError, Observed
from rewardswap.diagnosis.rules import RULES
from rewardswap.report.records import Json, read_run


@dataclass(frozen=True)
class Diagnosis:
    """What the rules say of a run."""

    observed: Observed
    findings: tuple[Finding, ...]
    """The most severe first."""
    in_order: tuple[Rule, ...]
    """Rules that looked and saw nothing."""
    unchecked: tuple[tuple[Rule, str], ...]
    """Rules that lack data, and which."""
    idle: tuple[tuple[Rule, str], ...]
    """Rules that have nothing to look at in such a run, and why."""

    def as_dict(self) -> Json:
        """Everything, ready for JSON."""
        return {
            "run": self.observed.record.name,
            "updates": max(row["update"] for row in self.observed.record.metrics),
            "finished": bool(self.observed.record.summary),
            "findings": [_finding(finding) for finding in self.findings],
            "in_order": [rule.cause for rule in self.in_order],
            "unchecked": {rule.cause: why for rule, why in self.unchecked},
            "does_not_apply": {rule.cause: why for rule, why in self.idle},
            "notes": self.observed.record.notes,
        }


def observe(run: Path) -> Observed:
    """Read a run folder, finished or not; raises ValueError where it has no line of metrics."""
    record = read_run(run)
    try:
        settings = tomllib.loads(record.config or "")
    except (ValueError, RecursionError):
        settings = {}
    return Observed(record, settings, _lines(run / "warnings.jsonl"))


def diagnose(observed: Observed) -> Diagnosis:
    """What every rule says."""
    findings: list[Finding] = []
    in_order: list[Rule] = []
    unchecked: list[tuple[Rule, str]] = []
    idle: list[tuple[Rule, str]] = []
    for rule in RULES:
        try:
            seen = rule.look(observed)
        except NoDataError as error:
            unchecked.append((rule, str(error)))
        except DoesNotApplyError as error:
            idle.append((rule, str(error)))
        else:
            if seen is None:
                in_order.append(rule)
            else:
                findings.append(Finding(rule, seen))
    findings.sort(key=lambda finding: SEVERITIES.index(finding.seen.severity))
    return Diagnosis(observed, tuple(findings), tuple(in_order), tuple(unchecked), tuple(idle))


def _finding(finding: Finding) -> Json:
    rule, seen = finding.rule, finding.seen
    return {
        "cause": rule.cause,
        "severity": seen.severity,
        "words": seen.words,
        "evidence": list(seen.evidence),
        "seen_when": rule.seen,
        "whose_threshold": rule.whose,
        "advice": [{"settings": a.settings, "why": a.why} for a in seen.advice],
    }


def _lines(path: Path) -> list[Json]:
    """The objects of a file of lines; a run without warnings has none, cut lines are passed."""
    if not path.is_file():
        return []
    found: list[Any] = []
    for line in path.read_bytes().decode("utf-8", errors="replace").splitlines():
        try:
            found.append(json.loads(line))
        except (ValueError, RecursionError):
            continue
    return [row for row in found if isinstance(row, dict)]
