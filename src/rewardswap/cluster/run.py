"""A run on a Ray cluster: Ray Train starts its ranks, and again all of them where one is lost."""

import os
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.exceptions import RayError
from ray.train import FailureConfig, RunConfig, ScalingConfig, TrainingFailedError
from ray.train.torch import TorchConfig, TorchTrainer
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy
from rich.console import Console

from rewardswap.cluster.engines import EngineServers, start_engines
from rewardswap.cluster.settings import ClusterSettings
from rewardswap.cluster.workers import FarWorker
from rewardswap.configuration import Run
from rewardswap.distributed.process_group import ProcessGroup
from rewardswap.env_config import model_of
from rewardswap.lock import locked
from rewardswap.models.loading import model_folder
from rewardswap.options import UsageError, checked, one_line
from rewardswap.ranks import ALONE, Ranks, share
from rewardswap.rollout.placement import Placement
from rewardswap.run_folder import RunFolder

Ending = tuple[int, str]
"""Exit code of a run, and what is to be said of it."""
Work = Callable[..., Ending]
"""Trains as one of several ranks: (ranks, run, console, resume=, placement=)."""

ENVIRONMENT = {
    "RAY_USAGE_STATS_ENABLED": "0",
    "RAY_TRAIN_METRICS_ENABLED": "0",
    "RAY_CHDIR_TO_TRIAL_DIR": "0",  # settings name files from where the command was given
    "RAY_TRAIN_WORKER_GROUP_START_TIMEOUT_S": "600",  # of 60, imports over a network take a part
}
"""What Ray does beside its work and is not to do, and how long it waits, unless it is told."""
FREE_SECONDS = 120.0
"""Most seconds in which a lost rank 0 lets go of the run folder."""


class Verdict:
    """How a run ended, kept apart from its ranks: one that has ended is not begun again."""

    def __init__(self) -> None:
        self._ending: Ending | None = None

    def end(self, ending: Ending) -> None:
        """The run has ended so."""
        self._ending = self._ending or ending

    def ending(self) -> Ending | None:
        """How it did; none while it goes on."""
        return self._ending


@dataclass(frozen=True)
class Job:
    """All that a rank is told."""

    work: Work
    run: Run
    folder: str
    """The working folder of the command."""
    words: Sequence[str]
    """The command, for the record."""
    verdict: Any
    engines: Sequence[Any]


class RankStoppedError(RuntimeError):
    """One rank has stopped for a reason of its own; it ends the others."""


def train_on_ray(run: Run, settings: ClusterSettings, work: Work, *, resume: bool) -> Ending:
    """Train on a Ray cluster; raises UsageError for what cannot be begun."""
    output = (
        run.output or Path("runs") / f"{run.recipe}-{time.strftime('%Y%m%d-%H%M%S')}"
    ).resolve()
    run = replace(run, output=output)
    checked(lambda: RunFolder(output, resume=resume)).close()
    _connect(settings)
    try:
        if lacking := _lacking(run, settings, ray.cluster_resources()):
            sys.stderr.write(f"rewardswap: {lacking}; it waits until more nodes come\n")
        verdict = ray.remote(num_cpus=0, scheduling_strategy=_beside_this())(Verdict).remote()
        engines = start_engines(settings, str(model_folder(model_of(run.env, run.policy.model))))
        job = Job(work, run, os.getcwd(), list(sys.argv), verdict, engines)
        stopped = _fit(job, settings)
        ending: Ending | None = ray.get(verdict.ending.remote())
    except KeyboardInterrupt:
        stopped, ending = (130, "stopped by hand"), None
    finally:
        ray.shutdown()
    if ending is not None:
        return ending
    code, said = stopped
    return code, (
        f"{said}; the record so far is in {output}, and `rewardswap train --resume {output} "
        "--cluster ray` goes on"
    )


