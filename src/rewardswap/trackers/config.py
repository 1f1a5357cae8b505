"""Which trackers a run has, as a value."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib.util import find_spec

from rewardswap.checks import plain_text
from rewardswap.names import unknown

PACKAGES: Mapping[str, str] = {
    "tensorboard": "tensorboard",
    "wandb": "wandb",
    "mlflow": "mlflow",
    "trackio": "trackio",
}
"""The package that each tracker needs."""


@dataclass(frozen=True)
class TrackConfig:
    """Where metrics go beside metrics.jsonl and the screen (extra `track`, docs/trackers.md).

    Nothing leaves this machine unless an environment variable of the tracker's own says so. It
    changes no number of a run.
    """

    to: tuple[str, ...] = ()
    """Any of tensorboard, wandb, mlflow, trackio; none of them: the run folder alone."""
    project: str = "rewardswap"
    """Project, or experiment, of the tracker that the run belongs to; tensorboard has none."""
    name: str | None = None
    """Name of the run in the tracker; none: that of the run folder; tensorboard has none."""

    def __post_init__(self) -> None:
        for tracker in self.to:
            if tracker not in PACKAGES:
                raise ValueError(f"to: {unknown('tracker', tracker, PACKAGES)}")
        if len(set(self.to)) < len(self.to):
            raise ValueError(f"to names a tracker twice, got {' '.join(self.to)}; name each once")
        for what in ("project", "name"):
            value = getattr(self, what)
            if value == "":
                raise ValueError(f"{what} is empty; give it a name, or leave it out")
            if value is not None:
                plain_text(what, value)
            if value != getattr(type(self), what) and not set(self.to) - {"tensorboard"}:
                raise ValueError(
                    f"{what} does nothing without wandb, mlflow or trackio in track.to"
                )

    def check_installed(self) -> None:
        """Raise ValueError for a tracker whose package is not installed."""
        for tracker in self.to:
            spec = find_spec(PACKAGES[tracker])
            if spec is None or spec.origin is None:  # a mere folder of that name is no package
                raise ValueError(
                    f"track.to names {tracker}, which is not installed; "
                    "`pip install 'rewardswap[track]'`, or leave it out"
                )
