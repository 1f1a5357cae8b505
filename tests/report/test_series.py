import json
from pathlib import Path

from rewardswap.report.records import read_run
from rewardswap.report.series import (
    exploration_spans,
    running_mean,
    running_window,
    series,
    with_evaluations,
)

METRICS = [
    {"phase": "explore", "update": 0, "loop": 0, "environment_steps": 10, "success": 0.1},
    {"phase": "explore", "update": 0, "loop": 0, "environment_steps": 20, "success": 0.2},
    {"phase": "harvest", "update": 0, "loop": 0, "environment_steps": 30, "success": 0.3},
    {"phase": "learn", "update": 1, "loop": 0, "environment_steps": 45, "success": 0.4},
    {"phase": "explore", "update": 1, "loop": 1, "environment_steps": 55, "success": None},
    {"phase": "harvest", "update": 1, "loop": 1, "environment_steps": 65, "success": 0.5},
    {"phase": "learn", "update": 2, "loop": 1, "environment_steps": 80, "success": float("nan")},
]


def test_the_explorer_is_cut_between_loops_and_spread_over_one_update() -> None:
    assert series(METRICS, "explorer", "update", "success") == [
        [(0.25, 0.1), (0.5, 0.2), (0.75, 0.3)],
        [(1 + 2 / 3, 0.5)],
    ]
    assert series(METRICS, "explorer", "environment_steps", "success") == [
        [(10, 0.1), (20, 0.2), (30, 0.3)],
        [(65, 0.5)],
    ]


def test_the_agent_is_where_its_updates_are() -> None:
    assert series(METRICS, "agent", "update", "success") == [[(1, 0.4)]]
    assert series(METRICS, "evaluation", "update", "success") == []


def test_exploration_is_shaded_from_its_start_to_its_end() -> None:
    assert exploration_spans(METRICS, "environment_steps") == [(0, 30), (45, 65)]
    assert exploration_spans(METRICS, "update") == [(0, 1), (1, 2)]


def test_the_running_mean_shrinks_at_the_ends() -> None:
    assert running_window(23) == 1
    assert running_window(24) == 3
    points = [(float(x), float(x * x)) for x in range(24)]
    mean = running_mean(points)
    assert mean[0] == (0.0, 0.5)
    assert mean[5] == (5.0, (16 + 25 + 36) / 3)
    assert mean[-1] == (23.0, (22 * 22 + 23 * 23) / 2)


def test_evaluations_stand_at_the_ends_if_the_metrics_hold_none(run_folder: Path) -> None:
    record = read_run(run_folder)
    assert with_evaluations(record) == record.metrics
    rows = [row for row in record.metrics if row["phase"] != "evaluate"]
    (run_folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    completed = with_evaluations(read_run(run_folder))
    assert series(completed, "evaluation", "update", "success") == [[(0, 0.15), (6, 0.55)]]
    assert series(completed, "evaluation", "environment_steps", "success") == [
        [(0, 0.15), (1500, 0.55)]
    ]
    (run_folder / "evaluation-after.json").unlink()
    completed = with_evaluations(read_run(run_folder))
    assert series(completed, "evaluation", "update", "success") == [[(0, 0.15)]]
