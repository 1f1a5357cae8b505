"""The scripts of examples/ run as they are, and are as short as they say."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

EXAMPLES = Path(__file__).parents[1] / "examples"


def trained(folder: Path, *, seed: int, budget: int) -> dict[str, Any]:
    """What a run of the training script came to."""
    words = [sys.executable, EXAMPLES / "train_own_environment.py", str(seed), str(budget)]
    settings = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(words, cwd=folder, env=settings, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "Field: 8 episodes at random, " in done.stdout and " 0 faults" in done.stdout
    (run,) = (folder / "runs").iterdir()
    assert all((run / name).is_file() for name in ("report.html", "checkpoint/tokenizer.json"))
    found: dict[str, Any] = json.loads((run / "summary.json").read_text())
    return found


def test_they_are_short() -> None:
    for name, most in (("train_own_environment.py", 25), ("own_environment.py", 40)):
        lines = (EXAMPLES / name).read_text(encoding="utf-8").splitlines()
        assert len(lines) <= most, name


def test_an_environment_of_ones_own_is_trained_in(tmp_path: Path) -> None:
    found = trained(tmp_path, seed=0, budget=3)
    assert found["agent_updates"] == 3 and found["failed_episodes"] == 0
    assert 0 < found["success_before"] < 0.5  # random commands win at times


@pytest.mark.slow
def test_it_learns(tmp_path: Path) -> None:
    found = trained(tmp_path, seed=0, budget=45)
    assert found["success_after"] > found["success_before"] + 0.3
