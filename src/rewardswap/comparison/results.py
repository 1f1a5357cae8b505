"""The compact result of a run: one JSON line that comparisons are made from."""

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import tomli_w

from rewardswap.comparison.columns import curves, rounded
from rewardswap.comparison.compared import APART, settings_changed
from rewardswap.comparison.files import read_config, read_document, read_lines
from rewardswap.configuration import Run
from rewardswap.evaluation import Panel
from rewardswap.report.shape import ANY, Each, Maybe, misfit
from rewardswap.settings import as_toml
from rewardswap.types import Task

Json = dict[str, Any]

FORMAT = 1
"""Number of the format that this version writes and reads."""
IDENTITY = ("format", "experiment", "arm", "baseline", "seed")
MADE_BY = ("commit", "versions", "machine", "command", "settings", "settings_changed", "mixed")
MEASURES = (
    "panel",
    "temperature",
    "budget",
    "counters",
    "phases",
    "before",
    "after",
    "tasks",
    "process_reward",
    "warnings",
    "curve",
)
KEYS = frozenset((*IDENTITY, *MADE_BY, *MEASURES))
"""What every result has."""
COUNTERS = (
    "agent_updates",
    "all_updates",
    "environment_steps",
    "generated_tokens",
    "trained_tokens",
    "seconds",
    "failed_episodes",
)
MEASURED = ("success", "task_score", "mean_turns", "invalid_action_rate")
FAMILIES = Each({"tasks": float, "success": float})
EVALUATION = {
    **{name: Maybe(float) if name == "task_score" else float for name in MEASURED},
    "families": FAMILIES,
}
QUALITIES = ("auc_total", "auc_within_task", "auc_length_only", "auc_at_fixed_turns", "brier")
QUALITY = {**{name: Maybe(float) for name in QUALITIES}, "warning": Maybe(str)}
PANEL = {"split": str, "hash": str, "tasks": int}
SOURCE = {"commit": Maybe(str), "versions": Each(ANY), "machine": Each(ANY), "command": str}
SHAPE = {
    "experiment": str,
    "arm": str,
    "baseline": Maybe(str),
    "seed": int,
    **SOURCE,
    "settings": str,
    "settings_changed": Each(ANY),
    "mixed": [str],
    "panel": PANEL,
    "temperature": float,
    "budget": {"amount": float, "unit": str},
    "counters": dict.fromkeys(COUNTERS, float),
    "phases": Each(Each(float)),
    "before": EVALUATION,
    "after": EVALUATION,
    "tasks": Each(str),
    "process_reward": Maybe(QUALITY),
    "warnings": Each({"count": float, "first_update": float, "words": str}),
    "curve": Each(Each([Maybe(float)])),
}
"""What a result is made of; a person may have changed a file."""
SUMMARY = {"seed": int, **dict.fromkeys(COUNTERS, float), "phases?": Each(Each(float))}
RECORDED = {**EVALUATION, "panel": PANEL, "temperature": float}
WARNING = {"kind": str, "update": float, "words": str}
EPISODE = {"task": str, "family": str, "success": bool}


def settings_digest(run: Run) -> str:
    """16 hexadecimal digits of sha256 over the run's TOML without seed, output and recipe.

    A run with open settings has another digest than the same run as its folder records it.
    """
    return _digest(as_toml(run))


def _digest(settings: Mapping[str, Any]) -> str:
    compared = {name: value for name, value in settings.items() if name not in APART}
    return hashlib.sha256(tomli_w.dumps(compared).encode()).hexdigest()[:16]


def result_of(
    run_folder: Path,
    *,
    experiment: str,
    arm: str,
    baseline: str | None,
    settings: str | None = None,
    mixed: tuple[str, ...] = (),
) -> Json:
    """The result of a finished run, from its folder.

    `settings` is the digest of the run as it was given; none: of config.toml, where open settings
    are decided. `mixed` names what was allowed to differ from the other results.

    Raises ValueError naming the file that is missing or unreadable.
    """
    config = read_config(run_folder)
    environment = read_document(run_folder, "environment", SOURCE)
    summary = read_document(run_folder, "summary", SUMMARY)
    before, after = (
        read_document(run_folder, f"evaluation-{when}", RECORDED) for when in ("before", "after")
    )
    panel = after["panel"]
    return {
        "format": FORMAT,
        "experiment": experiment,
        "arm": arm,
        "baseline": baseline,
        "seed": summary["seed"],
        **{name: environment[name] for name in ("commit", "versions", "machine", "command")},
        "settings": _digest(config) if settings is None else settings,
        "settings_changed": settings_changed(config),
        "panel": {name: panel[name] for name in ("split", "hash", "tasks")},
        "temperature": after["temperature"],
        "budget": {"amount": config["budget"], "unit": config["budget_unit"]},
        "counters": {name: rounded(summary[name]) for name in COUNTERS},
        "phases": rounded(summary.get("phases", {})),
        "before": _measured(before),
        "after": _measured(after),
        "tasks": _task_bits(run_folder, panel),
        "process_reward": _process_reward(run_folder),
        "warnings": _warnings(run_folder),
        "curve": curves(read_lines(run_folder / "metrics.jsonl", {"phase": str})),
        "mixed": list(mixed),
    }


