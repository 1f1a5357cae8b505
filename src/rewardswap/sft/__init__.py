"""The supervised stage that makes the small base agents."""

from rewardswap.sft.training import BaseAgentConfig, run, train_base_agent

__all__ = ["BaseAgentConfig", "run", "train_base_agent"]
