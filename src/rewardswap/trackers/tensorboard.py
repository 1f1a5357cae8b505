"""TensorBoard: event files in the folder `tensorboard` of the run."""

from collections.abc import Mapping

from tensorboard.summary import Writer

from rewardswap.trackers.base import Place, Settings


class TensorBoard:
    """Scalars by `phase/metric`; a run that goes on adds a file to the same folder."""

    def __init__(self, place: Place) -> None:
        self._folder = place.folder / "tensorboard"

    def start(self, config: Settings) -> str:
        """Open an event file; TensorBoard knows no ids and no settings."""
        self._writer = Writer(str(self._folder))
        return self._folder.name

    def add(self, metrics: Mapping[str, float], step: int, phase: str) -> None:
        """One row; it is on the disk when this returns."""
        for name, value in metrics.items():
            self._writer.add_scalar(f"{phase}/{name}", value, step)
        self._writer.flush()

    def finish(self) -> None:
        """Close the event file."""
        self._writer.close()
