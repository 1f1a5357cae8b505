"""What a tracker does."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, runtime_checkable

Settings = Mapping[str, object]
"""A run's settings by their dotted names, without secrets."""


@dataclass(frozen=True)
class Place:
    """Where a tracker writes, and as what."""

    folder: Path
    """The run folder; a tracker that writes to disk has a folder of its own name in it."""
    project: str
    name: str
    id: str | None
    """What `start` returned when the run began; none: it begins now."""


@runtime_checkable
class Tracker(Protocol):
    """One run in one tracker; what it raises never stops the run."""

    def start(self, config: Settings) -> str:
        """Begin the run, or go on with the one of the place's id; its id."""
        ...

    def add(self, metrics: Mapping[str, float], step: int, phase: str) -> None:
        """One row of metrics; `step` is its number in metrics.jsonl, counted from 1."""
        ...

    def finish(self) -> None:
        """Write what is still to be written, and let go."""
        ...
