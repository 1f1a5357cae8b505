"""Where results come from: files of lines, folders of experiments, run folders."""

from collections.abc import Sequence
from pathlib import Path

from rewardswap.comparison.files import read_config
from rewardswap.comparison.results import Json, read_results, result_of, usable

RESULTS = "results.jsonl"
"""Name of the file of results in an experiment's folder."""


def is_run_folder(path: Path) -> bool:
    """Whether a training run wrote this folder, finished or not."""
    return path.is_dir() and (path / "metrics.jsonl").is_file()


def gather(paths: Sequence[Path]) -> list[Json]:
    """The results of files and folders.

    Raises ValueError naming a path that holds none, and what `read_results` and `result_of` raise.
    """
    return [result for path in paths for result in _of(path)]


def _of(path: Path) -> list[Json]:
    if path.is_file():
        return read_results(path)
    if (path / RESULTS).is_file():
        return read_results(path / RESULTS)
    if not is_run_folder(path):
        raise ValueError(
            f"{path} is neither a file of results nor a run folder; give what an experiment or a "
            "training run wrote"
        )
    result = result_of(path, experiment="", arm="", baseline=None)
    return [usable({**result, "arm": arm_name(path, result)}, str(path))]


def arm_name(path: Path, result: Json) -> str:
    """Name of a run folder's arm: its recipe and the settings that differ from it."""
    recipe = read_config(path)["recipe"]
    changed = (f"{key}={value}" for key, value in sorted(result["settings_changed"].items()))
    return " ".join([recipe, *changed])
