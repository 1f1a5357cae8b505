"""Where environment workers and rollout servers are: on this machine, or where a cluster has room.

It changes no number of a run, and is no part of its settings.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from rewardswap.rollout.worker_process import Worker, WorkerProcess


@runtime_checkable
class Servers(Protocol):
    """Rollout servers that somebody else starts, and starts again elsewhere where one is lost."""

    def urls(self) -> Sequence[str]:
        """Their addresses, once all of them answer; raises ValueError where one does not."""
        ...

    def url(self, number: int) -> str | None:
        """The address that one of them has now; none while it is started again."""
        ...


@dataclass(frozen=True)
class Placement:
    """Who starts what plays."""

    start_worker: Callable[[bytes], Worker] = WorkerProcess
    """Starts an environment worker on its first line."""
    servers: Servers | None = None
    """The servers of engine `server`; none: those that the settings name."""


HERE = Placement()
"""This machine, and the servers that the settings name."""
