"""One paper per file; a method is a function that returns an `Algorithm`."""

from collections.abc import Callable

from rewardswap.algorithm import Algorithm
from rewardswap.methods.grpo import grpo

METHODS: dict[str, Callable[..., Algorithm]] = {"grpo": grpo}
"""Every method by its name on the command line."""
