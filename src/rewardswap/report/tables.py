"""The numbers of the page, as rows for the template."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from rewardswap.report.records import Json, RunRecord, number
from rewardswap.statistics import difference_interval

FACTS = {
    "agent_updates": "updates of the agent",
    "environment_steps": "environment steps",
    "generated_tokens": "tokens generated",
    "trained_tokens": "tokens trained on",
    "tasks": "evaluation tasks",
    "seconds": "wall clock",
}


@dataclass(frozen=True)
class Estimate:
    """A rate, or a difference of rates, with its 95 % interval where one is known."""

    value: float
    interval: tuple[float, float] | None


@dataclass(frozen=True)
class Headline:
    """Success before and after training."""

    before: Estimate | None
    after: Estimate | None

    @property
    def difference(self) -> Estimate | None:
        """After minus before, by Newcombe's interval."""
        return difference(self.before, self.after)


@dataclass(frozen=True)
class FamilyRow:
    """One kind of task, all of them, or all origins of tasks."""

    name: str
    size: str | None
    """How many tasks or origins it is a mean of, in words."""
    before: Estimate | None
    after: Estimate | None
    turns_before: float | None
    turns_after: float | None
    score_before: float | None = None
    """Mean of the benchmark's own score, in [0, 1]."""
    score_after: float | None = None

    @property
    def difference(self) -> Estimate | None:
        """After minus before, by Newcombe's interval."""
        return difference(self.before, self.after)


def estimate(value: object, interval: object) -> Estimate | None:
    """An estimate from what a file holds; None without a value."""
    rate = number(value)
    if rate is None:
        return None
    ends = [number(end) for end in interval] if isinstance(interval, list) else []
    if len(ends) == 2 and ends[0] is not None and ends[1] is not None:
        return Estimate(rate, (ends[0], ends[1]))
    return Estimate(rate, None)


def difference(before: Estimate | None, after: Estimate | None) -> Estimate | None:
    """After minus before; without an interval if either has none."""
    if before is None or after is None:
        return None
    value = after.value - before.value
    if before.interval is None or after.interval is None:
        return Estimate(value, None)
    interval = difference_interval(before.value, before.interval, after.value, after.interval)
    return Estimate(value, interval)


def headline(record: RunRecord) -> Headline:
    """Success before and after, by the evaluations or else by the summary."""
    found = []
    for when, document in (("before", record.before), ("after", record.after)):
        measured = document or {}
        told = record.summary
        found.append(
            estimate(measured.get("success"), measured.get("interval"))
            or estimate(told.get(f"success_{when}"), told.get(f"success_{when}_interval"))
        )
    return Headline(*found)


def family_rows(before: Json | None, after: Json | None) -> list[FamilyRow]:
    """One row a kind of task in alphabetical order, and one of all tasks."""
    families_before, families_after = _families(before), _families(after)
    names = sorted({*families_before, *families_after})
    rows = [_row(name, families_before.get(name), families_after.get(name)) for name in names]
    everything = [
        None if document is None else {**document, "tasks": _panel_tasks(document)}
        for document in (before, after)
    ]
    return [*rows, _row("all tasks", *everything)] if rows else []


def origin_row(before: Json | None, after: Json | None) -> FamilyRow | None:
    """The row in which every origin counts the same; none where tasks have no origins."""
    documents = [(document or {}).get("per_origin") or {} for document in (before, after)]
    old, new = documents
    known = new or old
    if not known:
        return None
    name = known.get("origin", "origin")
    return FamilyRow(
        name=f"per {name}",
        size=_size(known.get("origins"), f"{name}s"),
        before=estimate(old.get("success"), old.get("interval")),
        after=estimate(new.get("success"), new.get("interval")),
        turns_before=None,
        turns_after=None,
    )


def has_scores(rows: Sequence[FamilyRow]) -> bool:
    """Whether the benchmark's own score says something else than success."""
    pairs = [(row.score_before, row.before) for row in rows]
    pairs += [(row.score_after, row.after) for row in rows]
    return any(s is not None and e is not None and s != e.value for s, e in pairs)


def _families(document: Json | None) -> dict[str, Json]:
    families = (document or {}).get("families")
    return dict(families) if isinstance(families, Mapping) else {}


def _panel_tasks(document: Json) -> object:
    panel = document.get("panel")
    return panel.get("tasks") if isinstance(panel, Mapping) else None


def panel_in_words(document: Json) -> str:
    """Which tasks an evaluation played and how, empty if it does not say."""
    panel = document.get("panel")
    if not isinstance(panel, Mapping):
        return ""
    words_of_panel = f"{panel.get('tasks')} tasks of {panel.get('split')}"
    temperature = number(document.get("temperature"))
    return words_of_panel + ("" if temperature is None else f" at temperature {temperature:g}")


def _row(name: str, before: Json | None, after: Json | None) -> FamilyRow:
    old, new = before or {}, after or {}
    return FamilyRow(
        name=name,
        size=_size(new.get("tasks", old.get("tasks")), "tasks"),
        before=estimate(old.get("success"), old.get("interval")),
        after=estimate(new.get("success"), new.get("interval")),
        turns_before=number(old.get("mean_turns")),
        turns_after=number(new.get("mean_turns")),
        score_before=number(old.get("task_score")),
        score_after=number(new.get("task_score")),
    )


def _size(count: object, things: str) -> str | None:
    known = number(count)
    return None if known is None else f"{known:.0f} {things}"


def facts(summary: Json) -> list[tuple[str, str]]:
    """The costs of the run that a reader asks for first."""
    return [(label, plain(summary[key], key)) for key, label in FACTS.items() if key in summary]


def flat(document: Json) -> list[tuple[str, str]]:
    """Any document as labels and values, one level of nesting joined by dots."""
    rows: list[tuple[str, str]] = []
    for key, value in document.items():
        if isinstance(value, Mapping):
            rows += [(f"{key}.{inner}", plain(deep)) for inner, deep in value.items()]
        else:
            rows.append((key, plain(value, key)))
    return rows


def words(key: str) -> str:
    """A key of a file as words."""
    return key.replace("_", " ")


def plain(value: object, key: str = "") -> str:
    """A value as a reader would write it: thousands apart, few decimals."""
    if isinstance(value, list):
        return "[" + ", ".join(plain(item) for item in value) + "]"
    if isinstance(value, bool) or not isinstance(value, int | float):
        return "–" if value is None else str(value)
    if number(value) is None:
        return f"{value:.4g}" if isinstance(value, float) else f"{value:,}"[:32]
    if key == "seconds":
        return duration(float(value))
    if isinstance(value, int) or value.is_integer():
        value = int(value)
        return f"{value:,}".replace(",", "\u202f")
    return f"{value:.4g}"


def duration(seconds: float) -> str:
    """Seconds as hours, minutes and seconds."""
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    return f"{minutes} min {rest:02d} s" if minutes else f"{rest} s"
