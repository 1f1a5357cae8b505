"""Experiments by name, or from a file."""

from collections.abc import Callable
from pathlib import Path

from rewardswap.experiments.claims import claims
from rewardswap.experiments.experiment import Experiment
from rewardswap.experiments.small import smoke
from rewardswap.experiments.toml_file import read_experiment
from rewardswap.names import named

EXPERIMENTS: dict[str, Callable[[], Experiment]] = {"smoke": smoke, "claims": claims}
"""Every experiment by its name on the command line."""


def named_experiment(name: str) -> Experiment:
    """The experiment of a name or of a file that ends in .toml.

    Raises ValueError naming the nearest known name, or what is wrong with the file.
    """
    if name.endswith(".toml"):
        return read_experiment(Path(name))
    return named("experiment", name, EXPERIMENTS)()
