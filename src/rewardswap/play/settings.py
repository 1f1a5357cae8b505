"""Settings of the command `rewardswap play`."""

from dataclasses import dataclass, field
from pathlib import Path

from rewardswap.checks import at_least
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.base import EnvironmentConfig

PERSON, ORACLE = "person", "oracle"
OF_MODELS = (
    "seed",
    "temperature",
    "action-tokens",
    "chat-template",
    "device",
    "env.prompt",
    "env.window",
    "env.thinking",
    "env.action-format",
)
"""Settings that only a model reads, as the command line has them."""


@dataclass(frozen=True)
class Playing:
    """One episode, and who plays it."""

    by: str = PERSON
    """person: you type; oracle: the environment's own solution; else a model: its folder, a run's
    folder (its checkpoint, in its environment), or a name such as base-agent."""
    task: str = "1"
    """Number of a task in the split that is evaluated, from 1 on; or a task's id."""
    seed: int = 0
    """Seed of every token that a model samples."""
    temperature: float = 1.0
    """Sampling temperature of a model; 0 is greedy."""
    action_tokens: int | None = None
    """Most tokens of one action; none: what the model's generation_config.json says, else 512."""
    chat_template: Path | None = None
    """File of a Jinja chat template that takes the place of the model folder's; none: the
    folder's."""
    device: str = "cpu"
    """Torch device of the model."""
    env: EnvironmentConfig = field(default_factory=Alfworld)

    def __post_init__(self) -> None:
        at_least(1, action_tokens=1 if self.action_tokens is None else self.action_tokens)
        at_least(0, seed=self.seed)

    @property
    def by_model(self) -> bool:
        """Whether a model plays."""
        return self.by not in (PERSON, ORACLE)
