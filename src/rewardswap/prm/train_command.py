"""The command `rewardswap prm train`."""

from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import torch
from rich.console import Console

from rewardswap.checks import at_least
from rewardswap.options import UsageError, checked, parse
from rewardswap.plan.settings import split_words
from rewardswap.prm.judging import show
from rewardswap.prm.loading import ORIGIN, write_seen_tasks
from rewardswap.prm.reading import policy_for
from rewardswap.prm.store import Collection, read_collection
from rewardswap.prm.words import cache_of, data_after, say_cache
from rewardswap.rewards.cache import FeatureCache
from rewardswap.rewards.config import PRESETS, ProcessRewardConfig
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.rewards.quality import ProcessRewardQuality
from rewardswap.run_folder import commit
from rewardswap.whole import refuse_taken, write_json, written_whole

QUALITY = "quality.json"
PROGRAM = "rewardswap prm train"


@dataclass(frozen=True)
class _Preset:
    preset: Literal["action", "after_observation"] = "action"


@dataclass(frozen=True)
class Fitting:
    """A process reward model, fitted on a collection of rollouts."""

    output: Path | None = None
    """Folder for the model, which must have no files; it has no default."""
    preset: Literal["action", "after_observation"] = "action"
    """action: the paper's process reward model; after_observation: ours. It is where the settings
    of `model` start from."""
    policy: str | None = None
    """Model whose frozen trunk reads turns at `model.backbone policy`; none: the first policy of
    the collection."""
    cache: Path | None = None
    """Folder where hidden states of turns are kept for the next time; none: they are not."""
    device: str = "cpu"
    """Torch device of the trunk."""
    threads: int = 1
    """CPU threads of torch; other numbers of threads round differently."""
    model: ProcessRewardConfig = field(default_factory=ProcessRewardConfig)

    def __post_init__(self) -> None:
        at_least(1, threads=self.threads)


def train(words: list[str], console: Console) -> None:
    """Fit a process reward model and say how good it is."""
    folder, rest = data_after(words, PROGRAM)
    preset = parse(_Preset, _Preset(), split_words(_Preset, rest)[0], PROGRAM).preset
    start = Fitting(preset=preset, model=PRESETS[preset])
    config = parse(Fitting, start, rest, f"{PROGRAM} DATA")
    output = config.output
    if output is None:
        raise UsageError("--output is missing; give the folder that is made")
    checked(lambda: refuse_taken(output))
    torch.set_num_threads(config.threads)
    cache = cache_of(config.cache)
    collection = checked(lambda: read_collection(folder))
    wins = sum(trajectory.success for trajectory in collection.trajectories)
    said = f"fitting on {len(collection.trajectories)} rollouts ({wins} successes) of {folder}"
    console.print(said, highlight=False, markup=False)
    with console.status("reading turns, then fitting"):
        quality = checked(lambda: _fit(collection, config, output, cache))
    say_cache(cache, console)
    show(quality, [quality.table()], console)
    console.print(str(output), highlight=False, markup=False, soft_wrap=True)


def _fit(
    collection: Collection, config: Fitting, output: Path, cache: FeatureCache | None
) -> ProcessRewardQuality:
    trunk, policy = policy_for(collection, config.model.backbone, config.policy, config.device)
    model = ProcessRewardModel(trunk, config.model, cache)
    quality = model.fit(collection.trajectories)
    origin = {
        "policy": policy,
        "preset": config.preset,
        "data_sha256": collection.manifest["sha256"],
        "commit": commit(),
    }
    with written_whole(output) as beside:
        model.save_pretrained(beside)
        write_json(beside / QUALITY, quality.as_dict())
        write_seen_tasks(beside, model)
        write_json(beside / ORIGIN, origin)
    return quality
