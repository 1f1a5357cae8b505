"""Whole runs by the command, on a cluster and without."""

import json
import subprocess
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .conftest import TwoNodes

SECONDS = 500


def begun(*words: str) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "rewardswap", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )


def ended(process: "subprocess.Popen[str]", code: int = 0) -> str:
    said = process.communicate(timeout=SECONDS)[0]
    assert process.returncode == code, said
    return said


def on_ray(nodes: "TwoNodes", *words: str) -> list[str]:
    return [*words, "--cluster", "ray", "--ray-address", nodes.address]


def rows(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
