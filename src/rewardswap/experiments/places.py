"""Where the runs of an experiment lie: RUNS/ARM/seed-S, with a configuration and a log beside."""

from dataclasses import dataclass
from pathlib import Path

from rewardswap.comparison.files import read_document
from rewardswap.configuration import Run
from rewardswap.experiments.experiment import Experiment, Job
from rewardswap.experiments.store import code_of
from rewardswap.settings import write_run


@dataclass(frozen=True)
class Places:
    """Paths of an experiment's runs."""

    runs: Path
    experiment: Experiment

    def folder(self, job: Job) -> Path:
        """The run folder."""
        return self.runs / job.arm.name / f"seed-{job.seed}"

    def config(self, job: Job) -> Path:
        """The run as it is given to `rewardswap train`."""
        return self._beside(job, ".toml")

    def log(self, job: Job) -> Path:
        """What the run printed."""
        return self._beside(job, ".log")

    def checkpoint(self, job: Job) -> Path:
        """The trained policy."""
        return self.folder(job) / "checkpoint"

    def write_config(self, job: Job) -> None:
        """Write the run's configuration, with the start model that its arm needs."""
        self.config(job).parent.mkdir(parents=True, exist_ok=True)
        write_run(self._run(job), self.config(job))

    def is_finished(self, job: Job) -> bool:
        """Whether the folder holds this very run, ended well, with its checkpoint."""
        there = (self.folder(job) / "summary.json", self.checkpoint(job))
        return all(path.exists() for path in there) and self._is_given(job)

    def can_go_on(self, job: Job, code: str) -> bool:
        """Whether the folder holds this very run, stopped, with a checkpoint made by `code`."""
        folder = self.folder(job)
        kept = (folder / "checkpoints").is_dir() and not (folder / "summary.json").exists()
        return (
            kept and self._is_given(job) and code_of(read_document(folder, "environment")) == code
        )

    def _is_given(self, job: Job) -> bool:
        """Whether the configuration beside the folder is what the job would be given now."""
        if not self.config(job).exists():
            return False
        given = self._beside(job, ".given.toml")
        write_run(self._run(job), given)
        same = given.read_bytes() == self.config(job).read_bytes()
        given.unlink()
        return same

    def set_aside(self, job: Job) -> Path | None:
        """Keep what a run left under the name seed-S.stopped-N; its path, none if it left nothing.

        N counts from 1.
        """
        folder, log = self.folder(job), self.log(job)
        if not folder.exists() and not log.exists():
            return None
        count = 1
        while self._beside(job, f".stopped-{count}").exists() or (
            self._beside(job, f".stopped-{count}.log").exists()
        ):
            count += 1
        kept = self._beside(job, f".stopped-{count}")
        for path, name in ((folder, kept), (log, self._beside(job, f".stopped-{count}.log"))):
            if path.exists():
                path.rename(name)
        return kept

    def _run(self, job: Job) -> Run:
        needed = self.experiment.needed(job)
        return job.run(None if needed is None else self.checkpoint(needed))

    def _beside(self, job: Job, suffix: str) -> Path:
        return self.folder(job).parent / f"seed-{job.seed}{suffix}"
