"""Weights by vLLM's own transfer into a real `vllm serve`, gloo in NCCL's place on the wire."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from threading import Event
from typing import Any

import gloo_in_place_of_nccl
import numpy as np
import pytest
import torch

from engines import ENDS, wide_llama
from rewardswap.rollout import transfer
from rewardswap.rollout.connection import Connection
from rewardswap.rollout.engine import Completion, Request, SamplingParams, complete
from rewardswap.rollout.server import ServerEngine
from vllm_process import PROCESSED, vllm_and_url, vllm_process

pytestmark = pytest.mark.slow
FLAGS = (*PROCESSED, "--weight-transfer-config.backend", "nccl")
NAMES = [f"n{number}" for number in range(4)]
SAMPLING = SamplingParams(temperature=0.7, max_tokens=8)
Start = Callable[[], AbstractContextManager[tuple[Any, str]]]


@pytest.fixture(scope="module")
def start(wide_folder: Path, tmp_path_factory: pytest.TempPathFactory) -> Start:
    """A server whose processes have gloo in NCCL's place."""
    plugin = tmp_path_factory.mktemp("plugin")
    info = plugin / "gloo_weights-1.dist-info"
    info.mkdir()
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: gloo-weights\nVersion: 1\n")
    (info / "entry_points.txt").write_text(
        f"[vllm.general_plugins]\ngloo_weights = {gloo_in_place_of_nccl.__name__}:install\n"
    )
    path = os.pathsep.join([str(plugin), str(Path(__file__).parent)])
    return partial(vllm_and_url, wide_folder, *FLAGS, environment={"PYTHONPATH": path})


@pytest.fixture(scope="module")
def url(start: Start) -> Iterator[str]:
    with start() as (_, found):
        yield found


@pytest.fixture(scope="module", autouse=True)
def on_a_cpu() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        for owner, name in (
            (torch.cuda, "stream"),
            (torch.accelerator, "current_device_index"),
        ):
            patch.setattr(owner, name, getattr(owner, name))  # given back behind the module
        gloo_in_place_of_nccl.install()
        patch.setattr(transfer, "_device", lambda: torch.device("cpu"))
        yield


@pytest.fixture
def engine(url: str) -> Iterator[ServerEngine]:
    engine = ServerEngine(ENDS, urls=[url], transfer="nccl", retries=0)
    yield engine
    engine.close()


def weights(seed: int) -> Iterator[tuple[str, torch.Tensor]]:
    return iter(wide_llama(seed).state_dict().items())


def asked(name: str) -> Request:
    context = np.random.default_rng(int(name[1:])).integers(3, 30, 40)
    return Request(name, context, False, (int(name[1:]), 0))


def played(engine: ServerEngine) -> list[Completion]:
    found = complete(engine, [asked(name) for name in NAMES], SAMPLING)
    engine.release(NAMES)
    engine.counted()
    return found


def sampled_by(engine: ServerEngine, seed: int) -> bool:
    """Whether the server's log-probs are those of the weights of a seed."""
    model = wide_llama(seed)
    for name, said in zip(NAMES, played(engine), strict=True):
        read = asked(name).context_ids
        row = torch.tensor(np.concatenate([read, said.ids]))[None]
        every = torch.log_softmax(model(row).logits[0, len(read) - 1 : -1].detach() / 0.7, dim=-1)
        expected = every[torch.arange(len(said.ids)), torch.tensor(said.ids)].numpy()
        if np.abs(expected - said.logprobs).max() > 1e-4:
            return False
    return True


