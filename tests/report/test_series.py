import json
from pathlib import Path

from rewardswap.report.records import Json, read_run
from rewardswap.report.series import (
    evaluation_ranges,
    exploration_spans,
    running_mean,
    running_window,
    series,
    success_ranges,
    with_evaluations,
    with_explorer_updates,
)
from rewardswap.statistics import wilson_interval

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


def test_k_is_how_often_the_explorer_was_updated_in_the_agents_loop() -> None:
    found = [row.get("explorer_updates") for row in with_explorer_updates(METRICS)]
    assert found == [None, None, None, 2, None, None, 1]
    learned = [row for row in METRICS if row["phase"] == "learn"]
    assert with_explorer_updates(learned) == learned


def learn_row(update: int, success: float, turns: float = 8.0, steps: float = 80.0) -> Json:
    told = {"turns_mean": turns, "rollout/environment_steps": steps}
    return {"phase": "learn", "update": update, "success": success, **told}


def test_success_has_the_interval_of_the_episodes_behind_it() -> None:
    # 80 steps at 8 turns: 10 episodes, 3 of them won; Wilson at z = 1.96: [.1078, .6032]
    ((place, low, high),) = success_ranges([learn_row(1, 0.3)], "update")
    assert (place, round(low, 4), round(high, 4)) == (1, 0.1078, 0.6032)
    # with 24 updates the line spans 3 of them: 3 of 30 at the second, 3 of 20 at the first
    rows = [learn_row(u, 0.3 if u == 1 else 0.0) for u in range(24)]
    ranges = success_ranges(rows, "update")
    assert ranges[0][1:] == wilson_interval(3, 20)
    assert ranges[1][1:] == wilson_interval(3, 30)
    assert ranges[9][1:] == wilson_interval(0, 30)


def test_without_a_count_of_episodes_there_is_no_interval() -> None:
    uncounted = {"phase": "learn", "update": 2, "success": 0.5}
    assert success_ranges([learn_row(1, 0.3), uncounted], "update") == []
    assert success_ranges([learn_row(1, 0.3, turns=float("nan"))], "update") == []
    assert success_ranges([], "update") == []


def test_evaluations_have_the_intervals_of_their_files(run_folder: Path) -> None:
    rows = [row for row in read_run(run_folder).metrics if row["phase"] != "evaluate"]
    (run_folder / "metrics.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    completed = with_evaluations(read_run(run_folder))
    assert evaluation_ranges(completed, "update") == [(0, 0.1, 0.3), (6, 0.45, 0.65)]
    strange = [{"phase": "evaluate", "update": 1, "success_interval": ends} for ends in (None, [1])]
    assert evaluation_ranges(strange, "update") == []
