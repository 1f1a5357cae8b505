"""The benchmark of equal work per process: its sums by hand, and a small start of each way."""

import importlib.util
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import pytest
import torch

BENCHMARK = Path(__file__).parents[1] / "benchmarks" / "weak_scaling.py"


@pytest.fixture(scope="module")
def weak_scaling() -> ModuleType:
    spec = importlib.util.spec_from_file_location("weak_scaling", BENCHMARK)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Late:
    """The second of two ranks, which all calls keep for 2 s by a clock that only they move."""

    rank, size = 1, 2

    def __init__(self) -> None:
        self.now = 0.0

    def gather(self, value: int) -> list[int]:
        self.now += 2
        return [0, value]

    def first(self, value: int) -> int:
        self.now += 2
        return 0

    def add(self, tensor: torch.Tensor) -> None:
        self.now += 2
        tensor += 1


def test_calls_to_other_ranks_are_waiting(
    weak_scaling: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    ranks = Late()
    counted = weak_scaling.Counted(ranks)
    monkeypatch.setattr(weak_scaling.time, "perf_counter", lambda: ranks.now)
    monkeypatch.setattr(weak_scaling.time, "process_time", lambda: ranks.now / 4)
    clock = weak_scaling.Clock(counted)
    row = {"generated_tokens": 60.0, "trained_tokens": 40.0}
    clock.updated(row, "learn")  # the first warms up
    tensor = torch.zeros(1)
    counted.add(tensor)
    ranks.now += 5
    assert (tensor.item(), counted.gather(7), counted.first(7)) == (1, [0, 7], 0)
    row = {"generated_tokens": 90.0, "trained_tokens": 70.0}
    clock.updated({**row, "rollout_seconds": 4.0, "update_seconds": 6.0}, "learn")
    assert clock.updates == [
        {
            "seconds": 11,  # 3 calls of 2 s, and 5 s
            "playing": 4,
            "learning": 6,
            "waiting": 6,
            "processor": 2.75,
            "tokens": 30,  # 60 more, of two ranks
        }
    ]


@pytest.mark.slow
def test_it_runs_alone_and_on_two_processes() -> None:
    small = ["--ranks", "1", "2", "--tasks", "1", "--updates", "2", "--repeats", "1"]
    found = subprocess.run(
        [sys.executable, str(BENCHMARK), *small], capture_output=True, text=True, timeout=500
    )
    assert found.returncode == 0, found.stderr
    head, _, *lines = [line for line in found.stdout.splitlines() if line.startswith("|")]
    table = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    assert len(head.strip("|").split("|")) == len(table[0])
    assert [row[:2] for row in table] == [["1", "alone"], ["2", "replicated"], ["2", "sharded"]]
    assert (table[0][3], table[0][6], table[0][8]) == ("1.00 x", "0.00", "1.00 x")
    tokens = [float(row[-1].replace(",", "")) for row in table]
    # a process of two has the work of one alone, but for what episodes differ in
    assert tokens[1:] == pytest.approx([tokens[0]] * 2, rel=0.5)
