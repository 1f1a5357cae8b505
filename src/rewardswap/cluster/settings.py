"""Where `train` runs, as a value: it changes no number of a run and is no part of its record."""

import shlex
from dataclasses import dataclass
from importlib.util import find_spec
from typing import Literal

from rewardswap.checks import at_least
from rewardswap.configuration import Run
from rewardswap.rollout.config import RolloutConfig

VLLM = (
    "vllm serve {model} --host {host} --port {port} "
    "--logprobs-mode processed_logprobs --generation-config vllm --skip-tokenizer-init "
    "--weight-transfer-config.backend nccl"
)
"""What an engine runs unless told otherwise (docs/engines.md)."""


@dataclass(frozen=True)
class ClusterSettings:
    """Where a run's processes are (extra `ray`, docs/scale.md); it changes no number of the run."""

    cluster: Literal["ray"] | None = None
    """ray: ranks, environment workers and rollout engines wherever a Ray cluster has room, and
    started again where they are lost; none: this machine, or where torchrun has started this."""
    ray_address: str | None = None
    """Address of the cluster; none: that of RAY_ADDRESS, else the one that runs on this machine,
    else one of this machine alone, which ends with the run (`local` has it so whatever runs)."""
    ray_ranks: int = 1
    """Processes that train together, each with a GPU of its own where policy.device is cuda."""
    ray_failures: int = 3
    """Most times that a rank is lost, upon which all begin again at the last checkpoint; the next
    time the run stops. Preempted nodes are not counted."""
    ray_engines: int = 0
    """Servers of rollout.engine server that the cluster starts, in place of rollout.url; each
    belongs to one rank. 0: none."""
    ray_engine_gpus: int = 1
    """GPUs of each of them."""
    ray_engine_command: str = VLLM
    """What each of them runs; {model} is the start policy's folder, {host} and {port} are where it
    has to listen."""

    def __post_init__(self) -> None:
        at_least(1, ray_ranks=self.ray_ranks)
        at_least(
            0,
            ray_failures=self.ray_failures,
            ray_engines=self.ray_engines,
            ray_engine_gpus=self.ray_engine_gpus,
        )
        self.engine_command("model", "127.0.0.1", 1)
        for name, default in vars(type(self)).items():
            if not name.startswith("ray_") or getattr(self, name) == default:
                continue
            if self.cluster is None:
                raise ValueError(f"{name} does nothing without cluster ray")
            if name.startswith("ray_engine_") and not self.ray_engines:
                raise ValueError(f"{name} does nothing at ray_engines 0")

    def engine_command(self, model: str, host: str, port: int) -> list[str]:
        """The words that start an engine; raises ValueError for a command that cannot be read."""
        try:
            words = shlex.split(self.ray_engine_command)
            return [word.format(model=model, host=host, port=port) for word in words]
        except (IndexError, KeyError, ValueError) as error:
            raise ValueError(
                f"ray_engine_command cannot be read ({error!r}); its placeholders are {{model}}, "
                "{host} and {port}"
            ) from error

    def check(self, run: Run) -> None:
        """Raise ValueError where ray is not installed, or for a run that cannot be placed so."""
        found = find_spec("ray")
        if found is None or found.origin is None:  # Ray leaves a folder `ray` in /tmp: no package
            raise ValueError("cluster ray needs ray; pip install 'rewardswap[ray]'")
        rollout = run.rollout
        if not self.ray_engines:
            return
        if rollout.engine != "server":
            raise ValueError(
                f"ray_engines does nothing at rollout.engine {rollout.engine}; set that to server"
            )
        if self.ray_engines < self.ray_ranks:
            raise ValueError(
                f"{self.ray_engines} engines are too few for {self.ray_ranks} ranks: each needs "
                "one of its own; raise ray_engines"
            )
        for name in ("url", "more_urls"):
            if getattr(rollout, name) != getattr(RolloutConfig, name):
                raise ValueError(f"rollout.{name} does nothing where ray_engines starts servers")
        if rollout.transfer == "folder" and rollout.exchange is None:
            raise ValueError(
                "ray_engines needs rollout.exchange, a folder that all nodes see: weights go "
                "through it; or rollout.transfer nccl"
            )
