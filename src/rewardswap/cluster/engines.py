"""Rollout servers that Ray places, and starts again where they are lost."""

import os
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any

import ray
from ray.exceptions import GetTimeoutError, RayError

from rewardswap.cluster.kept import answers, start
from rewardswap.cluster.settings import ClusterSettings
from rewardswap.cluster.workers import reason

START_SECONDS = 1800.0
"""Most seconds in which the engines load their model, nodes that are still to come included."""
AT_ONCE = 2.0
"""Seconds in which a running engine's actor answers."""


class EngineProcess:
    """A server beside the actor that this is; where one ends so does the other.

    Every start takes another port, so that no server of older weights is ever found at the address
    of the one before.
    """

    def __init__(self, settings: ClusterSettings, model: str, folder: str) -> None:
        """Returns when the server answers; raises RuntimeError where its command ends before."""
        os.chdir(folder)
        host = ray.util.get_node_ip_address()
        with socket.socket() as found:
            found.bind((host, 0))
            port = int(found.getsockname()[1])
        words = settings.engine_command(model, host, port)
        os.environ["VLLM_SERVER_DEV_MODE"] = "1"  # the endpoints that take weights
        self._process = start(words)
        while not answers(host, port):
            if self._process.poll() is not None:
                raise RuntimeError(
                    f"the engine's command ended with exit status {self._process.returncode}: "
                    f"{' '.join(words)}"
                )
            time.sleep(0.2)
        self._url = f"http://{host}:{port}"
        threading.Thread(target=self._end_with_it, daemon=True).start()

    def url(self) -> str:
        """Where it listens."""
        return self._url

    def _end_with_it(self) -> None:
        self._process.wait()
        os._exit(1)  # a lost actor is started again, with a server on another port


ENGINE = ray.remote(num_cpus=1, max_restarts=-1)(EngineProcess)


def start_engines(settings: ClusterSettings, model: str) -> list[Any]:
    """The actors of all engines; they live as long as this process."""
    options = {"scheduling_strategy": "SPREAD", "num_gpus": settings.ray_engine_gpus}
    make = ENGINE.options(**options).remote
    return [make(settings, model, os.getcwd()) for _ in range(settings.ray_engines)]


class EngineServers:
    """The engines of one rank, as the rollout sees them (`rollout.placement.Servers`)."""

    def __init__(self, actors: Sequence[Any]) -> None:
        self._actors = actors

    def urls(self) -> list[str]:
        """Their addresses, once all of them answer; raises ValueError where one does not."""
        try:
            found: list[str] = ray.get(
                [actor.url.remote() for actor in self._actors], timeout=START_SECONDS
            )
        except GetTimeoutError:
            raise ValueError(
                f"the rollout engines did not answer within {START_SECONDS:g} s; see whether the "
                "cluster has room for them (`ray status`), and what they log"
            ) from None
        except RayError as error:
            raise ValueError(f"a rollout engine could not be started: {reason(error)}") from error
        return found

    def url(self, number: int) -> str | None:
        """The address that one has now; none while it is started again."""
        try:
            found: str = ray.get(self._actors[number].url.remote(), timeout=AT_ONCE)
        except RayError:
            return None
        return found