def _connect(settings: ClusterSettings) -> None:
    os.environ.update({**ENVIRONMENT, **os.environ})
    try:
        ray.init(
            address=settings.ray_address,
            include_dashboard=False,
            logging_level="ERROR",
            logging_config=ray.LoggingConfig(log_level="ERROR"),
            runtime_env={"env_vars": {"OMP_WAIT_POLICY": os.environ.get("OMP_WAIT_POLICY", "")}},
        )
    except (ConnectionError, RayError, RuntimeError, ValueError) as error:
        where = settings.ray_address or "that ray finds"
        raise UsageError(f"the Ray cluster {where} cannot be reached: {error}") from error


def _beside_this() -> NodeAffinitySchedulingStrategy:
    """The node of the command: what is there is not lost before the run is."""
    return NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)


def _lacking(run: Run, settings: ClusterSettings, there: Mapping[str, float]) -> str:
    """What the run takes that the cluster does not have now; empty where nothing lacks."""
    ranks, engines = settings.ray_ranks, settings.ray_engines
    takes = {
        "CPU": ranks * (run.threads + run.rollout.workers) + engines,
        "GPU": ranks * run.policy.device.startswith("cuda") + engines * settings.ray_engine_gpus,
    }
    few = [n for n, count in takes.items() if count > there.get(n, 0)]
    return ", ".join(f"the run takes {takes[n]} {n}s, of {there.get(n, 0):g} there" for n in few)


def _fit(job: Job, settings: ClusterSettings) -> Ending:
    """Run all ranks to the end; why they did not come to it, where they left no verdict."""
    gpu = job.run.policy.device.startswith("cuda")
    needs = {"CPU": float(job.run.threads), **({"GPU": 1.0} if gpu else {})}
    with tempfile.TemporaryDirectory(prefix="rewardswap-ray-") as aside:
        trainer = TorchTrainer(
            partial(_rank, job),
            torch_config=TorchConfig(backend="cpu:gloo,cuda:nccl" if gpu else "gloo"),
            scaling_config=ScalingConfig(
                num_workers=settings.ray_ranks, use_gpu=gpu, resources_per_worker=needs
            ),
            run_config=RunConfig(
                name=job.run.recipe,
                storage_path=aside,  # checkpoints are the run folder's
                failure_config=FailureConfig(max_failures=settings.ray_failures),
            ),
        )
        try:
            _in_a_thread(trainer.fit)
        except TrainingFailedError as error:
            return 1, one_line(f"ranks were lost once more than ray_failures allows: {error}")
    return 1, "the ranks ended without a word"


def _in_a_thread(work: Callable[[], Any]) -> None:
    """Do it, ended at once by Ctrl-C: in the main thread Ray Train would wait for its ranks."""
    done: Future[None] = Future()

    def working() -> None:
        try:
            work()
        except BaseException as error:
            done.set_exception(error)
        else:
            done.set_result(None)

    threading.Thread(target=working, daemon=True).start()
    done.result()


def _rank(job: Job) -> None:
    """What each rank does, in each attempt: it begins the run, or goes on with it."""
    if ray.get(job.verdict.ending.remote()) is not None:
        return
    os.chdir(job.folder)
    sys.argv[:] = job.words
    size = ray.train.get_context().get_world_size()
    ranks: Ranks = ProcessGroup() if size > 1 else ALONE
    code, said = _ended(job, ranks)
    if code or ranks.rank == 0:
        ray.get(job.verdict.end.remote((code, said)))
    if code:
        raise RankStoppedError(said)


def _ended(job: Job, ranks: Ranks) -> Ending:
    output = job.run.output
    assert output is not None
    if ranks.rank == 0:
        _wait_until_free(output)
    engines = share(job.engines, ranks)
    placement = Placement(FarWorker, EngineServers(engines) if engines else None)
    console = Console() if ranks.rank == 0 else Console(quiet=True)
    resume = ranks.first((output / "config.toml").is_file())
    try:
        return job.work(ranks, job.run, console, resume=resume, placement=placement)
    except UsageError as error:
        return 2, one_line(error)


def _wait_until_free(folder: Path) -> None:
    """Wait for a rank 0 that is lost but not yet gone; what holds the folder then is a reason."""
    until = time.monotonic() + FREE_SECONDS
    while time.monotonic() < until:
        try:
            with locked(folder, "the run of process {}"):
                return
        except ValueError:
            time.sleep(0.5)
