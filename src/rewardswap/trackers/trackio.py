"""Trackio: its own local folder (TRACKIO_DIR), or the Space of TRACKIO_SPACE_ID."""

import secrets
from collections.abc import Mapping
from contextlib import redirect_stdout
from io import StringIO

import trackio

from rewardswap.trackers.base import Place, Settings


class Trackio:
    """History by `phase/metric`; a run that goes on has the same name."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def start(self, config: Settings) -> str:
        """Begin the run, or go on with it; its id is its name with six digits, as Trackio goes on
        with the latest run of a name."""
        place = self._place
        known = place.id or f"{place.name}-{secrets.token_hex(3)}"
        with redirect_stdout(StringIO()):
            self._run = trackio.init(
                project=place.project,
                name=known,
                config=dict(config),
                resume="never" if place.id is None else "allow",
                embed=False,
                auto_log_gpu=False,
                auto_log_cpu=False,
            )
        return known

    def add(self, metrics: Mapping[str, float], step: int, phase: str) -> None:
        """One row."""
        self._run.log({f"{phase}/{name}": value for name, value in metrics.items()}, step=step)

    def finish(self) -> None:
        """Write what is still to be written."""
        with redirect_stdout(StringIO()):
            trackio.finish()  # the run's own finish is called once more at exit, and prints
