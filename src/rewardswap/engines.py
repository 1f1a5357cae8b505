"""The engine of a run, made from its settings, and what it needs before it plays."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from torch import Tensor

from rewardswap.models.adapter import merged_state
from rewardswap.models.loading import LanguageModel
from rewardswap.models.shards import gathered, is_part
from rewardswap.ranks import ALONE, Ranks, share
from rewardswap.rollout.config import RolloutConfig
from rewardswap.rollout.engine import RolloutEngine
from rewardswap.rollout.hf import REFILL, HuggingFaceEngine
from rewardswap.rollout.placement import Servers
from rewardswap.rollout.vllm import VllmEngine

Precision = Literal["float32", "bfloat16"]

SMALL = 20_000_000
"""Weights of a model below which a pass costs the same for one row and for many."""


def make_engine(
    config: RolloutConfig,
    language_model: LanguageModel,
    folder: Path,
    precision: Precision,
    servers: Servers | None = None,
    ranks: Ranks = ALONE,
) -> RolloutEngine:
    """The engine that the settings name; `servers` take the place of those that they name, which
    are dealt to the ranks: what one rank loads into a server would change another's rollouts.

    Raises ValueError where it is not to be had.
    """
    ends = language_model.end_token_ids
    if config.engine == "vllm":
        return VllmEngine(
            folder,
            ends,
            context_limit=config.context_limit,
            dtype=precision,
            memory_share=config.memory_share,
            sleeps=config.sleeps,
        )
    if config.engine == "server":
        return _server(config, ends, servers, ranks)
    small = language_model.model.num_parameters() < SMALL
    refill = config.refill or (1.0 if small else REFILL)
    return HuggingFaceEngine(language_model.model, ends, refill=refill)


def _server(
    config: RolloutConfig, ends: Sequence[int], servers: Servers | None, ranks: Ranks
) -> RolloutEngine:
    named = (config.url, *config.more_urls)
    if servers is None and len(named) < ranks.size:
        raise ValueError(
            f"{len(named)} servers are too few for {ranks.size} processes: each needs one of its "
            "own; name more in rollout.more_urls"
        )
    try:
        from rewardswap.rollout.server import ServerEngine
    except ImportError as error:
        raise ValueError(
            f"rollout.engine server needs {error.name}; pip install 'rewardswap[server]'"
        ) from error
    return ServerEngine(
        ends,
        urls=share(named, ranks) if servers is None else servers.urls(),
        model=config.server_model,
        transfer=config.transfer,
        exchange=config.exchange,
        whereabouts=None if servers is None else servers.url,
    )


@contextmanager
def ready(engine: RolloutEngine, module: Any, *, sleeps: bool) -> Iterator[None]:
    """The engine awake, with the weights that `module` has now; asleep again where it `sleeps`.

    The engine of the module itself has them already.
    """
    if isinstance(engine, VllmEngine):
        engine.wake()
    if not (isinstance(engine, HuggingFaceEngine) and engine.module is module):
        engine.update_weights((n, _whole(w)) for n, w in merged_state(module).items())
    yield
    if sleeps and isinstance(engine, VllmEngine):
        engine.sleep()


def _whole(weight: Tensor) -> Tensor:
    """Of one in parts a copy beside the device's memory, which has no room for all of them."""
    return gathered(weight).cpu() if is_part(weight) else weight
