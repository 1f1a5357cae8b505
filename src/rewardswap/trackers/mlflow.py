"""MLflow: a database in the folder `mlflow` of the run, or the server of MLFLOW_TRACKING_URI."""

import logging
import os
import time
from collections.abc import Mapping

from mlflow.entities import Metric, Param
from mlflow.exceptions import MlflowException
from mlflow.tracking import MlflowClient

from rewardswap.trackers.base import Place, Settings

LONGEST = 6000
"""Most characters of a setting's value that MLflow keeps."""
BATCH = 100
"""Most settings of one request (MLflow's)."""


class MLflow:
    """Metrics by `phase/metric` and settings as parameters of one run."""

    def __init__(self, place: Place) -> None:
        self._place = place

    def start(self, config: Settings) -> str:
        """Begin the run, or go on with it."""
        logging.getLogger("mlflow").setLevel(logging.WARNING)
        place = self._place
        uri = os.environ.get("MLFLOW_TRACKING_URI")
        if uri is None:
            folder = (place.folder / "mlflow").resolve()
            folder.mkdir(exist_ok=True)
            uri = f"sqlite:///{folder / 'mlflow.db'}"
        self._client = MlflowClient(uri)
        if place.id is not None:
            self._id = place.id
            self._client.update_run(self._id, status="RUNNING")
            return self._id
        self._id = self._client.create_run(self._experiment(), run_name=place.name).info.run_id
        said = [Param(name, str(value)[:LONGEST]) for name, value in config.items()]
        for start in range(0, len(said), BATCH):
            self._client.log_batch(self._id, params=said[start : start + BATCH])
        return self._id

    def _experiment(self) -> str:
        project = self._place.project
        known = self._client.get_experiment_by_name(project)
        if known is not None:
            return str(known.experiment_id)
        try:
            return str(self._client.create_experiment(project))
        except MlflowException:  # another run made it meanwhile
            known = self._client.get_experiment_by_name(project)
            if known is None:
                raise
            return str(known.experiment_id)

    def add(self, metrics: Mapping[str, float], step: int, phase: str) -> None:
        """One row, in one request."""
        now = int(1000 * time.time())
        said = [Metric(f"{phase}/{name}", value, now, step) for name, value in metrics.items()]
        self._client.log_batch(self._id, metrics=said)

    def finish(self) -> None:
        """Mark the run as finished."""
        self._client.set_terminated(self._id)
