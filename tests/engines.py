"""Engines of which making one takes a while, or that need a server."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import LlamaConfig, LlamaForCausalLM

from made import small_llama
from rewardswap.rollout.engine import RolloutEngine
from rewardswap.rollout.server import ServerEngine
from serving import CompletionServer
from vllm_process import PROCESSED, vllm_process

ENDS = (1, 2)
KEPT: list[Any] = []
"""vLLM engines of this process: with one that goes, vLLM takes down what all of them share."""

NO_VLLM = "vLLM is not installed here; `make test-vllm` has it"


def wide_llama(seed: int = 0, **changes: Any) -> Any:
    """The small Llama with heads as wide as vLLM's attention on a CPU needs them."""
    settings = {**small_llama().config.to_dict(), "head_dim": 32, **changes}
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return LlamaForCausalLM(LlamaConfig(**settings)).eval()


class VllmEngines:
    """vLLM engines on one model, used again: each is handed out as if it were new."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.engines: list[Any] = []
        self.taken = 0

    def make(self) -> Any:
        """An engine without sessions, cache or other weights."""
        if self.taken == len(self.engines):
            self.engines.append(vllm_engine(self.folder))
        engine = self.engines[self.taken]
        self.taken += 1
        engine.release(list(engine._transcripts._tokens))
        engine.update_weights(self.folder)
        return engine


def vllm_engine(folder: Path, ends: Sequence[int] = ENDS, **settings: Any) -> Any:
    """A small one, float32."""
    from rewardswap.rollout.vllm import VllmEngine

    small = {"dtype": "float32", "cache_bytes": 2**26, "eager": True, "at_once": 64}
    engine = VllmEngine(folder, ends, **{**small, **settings})
    KEPT.append(engine)
    return engine


@pytest.fixture(scope="session")
def wide_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wide")
    wide_llama().save_pretrained(folder)
    return folder


@pytest.fixture(scope="session")
def vllm_engines(wide_folder: Path) -> VllmEngines:
    return VllmEngines(wide_folder)


@pytest.fixture
def vllm(request: pytest.FixtureRequest) -> Callable[[], RolloutEngine]:
    """A maker of vLLM engines."""
    if find_spec("vllm") is None:
        pytest.skip(NO_VLLM)
    engines: VllmEngines = request.getfixturevalue("vllm_engines")
    engines.taken = 0
    return engines.make


@pytest.fixture
def server() -> Iterator[Callable[[], RolloutEngine]]:
    """A maker of engines, each with a server of its own."""
    with ExitStack() as closing:

        def make() -> RolloutEngine:
            served = closing.enter_context(CompletionServer(small_llama()))
            engine = ServerEngine(ENDS, urls=[served.url])
            closing.callback(engine.close)
            return engine

        yield make


@pytest.fixture(scope="session")
def vllm_server_url(wide_folder: Path) -> Iterator[str]:
    """A vLLM server in another process."""
    if find_spec("vllm") is None:
        pytest.skip(NO_VLLM)
    with vllm_process(wide_folder, *PROCESSED) as url:
        yield url


@pytest.fixture
def vllm_server(vllm_server_url: str, wide_folder: Path) -> Iterator[Callable[[], RolloutEngine]]:
    """A maker of engines that share the vLLM server of another process."""
    with ExitStack() as closing:

        def make() -> RolloutEngine:
            engine = ServerEngine(ENDS, urls=[vllm_server_url])
            closing.callback(engine.close)
            return engine

        yield make
