"""What a run folder holds, read as far as it goes; what it lacks is noted."""

import json
import math
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardswap.report.shape import ANY, Each, Maybe, misfit

Json = dict[str, Any]

MOST_HELD = 64_000_000
"""Most bytes of a file of trajectories that are held in memory (ours)."""
PHASES = ("explore", "harvest", "learn", "evaluate")
METRICS = {"phase": str, "update": float}
TRAJECTORY = {
    "task": str,
    "family": str,
    "index": int,
    "success": bool,
    "turns": [Each(ANY)],
    "process_reward?": Maybe([ANY]),
}
EVALUATION = {"families?": Maybe(Each(Each(ANY))), "per_origin?": Maybe(Each(ANY))}
QUALITY = {"turns?": Maybe([{"turn": int}])}


@dataclass(frozen=True)
class RunRecord:
    """Everything that the page is made from."""

    name: str
    config: str | None
    environment: Json
    summary: Json
    metrics: list[Json]
    before: Json | None
    """Evaluation before training."""
    after: Json | None
    """Evaluation after training."""
    process_reward: Json | None
    """Quality of the process reward model."""
    trajectories_before: list[Json]
    trajectories_after: list[Json]
    trajectories_train: list[Json]
    """Those of training that the run kept, or of a large file every second, third, ... of them."""
    trajectories_passed_over: int
    """Those between them."""
    remarks: list[str]
    """What a reader of results on the run's splits must know, in sentences."""
    liked_failure: Json | None
    """The failed training trajectory with the largest sum of process rewards."""
    notes: list[str]
    """What is missing, cut short or inconsistent, in sentences."""

    @property
    def trajectories(self) -> list[Json]:
        """All of them."""
        return [*self.trajectories_before, *self.trajectories_train, *self.trajectories_after]


def number(value: object) -> float | None:
    """`value` if it is a finite number of a record's size, else None."""
    return None if misfit(value, float) else float(value)  # type: ignore[arg-type]


