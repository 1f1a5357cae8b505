"""Trackers as settings."""

import importlib.util

import pytest

from rewardswap.recipes import demo
from rewardswap.run_options import run_of
from rewardswap.run_state import settings_sha256
from rewardswap.trackers import config
from rewardswap.trackers.config import TrackConfig


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"to": ("wandbb",)}, "unknown tracker 'wandbb'; did you mean 'wandb'?"),
        ({"to": ("wandb", "wandb")}, "names a tracker twice, got wandb wandb"),
        ({"project": "mine"}, "project does nothing without wandb, mlflow or trackio in track.to"),
        ({"to": ("tensorboard",), "name": "n"}, "name does nothing without wandb"),
        ({"to": ("wandb",), "project": ""}, "project is empty"),
        ({"to": ("wandb",), "name": "a\0"}, "holds NUL"),
    ],
)
def test_refused(settings: dict[str, object], words: str) -> None:
    with pytest.raises(ValueError, match=words.replace("?", r"\?")):
        TrackConfig(**settings)  # type: ignore[arg-type]


def test_a_tracker_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(config, "find_spec", lambda name: None)
    with pytest.raises(ValueError, match=r"wandb, which is not installed; `pip install 'rewards"):
        TrackConfig(to=("wandb",)).check_installed()
    TrackConfig().check_installed()


def test_packages_are_looked_for_by_their_own_names() -> None:
    assert importlib.util.find_spec is config.find_spec


def test_from_the_command_line_and_no_part_of_what_decides_the_numbers() -> None:
    words = ["--track.to", "wandb", "tensorboard", "--track.project", "mine"]
    run = run_of(demo(), words, "rewardswap train demo")
    assert run.track == TrackConfig(to=("wandb", "tensorboard"), project="mine")
    assert settings_sha256(run) == settings_sha256(demo())
