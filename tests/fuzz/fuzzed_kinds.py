"""All kinds of inputs, and how many of each a test and a full count try."""

from collections.abc import Mapping
from dataclasses import dataclass

from fuzzed import Tries
from fuzzed_checkpoints import checkpoints
from fuzzed_models import model_folders
from fuzzed_records import (
    collections,
    compared_runs,
    result_files,
    reward_folders,
    run_folders,
    runs_side_by_side,
)
from fuzzed_settings import experiment_files, run_files, values_of_settings, words
from fuzzed_worlds import action_texts, game_files, product_files


@dataclass(frozen=True)
class Kind:
    """One kind of input."""

    tries: Tries
    quick: int
    """How many the quick tests try."""
    share: float
    """Part of a full count: less of what takes long."""


KINDS: Mapping[str, Kind] = {
    "words of the command line": Kind(words, 40, 0.12),
    "run files, spoiled": Kind(run_files, 30, 0.1),
    "run files, values of any type": Kind(values_of_settings, 40, 0.1),
    "experiment files": Kind(experiment_files, 12, 0.06),
    "game files": Kind(game_files, 250, 0.15),
    "product files": Kind(product_files, 60, 0.12),
    "action texts": Kind(action_texts, 400, 0.15),
    "model folders": Kind(model_folders, 25, 0.04),
    "process-reward folders": Kind(reward_folders, 150, 0.05),
    "checkpoints": Kind(checkpoints, 150, 0.05),
    "collections of rollouts": Kind(collections, 25, 0.03),
    "result files": Kind(result_files, 10, 0.015),
    "run folders, compared": Kind(compared_runs, 5, 0.01),
    "run folders, side by side": Kind(runs_side_by_side, 3, 0.005),
    "run folders, their own report": Kind(run_folders, 2, 0.005),
}
