"""The command `rewardswap prm eval`."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from rich.console import Console

from rewardswap.checks import at_least
from rewardswap.names import unknown
from rewardswap.options import UsageError, checked, leading, parse
from rewardswap.prm.judging import Judged, judge_rewards, rewards_of
from rewardswap.prm.loading import seen_tasks
from rewardswap.prm.reading import model_for
from rewardswap.prm.store import Collection, read_collection, turn_limit_of
from rewardswap.prm.words import cache_of, say_cache
from rewardswap.rewards.base import RewardSource
from rewardswap.rewards.cache import FeatureCache
from rewardswap.rewards.sources import LEARNED, RULES, RewardConfig
from rewardswap.whole import refuse_no_file, write_json

PROGRAM = "rewardswap prm eval"


@dataclass(frozen=True)
class Judging:
    """How good a process reward is on rollouts of tasks that it was not trained on."""

    reward: str | None = None
    """In place of MODEL: a rule such as `progress`, or MODULE:FUNCTION, a function of a trajectory
    that gives one number per turn."""
    policy: str | None = None
    """Model whose frozen trunk MODEL reads turns with; none: the one that it was trained with."""
    json: Path | None = None
    """File for all numbers as JSON; none: the screen only."""
    cache: Path | None = None
    """Folder where hidden states of turns are kept for the next time; none: they are not."""
    device: str = "cpu"
    """Torch device of the trunk."""
    threads: int = 1
    """CPU threads of torch; other numbers of threads round differently."""

    def __post_init__(self) -> None:
        at_least(1, threads=self.threads)


def evaluate(words: list[str], console: Console) -> None:
    """Judge a process reward on rollouts."""
    first, rest = leading(words)
    config = parse(Judging, Judging(), rest, f"{PROGRAM} [MODEL] DATA")
    model, data = _named(first, config)
    target = config.json
    if target is not None:
        checked(lambda: refuse_no_file(target))
    torch.set_num_threads(config.threads)
    cache = cache_of(config.cache)
    collection = checked(lambda: read_collection(data))
    with console.status("reading turns"):
        judged = checked(lambda: _judged(model, collection, config, cache))
    say_cache(cache, console)
    judged.show(console)
    if target is not None:
        record = {"reward": str(model or config.reward), "data": str(data), **judged.as_dict()}
        write_json(target, record)


def _named(first: Sequence[str], config: Judging) -> tuple[Path | None, Path]:
    """The folders of the model, if one is judged, and of the collection."""
    wanted = 2 if config.reward is None else 1
    if len(first) != wanted:
        what = "MODEL DATA, or DATA and --reward NAME" if config.reward is None else "DATA alone"
        got = " ".join([*first, *(["--reward"] if config.reward else [])]) or "nothing"
        raise UsageError(f"prm eval needs {what}, got {got}")
    if config.reward is not None:
        for name in ("policy", "cache"):
            if getattr(config, name) is not None:
                raise UsageError(f"--{name} does nothing beside --reward, which reads no tokens")
    return (Path(first[0]) if wanted == 2 else None), Path(first[-1])


def _judged(
    model: Path | None, collection: Collection, config: Judging, cache: FeatureCache | None
) -> Judged:
    if model is None:
        source = _rule(config.reward or "", collection)
        return judge_rewards(rewards_of(source), collection.trajectories, frozenset())
    reader = model_for(collection, model, config.policy, config.device, cache)
    return judge_rewards(rewards_of(reader), collection.trajectories, seen_tasks(model))


def _rule(name: str, collection: Collection) -> RewardSource:
    if name == LEARNED:
        raise ValueError("--reward learned is a process reward model: give its folder as MODEL")
    if name not in RULES and ":" not in name:
        raise ValueError(unknown("reward", name, RULES))
    return RewardConfig(dense=name).source(turn_limit_of(collection), seed=0)
