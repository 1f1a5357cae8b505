"""Train multi-turn language-model agents by Reward-Swap Policy Optimization (arXiv:2607.04713).

Everything public is a name of this package, explained in docs/library.md. A name's module is
imported when the name is first used, so that `import rewardswap` is quick and loads no torch.
"""

from importlib import import_module

TYPE_CHECKING = False  # importing typing would take longer than all the rest
if TYPE_CHECKING:
    from rewardswap.adapters.gymnasium import GymnasiumMaker
    from rewardswap.adapters.seeded import SeededWorld, TextEnvironment
    from rewardswap.adapters.textworld import TextWorldGames
    from rewardswap.by_hand import Parts, make_parts
    from rewardswap.configuration import Run
    from rewardswap.env_config.alfworld import Alfworld
    from rewardswap.env_config.own import Own
    from rewardswap.env_config.webshop import WebShop
    from rewardswap.envs.base import Environment, Observation, Step, World
    from rewardswap.evaluation import Evaluation
    from rewardswap.inspection.check import check_environment
    from rewardswap.inspection.findings import Finding, Findings
    from rewardswap.inspection.walks import Heard, heard
    from rewardswap.library import resume, train
    from rewardswap.loops.settings import Batch, RewardSwap
    from rewardswap.methods.base import Method
    from rewardswap.methods.gigpo import GiGPO
    from rewardswap.methods.grpo import GRPO
    from rewardswap.methods.ppo import PPO
    from rewardswap.models.critic import Critic
    from rewardswap.models.loading import LanguageModel, load_language_model
    from rewardswap.models.policy import Policy
    from rewardswap.models.small_model import small_model
    from rewardswap.policy_config import PolicyConfig
    from rewardswap.rewards.base import RewardSource
    from rewardswap.rewards.calling import CallableReward
    from rewardswap.rewards.config import ProcessRewardConfig
    from rewardswap.rewards.outcome import OutcomeReward
    from rewardswap.rewards.process import ProcessRewardModel
    from rewardswap.rewards.rule import ProgressReward
    from rewardswap.rewards.sources import RewardConfig
    from rewardswap.rollout.config import RolloutConfig
    from rewardswap.settings import read_run, write_run
    from rewardswap.task import Task
    from rewardswap.trainer import Trainer
    from rewardswap.types import Group, Trajectory, Turn

_PLACES = {
    "adapters.gymnasium": ("GymnasiumMaker",),
    "adapters.seeded": ("SeededWorld", "TextEnvironment"),
    "adapters.textworld": ("TextWorldGames",),
    "by_hand": ("Parts", "make_parts"),
    "configuration": ("Run",),
    "env_config.alfworld": ("Alfworld",),
    "env_config.own": ("Own",),
    "env_config.webshop": ("WebShop",),
    "envs.base": ("Environment", "Observation", "Step", "World"),
    "evaluation": ("Evaluation",),
    "inspection.check": ("check_environment",),
    "inspection.findings": ("Finding", "Findings"),
    "inspection.walks": ("Heard", "heard"),
    "library": ("resume", "train"),
    "loops.settings": ("Batch", "RewardSwap"),
    "methods.base": ("Method",),
    "methods.gigpo": ("GiGPO",),
    "methods.grpo": ("GRPO",),
    "methods.ppo": ("PPO",),
    "models.critic": ("Critic",),
    "models.loading": ("LanguageModel", "load_language_model"),
    "models.policy": ("Policy",),
    "models.small_model": ("small_model",),
    "policy_config": ("PolicyConfig",),
    "rewards.base": ("RewardSource",),
    "rewards.calling": ("CallableReward",),
    "rewards.config": ("ProcessRewardConfig",),
    "rewards.outcome": ("OutcomeReward",),
    "rewards.process": ("ProcessRewardModel",),
    "rewards.rule": ("ProgressReward",),
    "rewards.sources": ("RewardConfig",),
    "rollout.config": ("RolloutConfig",),
    "settings": ("read_run", "write_run"),
    "task": ("Task",),
    "trainer": ("Trainer",),
    "types": ("Group", "Trajectory", "Turn"),
}
"""Where each name lives; the imports above say the same to type checkers."""
_MODULE_OF = {name: module for module, names in _PLACES.items() for name in names}

__all__ = [
    "GRPO",
    "PPO",
    "Alfworld",
    "Batch",
    "CallableReward",
    "Critic",
    "Environment",
    "Evaluation",
    "Finding",
    "Findings",
    "GiGPO",
    "Group",
    "GymnasiumMaker",
    "Heard",
    "LanguageModel",
    "Method",
    "Observation",
    "OutcomeReward",
    "Own",
    "Parts",
    "Policy",
    "PolicyConfig",
    "ProcessRewardConfig",
    "ProcessRewardModel",
    "ProgressReward",
    "RewardConfig",
    "RewardSource",
    "RewardSwap",
    "RolloutConfig",
    "Run",
    "SeededWorld",
    "Step",
    "Task",
    "TextEnvironment",
    "TextWorldGames",
    "Trainer",
    "Trajectory",
    "Turn",
    "WebShop",
    "World",
    "check_environment",
    "heard",
    "load_language_model",
    "make_parts",
    "read_run",
    "resume",
    "small_model",
    "train",
    "write_run",
]


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'rewardswap' has no attribute {name!r}")
    found: object = getattr(import_module(f"rewardswap.{_MODULE_OF[name]}"), name)
    globals()[name] = found
    return found


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])
