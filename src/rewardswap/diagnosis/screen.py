"""A diagnosis for people: sentences in 80 columns."""

from collections.abc import Iterator
from textwrap import wrap

from rewardswap.diagnosis.diagnose import Diagnosis
from rewardswap.diagnosis.finding import Advice, Finding
from rewardswap.diagnosis.observed import Observed
from rewardswap.shown import visible_text

WIDTH = 80
"""Columns of a screen."""
KEY_WIDTH = 38
"""Columns of a setting beside its reason; a longer one has a line of its own."""


def lines(diagnosis: Diagnosis) -> Iterator[str]:
    """What was seen, the most severe first; then what is in order, and what cannot be told."""
    yield from _wrapped(_head(diagnosis.observed))
    if not diagnosis.findings:
        yield ""
        yield "Nothing known is wrong."
    for number, finding in enumerate(diagnosis.findings, start=1):
        yield ""
        yield from _finding(number, finding)
    yield ""
    checked = ", ".join(rule.about for rule in diagnosis.in_order) or "nothing"
    yield from _wrapped(f"in order ({len(diagnosis.in_order)}): {checked}")
    if diagnosis.unchecked:
        reasons: dict[str, list[str]] = {}
        for rule, why in diagnosis.unchecked:
            reasons.setdefault(why, []).append(rule.about)
        yield f"could not be checked ({len(diagnosis.unchecked)}):"
        for why, about in reasons.items():
            yield from _wrapped(f"{', '.join(about)}: {why}", "  ")
    if diagnosis.idle:
        yield from _wrapped(
            f"nothing to check in such a run ({len(diagnosis.idle)}): "
            + ", ".join(rule.about for rule, _ in diagnosis.idle)
        )
    if diagnosis.observed.record.notes:
        yield "of the record:"
        for note in diagnosis.observed.record.notes:
            yield from _wrapped(f"- {note}", "  ")


def _head(run: Observed) -> str:
    updates = max(row["update"] for row in run.record.metrics)
    done = f"{updates:.0f} updates"
    if run.setting("budget_unit") == "agent_updates" and run.amount("budget"):
        done = f"{updates:.0f} of {run.amount('budget'):.0f} updates"
    method, loop = run.setting("method.name"), run.setting("loop")
    what = f"{method} in loop {loop}, " if method and loop else ""
    end = "finished" if run.record.summary else "not finished"
    return f"{run.record.name}: {what}{done}, {end}"


def _finding(number: int, finding: Finding) -> Iterator[str]:
    seen = finding.seen
    yield from _wrapped(f"{number}. {seen.severity}: {seen.words}", "", "   ")
    for evidence in seen.evidence:
        yield from _wrapped(evidence, "   ")
    yield from _wrapped(f"seen when: {finding.rule.seen} ({finding.rule.whose})", "   ")
    if seen.advice:
        yield "   try:"
    for advice in seen.advice:
        yield from _advice(advice)


def _advice(advice: Advice) -> Iterator[str]:
    if not advice.settings:
        yield from _wrapped(f"- {advice.why}", "   ", "     ")
    elif len(advice.settings) < KEY_WIDTH:
        key = f"   - {advice.settings:{KEY_WIDTH}}"
        yield from wrap(
            visible_text(advice.why), WIDTH, initial_indent=key, subsequent_indent=" " * len(key)
        )
    else:
        yield f"   - {visible_text(advice.settings)}"
        yield from _wrapped(advice.why, "     ")


def _wrapped(text: str, indent: str = "", further: str | None = None) -> list[str]:
    return wrap(
        visible_text(text),
        WIDTH,
        initial_indent=indent,
        subsequent_indent=indent if further is None else further,
        break_on_hyphens=False,
    )
