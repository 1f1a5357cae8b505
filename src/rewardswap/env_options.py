"""Options of the command that depend on the environment, and keys that are no settings."""

from collections.abc import Sequence
from pathlib import Path

from rewardswap.env_config import ENVIRONMENTS
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.names import named
from rewardswap.options import Choice, option_types

ENVIRONMENT = Choice(
    "env",
    lambda name: named("environment", name, ENVIRONMENTS),
    f"the environments are {', '.join(ENVIRONMENTS)}",
)

TRUNCATING = (
    "is refused in training: a sampler that leaves tokens out draws from another distribution than "
    "the policy's, and the ratio is not 1 on policy; `rewardswap eval` takes it"
)


def elsewhere() -> dict[str, str]:
    """Keys that are no settings here: why, or of which environment they are settings."""
    known = {
        f"--{section}{name}": TRUNCATING
        for section in ("", "policy.", "rollout.", "evaluation-")
        for name in ("top-p", "top-k", "min-p")
    }
    for name, kind in ENVIRONMENTS.items():
        for option in option_types(kind, "--env."):
            known[option] = f"is a setting of {name}; add --env {name}"
    return known


def environment_of_run(model: str | None) -> EnvironmentConfig | None:
    """The environment of the run whose folder, or whose checkpoint, `model` names; else none.

    Raises ValueError for a config.toml that is none.
    """
    folder = Path(model or "")
    config = (folder.parent if folder.name == "checkpoint" else folder) / "config.toml"
    if model is None or not config.is_file():
        return None
    from rewardswap.settings import read_run

    return read_run(config).env


def idle_in(env: EnvironmentConfig) -> dict[str, Sequence[str]]:
    """Settings of an environment that do nothing, as the command line has them."""
    return {
        reason: [f"env.{name.replace('_', '-')}" for name in names]
        for reason, names in env.idle().items()
    }