def test_weights_arrive_as_through_a_folder_each_time(
    engine: ServerEngine, url: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    joined: list[Any] = []
    join = transfer.Broadcast._joined
    monkeypatch.setattr(transfer.Broadcast, "_joined", lambda self: joined.append(0) or join(self))
    for seed in (7, 8, 7):
        engine.update_weights(weights(seed))
        assert sampled_by(engine, seed) and not sampled_by(engine, 9)
    assert len(joined) == 1  # one group for all of them
    by_nccl = played(engine)
    other = ServerEngine(ENDS, urls=[url])
    wide_llama(7).save_pretrained(tmp_path)
    other.update_weights(tmp_path)
    by_folder = played(other)
    other.close()
    assert [one.logprobs.tobytes() for one in by_nccl] == [
        one.logprobs.tobytes() for one in by_folder
    ]
    with pytest.raises(ValueError, match="somebody else loads into it"):
        played(engine)


def post(url: str, path: str, body: object = None) -> None:
    connection = Connection(url, timeout=30.0, retries=0, at_once=1)
    connection.ask("POST", path, body)
    connection.close()


def test_a_server_that_knows_of_no_group_is_joined_anew(engine: ServerEngine, url: str) -> None:
    """As one that was started again between two pushes: its weights have another name."""
    engine.update_weights(weights(3))
    post(url, "/shutdown_weight_transfer_engine")
    post(url, "/update_weight_version", {"new_version": "default"})
    engine.update_weights(weights(5))
    assert sampled_by(engine, 5)


def test_who_takes_no_part_is_not_waited_for(
    engine: ServerEngine, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """NCCL would wait for ever for a server that has left the group: its answer ends that."""
    engine.update_weights(weights(3))
    post(url, "/shutdown_weight_transfer_engine")
    ended = Event()
    waited: list[bool] = []
    with monkeypatch.context() as patch:
        communicator = gloo_in_place_of_nccl.GlooCommunicator
        patch.setattr(
            communicator, "broadcast", lambda self, tensor, src: waited.append(ended.wait(20))
        )
        patch.setattr(communicator, "destroy", lambda self: ended.set())
        with pytest.raises(ValueError, match=r"POST /update_weights.*status 500"):
            engine.update_weights(weights(5))
    assert waited == [True]
    engine.update_weights(weights(6))
    assert sampled_by(engine, 6)


def test_a_folder_goes_the_same_way(engine: ServerEngine, tmp_path: Path) -> None:
    wide_llama(3).save_pretrained(tmp_path)
    engine.update_weights(tmp_path)
    assert sampled_by(engine, 3)


def test_what_is_cut_in_the_middle_is_not_played_and_then_made_good(
    engine: ServerEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The trainer's end breaks while the server waits in the broadcast."""
    engine.update_weights(weights(4))
    whole = transfer.Broadcast.__iter__

    def cut(self: Any) -> Iterator[tuple[str, torch.Tensor]]:
        for number, one in enumerate(whole(self)):
            if number == 5:
                raise RuntimeError("the cable is out")
            yield one

    with monkeypatch.context() as patch:
        patch.setattr(transfer.Broadcast, "__iter__", cut)
        with pytest.raises(
            ValueError, match=r"weights did not get to the server.*the cable is out"
        ):
            engine.update_weights(weights(5))
    assert engine.counted()["servers_lost"] == 1
    with pytest.raises(ValueError, match="the cable is out"):
        engine.submit([asked("n0")], SAMPLING)
    engine.update_weights(weights(6))
    assert sampled_by(engine, 6)


def test_weights_that_the_server_cannot_take_stop_the_run(engine: ServerEngine, url: str) -> None:
    odd = [*weights(1), ("model.layers.0.nothing.weight", torch.zeros(2))]
    with pytest.raises(ValueError, match=r"POST /update_weights.*status 500"):
        engine.update_weights(odd)
    assert engine.counted()["servers_lost"] == 0
    engine.update_weights(weights(2))
    assert sampled_by(engine, 2)


def test_a_server_killed_in_the_middle_is_lost(
    start: Start, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = transfer.Broadcast.__iter__
    with start() as (process, mortal):
        engine = ServerEngine(ENDS, urls=[url, mortal], transfer="nccl", retries=0)

        def killing(self: Any) -> Iterator[tuple[str, torch.Tensor]]:
            for number, one in enumerate(whole(self)):
                if number == 5 and self._connection.url == mortal:
                    os.killpg(process.pid, signal.SIGKILL)
                yield one

        monkeypatch.setattr(transfer.Broadcast, "__iter__", killing)
        engine.update_weights(weights(5))
        assert engine.counted()["servers_lost"] == 1
        assert sampled_by(engine, 5)
        engine.close()


def test_a_server_that_was_not_started_for_it_is_refused(wide_folder: Path) -> None:
    with vllm_process(wide_folder, *PROCESSED) as url:
        engine = ServerEngine(ENDS, urls=[url], transfer="nccl")
        with pytest.raises(ValueError, match=r"--weight-transfer-config\.backend nccl"):
            engine.update_weights(weights(1))
        assert engine.counted()["servers_lost"] == 0
        engine.close()


def test_the_server_says_whose_weights_it_has(engine: ServerEngine, url: str) -> None:
    engine.update_weights(weights(1))
    connection = Connection(url, timeout=10.0, retries=0, at_once=1)
    named = [connection.ask("GET", "/weight_info")["weight_version"] for _ in range(2)]
    engine.update_weights(weights(1))
    named.append(connection.ask("GET", "/weight_info")["weight_version"])
    connection.close()
    assert named[0] == named[1] != named[2]
