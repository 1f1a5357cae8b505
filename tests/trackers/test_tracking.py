"""Trackers of a run: each row once, failures counted and said once, nothing changed, no secrets."""

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from rewardswap.trackers import tracking
from rewardswap.trackers.base import Place, Settings
from rewardswap.trackers.config import TrackConfig
from rewardswap.trackers.tracking import PATIENCE, Tracking, cleaned

Row = tuple[int, str, dict[str, float]]


class Fake:
    """A tracker that remembers what it is given, and fails when it is told to."""

    live: list["Fake"]
    failing: set[str]

    def __init__(self, place: Place) -> None:
        self.place = place
        self.rows: list[Row] = []
        self.calls: list[str] = []
        Fake.live.append(self)

    def _call(self, name: str) -> None:
        self.calls.append(name)
        if name in Fake.failing:
            raise OSError(28, "no space left on device")

    def start(self, config: Settings) -> str:
        self.config = config
        self._call("start")
        return self.place.id or "id-1"

    def add(self, metrics: Mapping[str, float], step: int, phase: str) -> None:
        self._call("add")
        self.rows.append((step, phase, dict(metrics)))

    def finish(self) -> None:
        self._call("finish")


@pytest.fixture(autouse=True)
def fakes(monkeypatch: pytest.MonkeyPatch) -> None:
    """Modules of two trackers replaced by fakes."""
    Fake.live, Fake.failing = [], set()
    for name in ("wandb", "mlflow"):
        module = ModuleType(f"rewardswap.trackers.{name}")
        setattr(module, tracking.CLASSES[name], Fake)
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(TrackConfig, "check_installed", lambda self: None)
    monkeypatch.setattr(tracking, "ENVIRONMENT", {})


def run(folder: Path, rows: int, *to: str, said: list[str] | None = None, until: int = 0) -> None:
    """A run that writes rows and gives them on; killed behind row `until`, 0: never."""
    folder.mkdir(exist_ok=True)
    seen = Tracking(TrackConfig(to=to or ("wandb",)), folder, {"seed": 1})
    with seen.told((said if said is not None else []).append):
        have = len(lines(folder))
        for number in range(have + 1, rows + 1):
            with (folder / "metrics.jsonl").open("a") as file:
                file.write(json.dumps({"phase": "learn", "x": number}) + "\n")
            seen.add({"x": float(number)}, "learn")
            if number == until:
                seen._live.clear()  # a kill finishes nothing
                return


def lines(folder: Path) -> list[str]:
    path = folder / "metrics.jsonl"
    return path.read_text().splitlines() if path.is_file() else []


def kept(folder: Path) -> Any:
    return json.loads((folder / "trackers.json").read_text())


def test_every_row_once_with_its_number(tmp_path: Path) -> None:
    run(tmp_path / "r", 3, "wandb", "mlflow")
    assert len(Fake.live) == 2
    for fake in Fake.live:
        assert fake.rows == [(n, "learn", {"x": float(n)}) for n in (1, 2, 3)]
        assert fake.calls == ["start", "add", "add", "add", "finish"]
        assert (fake.place.project, fake.place.name, fake.place.id) == ("rewardswap", "r", None)
    assert kept(tmp_path / "r") == {
        name: {"id": "id-1", "step": 3, "lost": 0} for name in ("wandb", "mlflow")
    }


def test_no_tracker_writes_nothing(tmp_path: Path) -> None:
    seen = Tracking(TrackConfig(), tmp_path / "none", {})
    with seen.told(pytest.fail):
        seen.add({"x": 1.0}, "learn")
    assert not (tmp_path / "none").exists()


