"""The trackers themselves, writing on this machine: what they hold is what they were given.

Each writes in a process of its own, as in use: its threads, its settings of the environment and
what it says on the screen are its own.
"""

import importlib.util
import json
import os
import sqlite3
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

WRITE = """
import json, sys
from pathlib import Path
from rewardswap.trackers.config import TrackConfig
from rewardswap.trackers.tracking import Tracking

name, folder, rows, done, project = sys.argv[1:]
folder, rows = Path(folder), int(rows)
settings = {"seed": 7, "rollout": {"url": "http://me:secret@host"}}
seen = Tracking(TrackConfig(to=(name,), project=project), folder, settings)
with seen.told(lambda words: sys.exit(words)):
    for number in range(int(done) + 1, rows + 1):
        with (folder / "metrics.jsonl").open("a") as file:
            file.write("{}\\n")
        phase = "explore" if number == 1 else "learn"
        seen.add({"success": number / 8, "gap": float("nan") if number == 2 else 0.5}, phase)
"""
History = dict[str, list[tuple[int, float]]]
"""Step and value by phase and metric."""
EXPECTED: History = {
    "explore/success": [(1, 0.125)],
    "learn/success": [(2, 0.25), (3, 0.375), (4, 0.5), (5, 0.625)],
}


def write(name: str, folder: Path, rows: int, done: int = 0, project: str = "rewardswap") -> None:
    """Give rows to a tracker in a process of its own, which must say nothing."""
    if importlib.util.find_spec(name) is None:
        pytest.skip(f"{name} is not installed")
    folder.mkdir(exist_ok=True)
    kept = {n: v for n, v in os.environ.items() if not n.startswith(("WANDB", "MLFLOW", "TRACKIO"))}
    away = {"TRACKIO_DIR": str(folder / "trackio"), "HOME": str(folder), "OMP_NUM_THREADS": "1"}
    nowhere = {"HTTP_PROXY": "http://127.0.0.1:9", "HTTPS_PROXY": "http://127.0.0.1:9"}
    ended = subprocess.run(
        [sys.executable, "-c", WRITE, name, str(folder), str(rows), str(done), project],
        env={**kept, **away, **nowhere},
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, "", "")


def interrupted(name: str, folder: Path) -> None:
    """Three rows, and after that five of which the first two are played again."""
    write(name, folder, 3)
    (folder / "metrics.jsonl").write_text("{}\n")
    write(name, folder, 5, done=1)


def without_gap(history: Mapping[str, list[tuple[int, float]]]) -> History:
    """The history of what is a number everywhere, in order."""
    return {key: sorted(points) for key, points in history.items() if not key.endswith("/gap")}


def test_tensorboard(tmp_path: Path) -> None:
    interrupted("tensorboard", tmp_path / "r")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    events = EventAccumulator(str(tmp_path / "r" / "tensorboard"))
    events.Reload()
    found: History = {
        tag: [(e.step, e.tensor_proto.float_val[0]) for e in events.Tensors(tag)]
        for tag in events.Tags()["tensors"]
    }
    assert without_gap(found) == EXPECTED


def test_wandb_offline(tmp_path: Path) -> None:
    interrupted("wandb", tmp_path / "r")
    files = sorted((tmp_path / "r" / "wandb").glob("offline-run-*/*.wandb"))
    assert len(files) == 2 and len({path.name for path in files}) == 1
    found: History = {}
    settings: dict[str, Any] = {}
    for path in files:
        for record in records_of_wandb(path.read_bytes()):
            kind = record.WhichOneof("record_type")
            if kind == "run":
                settings |= {u.key: json.loads(u.value_json) for u in record.run.config.update}
                assert (record.run.project, record.run.display_name) == ("rewardswap", "r")
            if kind == "history":
                row = {(i.key or "/".join(i.nested_key)): i.value_json for i in record.history.item}
                step = int(row["_step"])
                for key, value in row.items():
                    if key.endswith("/success"):
                        found.setdefault(key, []).append((step, float(value)))
    assert without_gap(found) == EXPECTED
    assert (settings["seed"], settings["rollout.url"]) == (7, "http://***@host")
    assert not [path for path in (tmp_path / "r").rglob("*") if b"secret@" in content(path)]


def records_of_wandb(content: bytes) -> list[Any]:
    """The records of a .wandb file: LevelDB's log in blocks of 32 kB, behind 7 bytes."""
    from wandb.proto.wandb_internal_pb2 import Record

    found, part, place = [], b"", 7
    while place + 7 <= len(content):
        left = 32768 - place % 32768
        if left < 7:
            place += left
            continue
        size, kind = int.from_bytes(content[place + 4 : place + 6], "little"), content[place + 6]
        part += content[place + 7 : place + 7 + size]
        place += 7 + size
        if kind in (1, 4):  # whole, or the last part
            record = Record()
            record.ParseFromString(part)
            found.append(record)
            part = b""
    return found


def test_mlflow(tmp_path: Path) -> None:
    interrupted("mlflow", tmp_path / "r")
    with sqlite3.connect(tmp_path / "r" / "mlflow" / "mlflow.db") as store:
        runs = store.execute("select name, status from runs").fetchall()
        rows = store.execute("select key, step, value from metrics where not is_nan").fetchall()
        said = dict(store.execute("select key, value from params").fetchall())
        projects = [name for (name,) in store.execute("select name from experiments")]
    assert runs == [("r", "FINISHED")]
    assert "rewardswap" in projects
    found: History = {}
    for key, step, value in rows:
        found.setdefault(key, []).append((step, value))
    assert without_gap(found) == EXPECTED
    assert said == {"seed": "7", "rollout.url": "http://***@host"}


def test_trackio(tmp_path: Path) -> None:
    interrupted("trackio", tmp_path / "r")
    (path,) = (tmp_path / "r" / "trackio").glob("*.db")
    with sqlite3.connect(path) as store:
        rows = store.execute("select run_name, step, metrics from metrics").fetchall()
    found: History = {}
    for _, step, metrics in rows:
        for key, value in json.loads(metrics).items():
            if key.endswith("/success"):
                found.setdefault(key, []).append((step, value))
    assert without_gap(found) == EXPECTED
    (name,) = {name for name, _, _ in rows}
    assert name.startswith("r-")


def content(path: Path) -> bytes:
    return path.read_bytes() if path.is_file() else b""
