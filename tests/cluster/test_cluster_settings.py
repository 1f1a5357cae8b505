"""Settings of a cluster: refused where they do nothing or cannot be, and no part of a run."""

import importlib.machinery
import importlib.util
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import pytest

from rewardswap.cli import main
from rewardswap.cluster.settings import ClusterSettings
from rewardswap.configuration import Run
from rewardswap.recipes import RECIPES, demo
from rewardswap.rollout.config import RolloutConfig
from rewardswap.rollout.placement import HERE, Placement
from rewardswap.rollout.worker_process import WorkerProcess
from rewardswap.settings import as_toml


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"ray_ranks": 2}, "ray_ranks does nothing without cluster ray"),
        ({"ray_address": "auto"}, "ray_address does nothing without cluster ray"),
        ({"cluster": "ray", "ray_ranks": 0}, "ray_ranks must be at least 1, got 0"),
        ({"cluster": "ray", "ray_failures": -1}, "ray_failures must be at least 0, got -1"),
        ({"cluster": "ray", "ray_engine_gpus": 2}, "ray_engine_gpus does nothing at ray_engines 0"),
        ({"ray_engine_command": "vllm 'serve"}, "cannot be read .*No closing quotation"),
        ({"ray_engine_command": "vllm {folder}"}, "cannot be read .*'folder'"),
    ],
)
def test_settings_that_are_refused(settings: dict[str, Any], words: str) -> None:
    with pytest.raises(ValueError, match=words):
        ClusterSettings(**settings)


@pytest.mark.parametrize(
    ("rollout", "settings", "words"),
    [
        ({}, {}, "ray_engines does nothing at rollout.engine hugging_face; set that to server"),
        ({"engine": "server"}, {"ray_ranks": 3}, "2 engines are too few for 3 ranks"),
        ({"engine": "server", "url": "http://there"}, {}, "rollout.url does nothing where"),
        ({"engine": "server"}, {}, "needs rollout.exchange, a folder that all nodes see"),
    ],
)
def test_runs_that_cannot_be_placed_so(
    rollout: dict[str, Any],
    settings: dict[str, Any],
    words: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(
        "rewardswap.cluster.settings.find_spec", lambda _: importlib.util.find_spec("json")
    )
    run = replace(RECIPES["demo"](), rollout=RolloutConfig(**rollout))
    with pytest.raises(ValueError, match=words):
        ClusterSettings(cluster="ray", ray_engines=2, **settings).check(run)


def test_without_ray_one_line_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    there = importlib.util.find_spec
    monkeypatch.setattr(
        "rewardswap.cluster.settings.find_spec", lambda name: None if name == "ray" else there(name)
    )
    with pytest.raises(SystemExit) as ended:
        main(["train", "demo", "--cluster", "ray"])
    assert ended.value.code == 2
    said = capsys.readouterr().err
    assert said == "rewardswap: cluster ray needs ray; pip install 'rewardswap[ray]'\n"
    assert not list(tmp_path.iterdir())


def test_a_dry_run_is_here(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["train", "demo", "--dry-run", "--cluster", "ray"])
    assert "--cluster does nothing in a dry run" in capsys.readouterr().err


def test_an_engines_command_has_its_places_filled() -> None:
    """A folder with a blank in its name stays one word."""
    made = ClusterSettings(
        cluster="ray", ray_engines=1, ray_engine_command="serve {model} --at {host}:{port}"
    )
    assert made.engine_command("a folder", "10.0.0.1", 7) == [
        "serve",
        "a folder",
        "--at",
        "10.0.0.1:7",
    ]


def test_where_a_run_is_is_no_part_of_it() -> None:
    own = {setting.name for setting in fields(ClusterSettings)}
    assert not own & {setting.name for setting in fields(Run)}
    assert not own & as_toml(RECIPES["demo"]()).keys()


def test_what_is_not_placed_is_here() -> None:
    assert Placement(WorkerProcess, None) == HERE


def test_a_folder_of_that_name_is_not_ray(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "ray").mkdir()
    found = importlib.machinery.PathFinder.find_spec("ray", [str(tmp_path)])
    assert found is not None and found.origin is None
    monkeypatch.setattr("rewardswap.cluster.settings.find_spec", lambda _: found)
    with pytest.raises(ValueError, match="cluster ray needs ray"):
        ClusterSettings(cluster="ray").check(demo())
