"""The supervised stage that makes the small base agents."""

from rewardswap.names import named
from rewardswap.sft.alfworld import AlfworldLessons
from rewardswap.sft.lessons import Lessons
from rewardswap.sft.training import BaseAgentConfig, run, train_base_agent
from rewardswap.sft.webshop import WebShopLessons

LESSONS: dict[str, type[Lessons]] = {"alfworld": AlfworldLessons, "webshop": WebShopLessons}
"""Every world that is taught, by its name on the command line."""


def named_lessons(name: str) -> type[Lessons]:
    """The lessons of a world; ValueError names the nearest known one."""
    return named("environment", name, LESSONS)


__all__ = [
    "LESSONS",
    "BaseAgentConfig",
    "Lessons",
    "named_lessons",
    "run",
    "train_base_agent",
]
