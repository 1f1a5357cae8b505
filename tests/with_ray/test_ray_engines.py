"""Rollout engines that Ray places: a killed one costs nothing, and comes back with new weights."""

import json
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from ray_runs import begun, ended, on_ray, rows

from killed import record
from made import small_llama
from rewardswap.rollout import connection
from rewardswap.rollout.engine import complete
from rewardswap.rollout.server import ServerEngine
from server_sessions import ENDS, SAMPLING, SESSIONS, asking, tokens, wanted

pytest.importorskip("ray", reason="ray is not installed; run `make test-ray`")

from rewardswap.cluster.engines import EngineServers, start_engines
from rewardswap.cluster.settings import ClusterSettings

if TYPE_CHECKING:
    from .conftest import TwoNodes

PROGRAM = Path(__file__).with_name("engine_program.py")
SERVER = "engine_program.py"


def command(logs: Path) -> str:
    logs.mkdir(exist_ok=True)
    return f"{sys.executable} {PROGRAM} {{model}} {{host}} {{port}} {logs}"


def settings(logs: Path, **more: Any) -> ClusterSettings:
    return ClusterSettings(
        cluster="ray",
        **{"ray_engines": 2, "ray_engine_gpus": 0, "ray_engine_command": command(logs), **more},
    )


def asked(logs: Path) -> dict[int, list[str]]:
    """What each server was asked, but for what is asked of every new one, by its process."""
    found = {int(path.name): path.read_text().splitlines() for path in logs.iterdir()}
    first = ("/v1/models 0", "/v1/completions 1", "done")
    return {pid: [line for line in lines if line not in first] for pid, lines in found.items()}


def open_requests(log: Path) -> int:
    """How many actions a server is busy with."""
    lines = log.read_text().splitlines()
    models = (n for n, line in enumerate(lines) if line.startswith("/v1/models"))
    behind = lines[max(models, default=0) :]
    return len(behind) - 2 * behind.count("done")


def servers_of(nodes: "TwoNodes", logs: Path) -> list[Any]:
    """The servers themselves, not what watches over them."""
    found = nodes.processes(str(logs))
    return [process for process in found if process.cmdline()[1].endswith(SERVER)]


def moved(servers: EngineServers, before: Sequence[str]) -> int:
    """Wait until an engine is at another address; which one."""
    until = time.monotonic() + 200
    while time.monotonic() < until:
        for number, url in enumerate(before):
            if (now := servers.url(number)) is not None and now != url:
                return number
        time.sleep(0.2)
    raise AssertionError("no engine was started again")


def test_a_killed_engine_comes_back_elsewhere_with_new_weights_only(
    connected: Any, nodes: "TwoNodes", tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connection, "PAUSE", 0.1)
    logs, folder = tmp_path / "logs", tmp_path / "model"
    small_llama(0).save_pretrained(folder)
    actors = start_engines(settings(logs), str(folder))
    servers = EngineServers(actors)
    urls = servers.urls()
    assert len(set(urls)) == 2
    assert {len(nodes.processes(f"{PROGRAM} {folder}", node)) > 0 for node in (0, 1)} == {True}
    engine = ServerEngine(ENDS, urls=urls, retries=1, whereabouts=servers.url)
    assert tokens(complete(engine, asking(SESSIONS), SAMPLING)) == wanted()
    engine.release(SESSIONS)
    before = asked(logs).keys()
    servers_of(nodes, logs)[0].kill()
    assert tokens(complete(engine, asking(SESSIONS), SAMPLING)) == wanted()
    assert engine.counted()["servers_lost"] == 1
    engine.release(SESSIONS)
    moved(servers, urls)
    (new,) = asked(logs).keys() - before
    assert asked(logs)[new] == []
    assert tokens(complete(engine, asking(SESSIONS), SAMPLING)) == wanted()
    assert asked(logs)[new] == []  # it has the weights of the beginning: it is not asked
    engine.release(SESSIONS)
    small_llama(1).save_pretrained(folder)
    engine.update_weights(folder)
    assert tokens(complete(engine, asking(SESSIONS), SAMPLING)) == wanted(1)
    loaded, *others = asked(logs)[new]
    assert loaded == "/collective_rpc 0" and "/v1/completions 3" in others
    engine.close()
    left = nodes.processes(str(logs))
    assert len(servers_of(nodes, logs)) == 2
    connected.shutdown()  # as a run that ends, or is killed
    for process in left:
        process.wait(30)


def test_an_engine_whose_command_ends_is_said(
    connected: Any, nodes: "TwoNodes", tmp_path: Path
) -> None:
    wrong = ClusterSettings(
        cluster="ray", ray_engines=1, ray_engine_gpus=0, ray_engine_command="false {model}"
    )
    with pytest.raises(ValueError, match="command ended with exit status 1: false folder"):
        EngineServers(start_engines(wrong, "folder")).urls()


SMALL_RUN = [
    *("train", "demo-grpo", "--env.generated-games", "40", "--env.evaluation-tasks", "2"),
    *("--batch.tasks", "4", "--batch.group-size", "4", "--budget", "4", "--env.turn-limit", "8"),
    *("--policy.learning-rate", "1e-3", "--rollout.engine", "server"),
]
TROUBLES = tuple(
    f"rollout/{name}"
    for name in ("servers_lost", "servers_unchecked", "requests_moved", "requests_retried")
)


def run_with_engines(nodes: "TwoNodes", folder: Path, *, kill: bool) -> list[dict[str, Any]]:
    """Two ranks, two engines each; its metrics."""
    logs, exchange = folder.with_name(f"{folder.name}-logs"), folder.with_name("exchange")
    exchange.mkdir(exist_ok=True)
    words = on_ray(nodes, *SMALL_RUN, "--rollout.exchange", str(exchange), "--output", str(folder))
    words += ["--ray-ranks", "2", "--ray-engines", "4", "--ray-engine-gpus", "0"]
    process = begun(*words, "--ray-engine-command", command(logs))
    while kill:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.02)
        if not (folder / "metrics.jsonl").exists() or not rows(folder):
            continue
        playing = [int(path.name) for path in logs.iterdir() if open_requests(path) > 1]
        for server in servers_of(nodes, logs):
            if server.pid in playing:
                server.kill()
                kill = False
                break
    ended(process)
    assert not list(exchange.iterdir())
    return rows(folder)


def test_an_engine_killed_in_a_run_changes_no_number(nodes: "TwoNodes", tmp_path: Path) -> None:
    expected = run_with_engines(nodes, tmp_path / "whole", kill=False)
    found = run_with_engines(nodes, tmp_path / "hurt", kill=True)
    assert sum(row["rollout/servers_lost"] for row in expected) == 0
    assert sum(row["rollout/servers_lost"] for row in found) == 1
    assert sum(row["rollout/requests_moved"] for row in found) > 0
    gaps = [row["engine_gap_max"] for row in found if "engine_gap_max" in row]  # of what teaches
    assert len(gaps) > 1 and max(gaps) < 1e-4  # sampled with the very weights that are trained
    records = [record(tmp_path / name) for name in ("whole", "hurt")]
    for one in records:
        one["metrics.jsonl"] = [
            {name: value for name, value in row.items() if name not in TROUBLES}
            for row in one["metrics.jsonl"]
        ]
    assert records[0] == records[1]
    assert not (tmp_path / "hurt" / "resumes.jsonl").exists()
    said = (tmp_path / "hurt" / "trajectories" / "train.jsonl").read_text().splitlines()
    played = [json.loads(line) for line in said]
    assert len(said) == len(set(said)) and played
