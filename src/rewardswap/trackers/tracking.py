"""A run's trackers together: what they raise is counted and said once, and stops nothing."""

import json
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from rewardswap.redaction import without_secrets
from rewardswap.trackers.base import Place, Settings, Tracker
from rewardswap.trackers.config import TrackConfig

CLASSES = {
    "tensorboard": "TensorBoard",
    "wandb": "WeightsAndBiases",
    "mlflow": "MLflow",
    "trackio": "Trackio",
}
"""Each tracker's class, in the module of its name."""
ENVIRONMENT: Mapping[str, Mapping[str, str]] = {
    "wandb": {"WANDB_ERROR_REPORTING": "false"},
    "mlflow": {
        "MLFLOW_DISABLE_TELEMETRY": "true",
        "MLFLOW_HTTP_REQUEST_TIMEOUT": "10",
        "MLFLOW_HTTP_REQUEST_MAX_RETRIES": "1",
    },
    "trackio": {"HF_HUB_DISABLE_TELEMETRY": "1", "GRADIO_ANALYTICS_ENABLED": "False"},
}
"""Set before a tracker is imported, where they are not set: no telemetry, and a server that is away
holds a run up for seconds, not for minutes (ours)."""
EVALUATED = ("success", "task_score", "mean_turns", "invalid_action_rate")
"""What of an evaluation is given on, in phase `evaluate`: row 0, and one behind the last."""
STATE = "trackers.json"
"""File of the run folder: the id of the run in each tracker, its last row, how many were lost."""
PATIENCE = 3
"""Rows in a row that a tracker fails at before it is asked no more (ours)."""


@dataclass
class _Kept:
    """What is kept of one tracker."""

    id: str | None = None
    step: int = 0
    """The last row that it was given, counted from 1."""
    lost: int = 0
    """Rows that it did not take."""


class Tracking:
    """Gives every row of metrics to every tracker of a run, each row once."""

    def __init__(self, config: TrackConfig, folder: Path, settings: Mapping[str, Any]) -> None:
        """`settings` are the run's as its config.toml has them; secrets in them are not given on.

        Raises ValueError for a tracker whose package is not installed.
        """
        config.check_installed()
        self._config = config
        self._folder = folder
        self._settings = cleaned(settings)
        self._live: dict[str, Tracker] = {}
        self._failing = dict.fromkeys(config.to, 0)
        self._said: set[str] = set()
        self._step: int | None = None
        self._kept: dict[str, _Kept] = {}
        self._say: Callable[[str], None] = lambda _: None

    @contextmanager
    def told(self, say: Callable[[str], None]) -> Iterator[None]:
        """While it lasts, what goes wrong is said once of each tracker; then all are finished."""
        self._say = say
        try:
            yield
        finally:
            self._finish()

    def add(self, metrics: Mapping[str, float], phase: str) -> None:
        """The row that was added last to metrics.jsonl."""
        if not self._config.to:
            return
        self._step = self._rows() if self._step is None else self._step + 1
        for name in self._config.to:
            self._give(name, metrics, self._step, phase)

    def _rows(self) -> int:
        """How many rows the record has; a run that goes on cut those that it plays again."""
        path = self._folder / "metrics.jsonl"
        with path.open("rb") as file:
            return sum(1 for _ in file)

    def _give(self, name: str, metrics: Mapping[str, float], step: int, phase: str) -> None:
        if not self._kept:
            self._kept = self._read()
        kept = self._kept.setdefault(name, _Kept())
        if step <= kept.step:
            return  # the tracker has had this row before the run was stopped
        kept.step = step
        if self._failing[name] >= PATIENCE:
            kept.lost += 1
        else:
            try:
                self._started(name, kept)
                self._write()  # first, lest a row be given twice
                self._live[name].add(metrics, step, phase)
                self._failing[name] = 0
            except (Exception, SystemExit) as error:  # anybody's code, and never worth a run
                kept.lost += 1
                self._failing[name] += 1
                self._failed(name, error)
        self._write()

    def _started(self, name: str, kept: _Kept) -> None:
        if name in self._live:
            return
        for variable, value in ENVIRONMENT.get(name, {}).items():
            os.environ.setdefault(variable, value)
        kind = getattr(import_module(f"rewardswap.trackers.{name}"), CLASSES[name])
        config = self._config
        place = Place(
            self._folder, config.project, config.name or self._folder.resolve().name, kept.id
        )
        tracker: Tracker = kind(place)
        kept.id = tracker.start(self._settings)
        if place.id is None:
            self._evaluated(tracker, "before", 0)
        self._live[name] = tracker

    def _evaluated(self, tracker: Tracker, when: str, step: int) -> None:
        """Give an evaluation on, where there is one yet."""
        path = self._folder / f"evaluation-{when}.json"
        if path.is_file():
            found = json.loads(path.read_text(encoding="utf-8"))
            tracker.add({name: float(found[name]) for name in EVALUATED}, step, "evaluate")

    def _failed(self, name: str, error: BaseException) -> None:
        if name in self._said:
            return
        self._said.add(name)
        cause = without_secrets([f"{type(error).__name__}: {error}"])
        self._say(
            f"the tracker {name} failed: {cause}; the run goes on, {STATE} counts rows that "
            "are lost, and metrics.jsonl has them all"
        )

    def _finish(self) -> None:
        for name, tracker in self._live.items():
            try:
                self._evaluated(tracker, "after", (self._step or 0) + 1)
                tracker.finish()
            except (Exception, SystemExit) as error:  # as above
                self._failed(name, error)
        self._live = {}

    def _read(self) -> dict[str, _Kept]:
        """What was kept before the run was stopped; nothing where it cannot be read."""
        try:
            found = json.loads((self._folder / STATE).read_text(encoding="utf-8"))
            return {name: _Kept(**kept) for name, kept in found.items()}
        except (OSError, ValueError, TypeError, AttributeError):
            return {}

    def _write(self) -> None:
        path = self._folder / STATE
        beside = path.with_suffix(".part")
        with suppress(OSError):  # the record itself says where the disk is full
            text = json.dumps({name: asdict(kept) for name, kept in self._kept.items()}, indent=2)
            beside.write_text(text + "\n", encoding="utf-8")
            beside.replace(path)


def cleaned(settings: Mapping[str, Any], above: str = "") -> Settings:
    """Settings by their dotted names, with *** for what is shaped like a secret or is one."""
    flat: dict[str, object] = {}
    for name, value in settings.items():
        if isinstance(value, Mapping):
            flat |= cleaned(value, f"{above}{name}.")
        elif isinstance(value, str):
            flat[f"{above}{name}"] = without_secrets([value])
        elif isinstance(value, list | tuple):
            flat[f"{above}{name}"] = without_secrets([str(part) for part in value])
        else:
            flat[f"{above}{name}"] = value
    return flat
