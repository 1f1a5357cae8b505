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

    An arm of run folders is named by recipe and the settings that differ from it, without those
    that all of the run folders have. Raises ValueError naming a path that holds none, and what
    `read_results` and `result_of` raise.
    """
    found = [result for path in paths for result in _of(path)]
    runs = [result for result in found if not result["experiment"]]
    common = set.intersection(*(set(_changes(run)) for run in runs)) if len(runs) > 1 else set()
    for run in runs:
        run["arm"] = " ".join([run["arm"], *(c for c in _changes(run) if c not in common)])
    return found


def arm_of(name: str, paths: Sequence[Path], results: Sequence[Json]) -> str:
    """The arm that a name means: where it is one of the run folders, the arm of its result."""
    if Path(name) not in paths or not all(map(is_run_folder, paths)):
        return name
    return str(results[list(paths).index(Path(name))]["arm"])


def _changes(result: Json) -> list[str]:
    return [f"{key}={value}" for key, value in sorted(result["settings_changed"].items())]


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
    arm = read_config(path)["recipe"]
    return [usable(result_of(path, experiment="", arm=arm, baseline=None), str(path))]
