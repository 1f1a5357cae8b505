"""Ray, only where it is installed: `make test-ray`. Two nodes on this machine, each a raylet."""

import os
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import psutil
import pytest

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
TESTS = Path(__file__).parents[1]
SMALL = {"object_store_memory": 150 * 2**20, "include_dashboard": False}
HEAD, SECOND = {"num_cpus": 1, **SMALL}, {"num_cpus": 6, **SMALL}
"""Ray puts the ranks of a run onto one node where they fit: only the second takes two."""


@pytest.fixture(autouse=True, scope="session")
def only_with_ray() -> None:
    if find_spec("ray") is None:
        pytest.skip("ray is not installed; run `make test-ray`")


class TwoNodes:
    """A cluster of two nodes, and the processes that are on them."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        self.cluster = Cluster(initialize_head=True, head_node_args=HEAD)
        self.nodes = [self.cluster.head_node, self.cluster.add_node(**SECOND)]

    @property
    def address(self) -> str:
        found: str = self.cluster.address
        return found

    def processes(self, word: str, node: int | None = None) -> list[psutil.Process]:
        """What runs on one node, or on both, with a word in its title or its command."""
        nodes = self.nodes if node is None else [self.nodes[node]]
        found = []
        for each in nodes:
            for raylet in each.all_processes["raylet"]:
                for child in psutil.Process(raylet.process.pid).children(recursive=True):
                    try:
                        if word in " ".join(child.cmdline()):
                            found.append(child)
                    except psutil.Error:  # it has just ended
                        continue
        return found

    def rank(self, folder: Path, rank: int) -> psutil.Process:
        """A rank of the run in a folder: rank 0 is the one that has it."""
        first = int((folder / ".lock").read_text())
        found = self.processes("ray::RayTrainWorker")
        return next(process for process in found if (process.pid == first) == (rank == 0))

    def lose_second(self) -> None:
        """The second node goes, with all that runs on it, and another comes."""
        self.cluster.remove_node(self.nodes[1], allow_graceful=False)
        self.nodes[1] = self.cluster.add_node(**SECOND)


@pytest.fixture(scope="session")
def nodes() -> Iterator[TwoNodes]:
    paths = [str(TESTS), os.environ.get("PYTHONPATH", "")]
    os.environ["PYTHONPATH"] = os.pathsep.join(filter(None, paths))
    os.environ["OMP_NUM_THREADS"] = "1"
    found = TwoNodes()
    yield found
    found.cluster.shutdown()


@pytest.fixture
def connected(nodes: TwoNodes) -> Iterator[Any]:
    """This process as a driver of the cluster."""
    import ray

    ray.init(address=nodes.address, logging_level="ERROR", log_to_driver=False)
    yield ray
    ray.shutdown()