def append_result(path: Path, result: Mapping[str, Any]) -> None:
    """Add one line, on disk when this returns; the file is made if there is none.

    Raises ValueError if the file ends in half a line, or the result holds a number that is not
    finite.
    """
    line = json.dumps(result, separators=(",", ":"), allow_nan=False) + "\n"
    with path.open("ab+") as file:
        if file.seek(0, os.SEEK_END):
            file.seek(-1, os.SEEK_END)
            if file.read(1) != b"\n":
                raise ValueError(f"{path} ends in half a line; move it aside or complete it")
        file.write(line.encode())
        file.flush()
        os.fsync(file.fileno())


def read_results(path: Path) -> list[Json]:
    """All results of a file, in its order.

    Raises ValueError naming file and line for one that is cut, not a result, or of another format.
    """
    try:
        text = path.read_bytes().decode("utf-8")
    except (OSError, UnicodeDecodeError) as error:
        raise ValueError(f"{path} cannot be read as results: {error}") from error
    return [_checked(line, f"{path}, line {n}") for n, line in enumerate(text.splitlines(), 1)]


def _checked(line: str, where: str) -> Json:
    try:
        result = json.loads(line, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise ValueError(
            f"{where} is cut or not JSON ({error}); move the line aside and run its seed again"
        ) from error
    if not isinstance(result, dict) or "format" not in result:
        raise ValueError(f"{where} is not a result; give a file that an experiment wrote")
    if result["format"] != FORMAT:
        raise ValueError(
            f"{where} has format {result['format']!r}, this version reads {FORMAT}; "
            "read it with the version that wrote it"
        )
    lacking = sorted(KEYS - result.keys())
    if lacking:
        raise ValueError(f"{where} lacks {', '.join(lacking)}; run its seed again")
    return usable(result, where)


def usable(result: Json, where: str) -> Json:
    """The same result; raises ValueError naming the first part that is none of a result's."""
    strange = misfit(result, SHAPE)
    if strange is not None:
        raise ValueError(f"{where} has no usable {strange}; run its seed again")
    return result


def _no_number(name: str) -> None:
    raise ValueError(f"{name} is not a number that can be compared")


def _measured(evaluation: Mapping[str, Any]) -> Json:
    families = {
        name: {"tasks": tally["tasks"], "success": rounded(tally["success"])}
        for name, tally in evaluation["families"].items()
    }
    return {**{name: rounded(evaluation[name]) for name in MEASURED}, "families": families}


def _process_reward(folder: Path) -> Json | None:
    """How good the process reward model is that the run fitted; none where it fitted none."""
    if not (folder / "prm.json").is_file():
        return None
    quality = read_document(folder, "prm", {**dict.fromkeys(QUALITIES, ANY), "warning": Maybe(str)})
    return {**{name: rounded(quality[name]) for name in QUALITIES}, "warning": quality["warning"]}


def _warnings(folder: Path) -> Json:
    """By kind: how often, first at which update of the agent, and the first's words."""
    found: Json = {}
    path = folder / "warnings.jsonl"
    for row in read_lines(path, WARNING) if path.is_file() else ():
        start = {"count": 0, "first_update": rounded(row["update"]), "words": row["words"]}
        found.setdefault(row["kind"], start)["count"] += 1
    return found


def _task_bits(folder: Path, panel: Mapping[str, Any]) -> dict[str, str]:
    """Success after training, a bit a task in panel order, by family.

    Episodes that failed have no trajectory; their places are known from the evaluation before
    training. Where that lacks some too the places are unknown, and there are no bits.
    """
    after = read_lines(folder / "trajectories/after.jsonl", EPISODE)
    won = {row["task"]: row["success"] for row in after}
    for name in ("after", "before"):
        rows = read_lines(folder / f"trajectories/{name}.jsonl", EPISODE)
        tasks = tuple(Task(row["task"], row["family"]) for row in rows)
        if tasks and Panel(panel["split"], tasks).hash == panel["hash"]:
            return _bits(tasks, won)
    return {}


def _bits(tasks: Sequence[Task], won: Mapping[str, bool]) -> dict[str, str]:
    bits = {family: "" for family in sorted({task.family for task in tasks})}
    for task in tasks:
        bits[task.family] += str(int(won.get(task.id, False)))
    return bits
