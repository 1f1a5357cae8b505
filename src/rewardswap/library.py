"""Whole training runs from Python, as the command makes them."""

from dataclasses import replace
from pathlib import Path

from rich.console import Console

from rewardswap.configuration import Run
from rewardswap.screen import Screen
from rewardswap.session import Training
from rewardswap.settings import read_run


def train(run: Run, *, quiet: bool = False) -> Path:
    """Train a run from its start to its report; its folder.

    Prints what the command prints, unless `quiet`. Raises ValueError saying what is wrong with a
    setting, RunStoppedError where it cannot go on, and KeyboardInterrupt at Ctrl-C.
    """
    return _executed(Training(run), quiet)


def resume(folder: Path | str, *, quiet: bool = False) -> Path:
    """Go on with a run that was stopped or killed, to the same bits; its folder.

    Raises as `train` does.
    """
    folder = Path(folder)
    run = replace(read_run(folder / "config.toml"), output=folder)
    return _executed(Training(run, resume=True), quiet)


def _executed(training: Training, quiet: bool) -> Path:
    training.execute(Screen(Console(quiet=quiet)))
    return training.folder.path