def test_a_run_that_goes_on_gives_no_row_twice(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    run(folder, 9, until=5)
    written = lines(folder)[:2]  # the checkpoint is behind row 2
    (folder / "metrics.jsonl").write_text("".join(line + "\n" for line in written))
    run(folder, 7)
    first, second = Fake.live
    assert [step for step, _, _ in first.rows] == [1, 2, 3, 4, 5]
    assert [step for step, _, _ in second.rows] == [6, 7]
    assert second.place.id == "id-1"


def test_a_run_that_goes_on_without_having_played_again_starts_no_tracker(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    run(folder, 9, until=5)
    (folder / "metrics.jsonl").write_text("")
    run(folder, 4)
    assert len(Fake.live) == 1


def test_a_row_that_was_on_its_way_when_the_run_was_killed_is_not_given_again(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "r"
    Fake.failing = {"add"}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Fake, "_call", killed)
        with pytest.raises(KeyboardInterrupt):
            run(folder, 1)
    assert kept(folder)["wandb"] == {"id": "id-1", "step": 1, "lost": 0}


def killed(self: Fake, name: str) -> None:
    if name == "add":
        raise KeyboardInterrupt


@pytest.mark.parametrize("where", ["start", "add"])
def test_a_tracker_that_fails_is_said_once_counted_and_given_up(where: str, tmp_path: Path) -> None:
    folder, said = tmp_path / "r", list[str]()
    Fake.failing = {where}
    run(folder, 6, "wandb", said=said)
    (words,) = said
    assert words.startswith(
        "the tracker wandb failed: OSError: [Errno 28] no space left on device; "
    )
    assert kept(folder)["wandb"]["lost"] == 6
    assert sum(fake.calls.count(where) for fake in Fake.live) == PATIENCE
    assert len(lines(folder)) == 6


def test_a_failure_that_passes_loses_its_own_rows_only(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    seen = Tracking(TrackConfig(to=("wandb",)), folder, {})
    for number in range(1, 8):
        with (folder / "metrics.jsonl").open("a") as file:
            file.write("{}\n")
        Fake.failing = {"add"} if number in (2, 3, 5, 6) else set()
        seen.add({"x": 0.0}, "learn")
    assert [step for step, _, _ in Fake.live[0].rows] == [1, 4, 7]
    assert kept(folder)["wandb"]["lost"] == 4


def test_one_that_fails_does_not_cost_the_other(tmp_path: Path) -> None:
    class Broken(Fake):
        def add(self, metrics: Mapping[str, float], step: int, phase: str) -> None:
            raise SystemExit("a library that thinks it owns the process")

    sys.modules["rewardswap.trackers.mlflow"].MLflow = Broken  # type: ignore[attr-defined]
    said = list[str]()
    run(tmp_path / "r", 4, "mlflow", "wandb", said=said)
    assert len(said) == 1 and "mlflow" in said[0]
    assert [step for step, _, _ in Fake.live[-1].rows] == [1, 2, 3, 4]


def test_a_failing_end_is_said(tmp_path: Path) -> None:
    said = list[str]()
    Fake.failing = {"finish"}
    run(tmp_path / "r", 1, "wandb", said=said)
    assert len(said) == 1


def test_a_state_that_cannot_be_written_stops_nothing(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / "trackers.part").mkdir()
    run(folder, 2)
    assert len(Fake.live[0].rows) == 2


@pytest.mark.parametrize("text", ["", "{", "[]", "3", '{"wandb": 1}', '{"wandb": {"x": 1}}'])
def test_a_spoiled_state_begins_a_new_run(text: str, tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    (folder / "trackers.json").write_text(text)
    run(folder, 2)
    assert Fake.live[0].place.id is None
    assert kept(folder)["wandb"] == {"id": "id-1", "step": 2, "lost": 0}


def test_evaluations_stand_at_both_ends(tmp_path: Path) -> None:
    folder = tmp_path / "r"
    folder.mkdir()
    told = {"success": 0.25, "task_score": 0.5, "mean_turns": 4, "invalid_action_rate": 0.125}
    for when in ("before", "after"):
        (folder / f"evaluation-{when}.json").write_text(json.dumps({**told, "panel": {}}))
    run(folder, 2)
    steps = [(step, phase) for step, phase, _ in Fake.live[0].rows]
    assert steps == [(0, "evaluate"), (1, "learn"), (2, "learn"), (3, "evaluate")]
    assert Fake.live[0].rows[0][2] == told


def test_settings_without_secrets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("MY_API_KEY", "hunter2hunter2")
    settings = {
        "seed": 3,
        "rollout": {"url": "http://me:pass@host:1", "none": None},
        "reward": {"dense": "m:hunter2hunter2", "temperatures": [0.5, 1.0]},
    }
    assert cleaned(settings) == {
        "seed": 3,
        "rollout.url": "http://***@host:1",
        "rollout.none": None,
        "reward.dense": "m:***",
        "reward.temperatures": "0.5 1.0",
    }


def test_what_a_failure_says_has_no_secrets(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WANDB_API_KEY", "hunter2hunter2")

    def refused(self: Fake, name: str) -> None:
        raise ValueError("bad key hunter2hunter2")

    monkeypatch.setattr(Fake, "_call", refused)
    said = list[str]()
    run(tmp_path / "r", 1, "wandb", said=said)
    assert "hunter2" not in said[0] and "***" in said[0]
