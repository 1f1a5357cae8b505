"""Runs whose actions are sampled elsewhere: the weights get there before every collection."""

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from made import small_llama
from rewardswap.cli import main
from rewardswap.configuration import Run
from rewardswap.engines import make_engine, ready
from rewardswap.models.loading import load_language_model, model_folder
from rewardswap.ranks import Alone
from rewardswap.recipes import RECIPES
from rewardswap.rollout.config import OWNERS, RolloutConfig
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.transcripts import Transcripts
from rewardswap.rollout.vllm import VllmEngine
from rewardswap.settings import read_run, write_run
from serving import CompletionServer
from test_cli import SMALL

FOLDER = model_folder("base-agent")


@pytest.mark.parametrize("more", [[], ["--policy.lora-rank", "4"]], ids=["full", "lora"])
def test_a_server_plays_with_the_policys_own_weights(more: list[str], tmp_path: Path) -> None:
    model = load_language_model("base-agent").model
    server = CompletionServer(model)
    server.models = [{"id": "small", "max_model_len": 512}]
    words = ["--rollout.engine", "server", "--rollout.url", server.url, *more]
    with server:
        main(["train", "demo", *SMALL, *words, "--output", str(tmp_path / "run")])
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    assert [row["phase"] for row in rows] == ["explore", "harvest", "learn", "learn"]
    # of rows that have a gradient: the moved agent was sampled with its own weights
    assert rows[-1]["engine_gap_max"] < 1e-4
    # before, explore, harvest, twice learn, after
    assert server.cache_resets == 6


def test_a_server_plays_while_the_policy_learns(tmp_path: Path) -> None:
    server = CompletionServer(load_language_model("base-agent").model)
    server.models = [{"id": "small", "max_model_len": 512}]
    words = ["--rollout.engine", "server", "--rollout.url", server.url]
    ahead = ["--rollout.one-step-off", "true", "--loop", "on_policy", "--budget", "3"]
    small = ["--env.generated-games", "40", "--env.evaluation-tasks", "4", "--batch.tasks", "6"]
    folder = tmp_path / "run"
    with server:
        main(["train", "demo", *words, *ahead, *small, "--output", str(folder)])
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    assert rows[0]["engine_gap_max"] < 1e-4
    assert all("engine_gap_max" not in row for row in rows[1:])
    # sampled by the version before, whose weights the server had: near this one, and not it
    assert all(0.9 < row["aged_effective_sample_size"] < 1 for row in rows[1:])
    assert server.cache_resets == 5  # before, the first batch, two that were begun, after


class Second(Alone):
    """The second of two ranks."""

    rank, size = 1, 2


def test_each_of_several_processes_has_servers_of_its_own() -> None:
    model = load_language_model("base-agent")
    server = CompletionServer(model.model)
    server.models = [{"id": "small", "max_model_len": 512}]
    nowhere = "http://127.0.0.1:1"
    alone = RolloutConfig(engine="server", url=nowhere)
    with pytest.raises(ValueError, match="1 servers are too few for 2 processes"):
        make_engine(alone, model, FOLDER, "float32", ranks=Second())
    with server:
        both = RolloutConfig(engine="server", url=nowhere, more_urls=(server.url,))
        engine = make_engine(both, model, FOLDER, "float32", ranks=Second())
        assert [served.url for served in engine._servers] == [server.url]  # type: ignore[attr-defined]
        engine.close()


@pytest.mark.parametrize("name", OWNERS)
def test_a_setting_of_another_engine_is_refused(name: str) -> None:
    values: dict[str, Any] = {
        "refill": 0.5,
        "context_limit": 100,
        "memory_share": 0.5,
        "sleeps": True,
        "url": "http://127.0.0.1:1",
        "more_urls": ("http://127.0.0.1:2",),
        "server_model": "m",
        "transfer": "nccl",
        "exchange": Path("x"),
    }
    for engine in ("hugging_face", "vllm", "server"):
        settings = {"engine": engine, name: values[name]}
        if engine == OWNERS[name]:
            RolloutConfig(**settings)
        else:
            with pytest.raises(ValueError, match=f"{name} does nothing at engine {engine}"):
                RolloutConfig(**settings)


def test_engines_that_are_not_to_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    model = load_language_model("base-agent")

    def made(engine: str) -> None:
        make_engine(RolloutConfig(engine=engine), model, FOLDER, "float32")  # type: ignore[arg-type]

    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ValueError, match="vLLM in an environment of its own"):
        made("vllm")
    monkeypatch.delitem(sys.modules, "rewardswap.rollout.server", raising=False)
    monkeypatch.delitem(sys.modules, "rewardswap.rollout.connection", raising=False)
    monkeypatch.setitem(sys.modules, "httpx2", None)
    with pytest.raises(ValueError, match=r"needs httpx2; pip install 'rewardswap\[server\]'"):
        made("server")


def test_settings_of_an_engine_come_back_from_the_record(tmp_path: Path) -> None:
    config = RolloutConfig(engine="server", slots=3, exchange=tmp_path, cut_actions="end")
    run: Run = RECIPES["demo"]()
    object.__setattr__(run, "rollout", config)
    write_run(run, tmp_path / "config.toml")
    assert read_run(tmp_path / "config.toml").rollout == config


class Sleeper(VllmEngine):
    """One whose vLLM only notes what it is asked for."""

    def __init__(self) -> None:
        self.log: list[str] = []
        self._engine = SimpleNamespace(
            wake_up=lambda: self.log.append("wake"),
            sleep=lambda level: self.log.append(f"sleep {level}"),
            reset_prefix_cache=lambda: self.log.append("forget") is None,
        )
        self._transcripts = Transcripts(64, [1])
        self._sleeps, self._asleep = True, False

    def update_weights(self, weights: Any) -> None:
        assert not self._asleep
        self.log.append("load")


def test_an_engine_that_sleeps_is_woken_and_loaded_before_it_plays() -> None:
    engine = Sleeper()
    for _ in range(2):
        with ready(engine, small_llama(), sleeps=True):
            engine.log.append("play")
        with pytest.raises(ValueError, match="sleeps; wake it before it is asked"):
            engine.submit([], SamplingParams())
    assert engine.log == [
        *("load", "play", "forget", "sleep 1"),
        *("wake", "load", "play", "forget", "sleep 1"),
    ]


def test_a_server_that_fails_a_run_is_said_in_a_line_with_the_way_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = [
        *("train", "demo-grpo", "--env.generated-games", "40", "--env.evaluation-tasks", "2"),
        *("--budget", "1", "--rollout.engine", "server", "--output", str(tmp_path / "run")),
    ]
    with CompletionServer(load_language_model("base-agent").model) as server:
        server.models = [{"id": "small", "max_model_len": 2048}]
        server.development = False
        with pytest.raises(SystemExit) as stopped:
            main([*words, "--rollout.url", server.url])
    said = capsys.readouterr().err
    assert stopped.value.code == 1
    assert "cannot change its weights; start it with VLLM_SERVER_DEV_MODE=1" in said
    assert f"rewardswap train --resume {tmp_path / 'run'}" in said
