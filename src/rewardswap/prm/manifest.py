"""What a collection says of itself."""

import hashlib
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from transformers import PreTrainedTokenizerBase

from rewardswap.env_config import environment_name
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.evaluation import Panel
from rewardswap.models.loading import model_folder
from rewardswap.prm.collect_settings import Collecting
from rewardswap.prm.collection import Share
from rewardswap.rewards.features import fingerprint
from rewardswap.stage import Stage
from rewardswap.types import Task, Trajectory


def tokenizer_hash(tokenizer: PreTrainedTokenizerBase) -> str:
    """sha256 of all tokens with their ids, in hexadecimal digits."""
    tokens = sorted((number, token) for token, number in tokenizer.get_vocab().items())
    return hashlib.sha256(repr(tokens).encode("utf-8", "backslashreplace")).hexdigest()


def about_policy(stage: Stage) -> dict[str, str]:
    """Short name or folder of a policy, and sha256 of its weights."""
    folder = Path(stage.model)
    short = model_folder(stage.model) != folder
    name = stage.model if short else str(folder.resolve())
    return {"model": name, "weights_sha256": fingerprint(stage.language_model.model)}


def about_world(stage: Stage, split: str, tasks: Sequence[Task]) -> dict[str, Any]:
    """What all policies of a collection have in common: tokens, world, tasks, panel."""
    panel = stage.panel
    return {
        "tokenizer_sha256": tokenizer_hash(stage.language_model.tokenizer),
        "action_tokens": stage.sampling.max_tokens,
        "environment": _environment(stage.env),
        "split": {"name": split, "tasks": len(tasks), "hash": Panel(split, tuple(tasks)).hash},
        "panel": {"split": panel.split, "tasks": len(panel.tasks), "hash": panel.hash},
    }


def refuse_other_world(
    first: Mapping[str, Any], other: Mapping[str, Any], first_model: str, other_model: str
) -> None:
    """Raise ValueError where two policies do not have tokens, world and tasks in common."""
    strange = next((name for name in first if first[name] != other[name]), None)
    if strange is not None:
        raise ValueError(
            f"policies {first_model!r} and {other_model!r} have another {strange}; "
            "collect with them apart"
        )


def choices(config: Collecting) -> dict[str, Any]:
    """The settings that decided what is kept."""
    names = ("temperatures", "group_size", "balance", "seed", "threads")
    balance = ("least_share", "most_played") if config.balance != "none" else ()
    return {name: _plain(getattr(config, name)) for name in (*names, *balance)}


def counts(shares: Sequence[Share]) -> dict[str, Any]:
    """How many trajectories there are, of each family, and how many were not kept."""
    kept = [t for share in shares for t in share.trajectories]
    left_out = [t for share in shares for group in share.left_out for t in group]
    return {
        **_tally(kept),
        "tasks": len({t.task.id for t in kept}),
        "families": {
            family: _tally([t for t in kept if t.task.family == family])
            for family in sorted(Counter(t.task.family for t in kept))
        },
        "left_out": _tally(left_out),
        "failed_episodes": sum(share.failed_episodes for share in shares),
    }


def share_counts(share: Share, policy: int, temperature: float) -> dict[str, Any]:
    """What one policy did at one temperature."""
    left_out = [t for group in share.left_out for t in group]
    return {
        "policy": policy,
        "temperature": temperature,
        **_tally(share.trajectories),
        "left_out": _tally(left_out),
        "failed_episodes": share.failed_episodes,
    }


def _tally(trajectories: Sequence[Trajectory]) -> dict[str, int]:
    wins = sum(t.success for t in trajectories)
    return {"trajectories": len(trajectories), "successes": wins}


def _environment(env: EnvironmentConfig) -> dict[str, Any]:
    return {"name": environment_name(env), **{k: _plain(v) for k, v in asdict(env).items()}}


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return str(value) if isinstance(value, Path) else value
