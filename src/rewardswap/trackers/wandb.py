"""Weights & Biases: offline in the folder `wandb` of the run, unless WANDB_MODE says otherwise."""

import os
import secrets
from collections.abc import Mapping
from typing import Any

import wandb

from rewardswap.trackers.base import Place, Settings

QUIET = {
    "silent": True,
    "console": "off",
    "disable_git": True,
    "disable_code": True,
    "disable_job_creation": True,
    "x_disable_meta": True,
    "x_disable_machine_info": True,
    "x_disable_stats": True,
}
"""Nothing is said, and nothing is kept of the command line, the source, the machine."""


class WeightsAndBiases:
    """History by `phase/metric`; a run that goes on has the same id, which `wandb sync` joins."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def start(self, config: Settings) -> str:
        """Begin the run, or go on with it."""
        place = self._place
        known = place.id or secrets.token_hex(4)
        mode: Any = os.environ.get("WANDB_MODE", "offline")
        self._run = wandb.init(
            project=place.project,
            name=place.name,
            id=known,
            resume="allow",
            mode=mode,
            dir=os.environ.get("WANDB_DIR", str(place.folder)),
            config=dict(config),
            settings=wandb.Settings(**QUIET),
        )
        return known

    def add(self, metrics: Mapping[str, float], step: int, phase: str) -> None:
        """One row."""
        self._run.log({f"{phase}/{name}": value for name, value in metrics.items()}, step=step)

    def finish(self) -> None:
        """Write the end of the run."""
        self._run.finish()