class _Folder:
    """Reads files of a run folder and notes what could not be read."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.notes: list[str] = []

    def text(self, name: str, loss: str) -> str | None:
        path = self.path / name
        if not path.is_file():
            self.notes.append(f"{name} is missing: {loss}.")
            return None
        return path.read_bytes().decode("utf-8", errors="replace")

    def document(self, name: str, loss: str, shape: Any = ANY) -> Json | None:
        text = self.text(name, loss)
        if text is None:
            return None
        try:
            document = json.loads(text)
        except (ValueError, RecursionError):
            self.notes.append(f"{name} is cut short or not JSON, and was not read: {loss}.")
            return None
        if not isinstance(document, dict):
            self.notes.append(f"{name} holds no JSON object, and was not read: {loss}.")
            return None
        strange = misfit(document, shape)
        if strange is not None:
            self.notes.append(f"{name} has no usable {strange}, and was not read: {loss}.")
            return None
        return document

    def config(self) -> str | None:
        text = self.text("config.toml", "the configuration is not shown")
        try:
            tomllib.loads(text or "")
        except (ValueError, RecursionError):
            self.notes.append("config.toml is cut short or not TOML; it is shown as it stands.")
        return text

    def rows(self, name: str, shape: Any, loss: str) -> Iterator[Json]:
        """The objects of a file of lines; unreadable lines are counted, not guessed at."""
        path = self.path / name
        if not path.is_file():
            self.notes.append(f"{name} is missing: {loss}.")
            return
        unread: list[int] = []
        count = 0
        line = b"\n"
        with path.open("rb") as file:
            for count, line in enumerate(file, start=1):
                row = _parse(line, shape)
                if row is None:
                    unread.append(count)
                else:
                    yield row
        if unread and unread[-1] == count and not line.endswith(b"\n"):
            unread.pop()
            self.notes.append(
                f"{name} is cut in the middle of its last line (line {count}) and was read up "
                "to there."
            )
        if unread:
            what = (
                f"1 line of {name} is" if len(unread) == 1 else f"{len(unread)} lines of {name} are"
            )
            self.notes.append(f"{what} unreadable and left out (first: line {unread[0]}).")


def _parse(line: bytes, shape: Any) -> Json | None:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return row if misfit(row, shape) is None else None


def read_run(run: Path) -> RunRecord:
    """Read a run folder, which may be that of an interrupted run.

    Raises ValueError if `run` is no folder or has not one line of metrics.
    """
    if not run.is_dir():
        raise ValueError(f"{run} is not a folder; give the folder that a training run wrote")
    folder = _Folder(run)
    metrics = list(folder.rows("metrics.jsonl", METRICS, "there are no curves"))
    if not metrics:
        raise ValueError(
            f"{run} has no complete line in metrics.jsonl, so there is nothing to report; "
            "give the folder of a run that got through at least one update"
        )
    config = folder.config()
    environment = folder.document("environment.json", "commit, versions and machine are unknown")
    summary = folder.document("summary.json", "the run did not finish, or was interrupted")
    before = folder.document(
        "evaluation-before.json", "success before training is unknown", EVALUATION
    )
    after = folder.document(
        "evaluation-after.json", "success after training is unknown", EVALUATION
    )
    quality = None
    if _fits_process_reward(config) or (run / "prm.json").is_file():
        unexamined = "the process reward was not examined, or there was none"
        quality = folder.document("prm.json", unexamined, QUALITY)
    no_episodes = "its episodes cannot be shown"
    played_before = list(folder.rows("trajectories/before.jsonl", TRAJECTORY, no_episodes))
    played_after = list(folder.rows("trajectories/after.jsonl", TRAJECTORY, no_episodes))
    trained, liked, passed_over = _trained(folder, no_episodes)
    remarks = folder.document("remarks.json", "what was left out of the splits is unknown")
    consistency = _evaluation_notes(before, after, summary or {})
    return RunRecord(
        name=run.resolve().name,
        config=config,
        environment=environment or {},
        summary=summary or {},
        metrics=metrics,
        before=before,
        after=after,
        process_reward=quality,
        trajectories_before=played_before,
        trajectories_after=played_after,
        trajectories_train=trained,
        trajectories_passed_over=passed_over,
        remarks=_sentences(remarks or {}),
        liked_failure=liked,
        notes=[*folder.notes, *_metric_notes(metrics), *consistency],
    )


def _fits_process_reward(config: str | None) -> bool:
    """Whether a run of these settings fits a process reward model, as far as they can be read."""
    try:
        settings = tomllib.loads(config or "")
    except (ValueError, RecursionError):
        return True
    reward = settings.get("reward")
    dense = reward.get("dense", "learned") if isinstance(reward, dict) else "learned"
    return bool(settings.get("loop") != "on_policy" and dense == "learned")


def process_reward_sum(trajectory: Json) -> float | None:
    """Sum over turns of the process reward, None where none was given."""
    rewards = trajectory.get("process_reward")
    if not isinstance(rewards, list) or not rewards:
        return None
    return sum(number(reward) or 0.0 for reward in rewards)


def _sentences(remarks: Json) -> list[str]:
    """The remarks of all splits, each once."""
    lists = [said for said in remarks.values() if isinstance(said, list)]
    return list(dict.fromkeys(str(sentence) for said in lists for sentence in said))


def _trained(folder: _Folder, loss: str) -> tuple[list[Json], Json | None, int]:
    """Trajectories of training, as many as memory is to hold; the most liked failure of all, and
    how many were passed over."""
    name = "trajectories/train.jsonl"
    path = folder.path / name
    step = 1 + (path.stat().st_size // MOST_HELD if path.is_file() else 0)
    held: list[Json] = []
    best: Json | None = None
    best_sum = -math.inf
    count = 0
    for trajectory in folder.rows(name, TRAJECTORY, loss):
        if count % step == 0:
            held.append(trajectory)
        count += 1
        total = process_reward_sum(trajectory)
        if total is not None and not trajectory["success"] and total > best_sum:
            best, best_sum = trajectory, total
    return held, best, count - len(held)


def _metric_notes(metrics: list[Json]) -> list[str]:
    notes = []
    strange = sorted({str(row["phase"]) for row in metrics if row["phase"] not in PHASES})
    if strange:
        notes.append(
            f"Rows of metrics.jsonl in unknown phases are not drawn: {', '.join(strange)}."
        )
    broken: dict[str, int] = {}
    for row in metrics:
        for key, value in row.items():
            if isinstance(value, float) and not math.isfinite(value):
                broken[key] = broken.get(key, 0) + 1
    if broken:
        counts = ", ".join(f"{key} ({count})" for key, count in sorted(broken.items()))
        notes.append(f"Values that are not finite are missing from the curves: {counts}.")
    return notes


def _evaluation_notes(before: Json | None, after: Json | None, summary: Json) -> list[str]:
    notes = []
    for when, document in (("before", before), ("after", after)):
        told = number(summary.get(f"success_{when}"))
        measured = number((document or {}).get("success"))
        if told is not None and measured is not None and abs(told - measured) > 1e-6:
            notes.append(
                f"summary.json gives a success {when} of {told:.4f}, evaluation-{when}.json of "
                f"{measured:.4f}; the page shows the latter."
            )
        failed = number((document or {}).get("failed_episodes"))
        if failed:
            notes.append(
                f"{failed:.0f} tasks of the evaluation {when} training broke; they count as failed."
            )
    broken = number(summary.get("failed_episodes"))
    if broken:
        notes.append(f"{broken:.0f} episodes of training broke and were not trained on.")
    if before is None or after is None:
        return notes
    for what, key in (("tasks", "panel"), ("temperature", "temperature")):
        if before.get(key) != after.get(key):
            notes.append(
                f"The evaluations before and after differ in their {what} "
                f"({before.get(key)} and {after.get(key)}): their difference is not only training."
            )
    return notes
