"""A made-up run folder, small and complete, and trajectories as a run keeps them by token."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Json = dict[str, Any]


FAMILIES = {"heat": (10, 2, 8), "two": (10, 1, 3)}
"""Tasks, successes before and after."""


def write_lines(path: Path, rows: Iterable[Json]) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


def token_trajectory(
    number: int, *, replayed: bool = False, success: bool = False, family: str = "heat"
) -> Json:
    """Two turns of two tokens; advantages .5 and -1, gaps -.25 and .125 nats in each turn."""
    turn = {
        "observation": f"the sink {number}",
        "action": "go to sink",
        "valid": True,
        "truncated": False,
        "reward": 0.0,
        "logprob_sum": -0.75,
        "tokens": 2,
        "context": f"the sink {number} . <act>",
        "pieces": ["go", " to sink <end>"],
        "behavior": [-0.5, -0.25],
        "old": [-0.75, -0.125],
        "advantage": [0.5, -1.0],
    }
    return {
        "task": f"t{number}",
        "family": family,
        "origin": "",
        "index": 0,
        "outcome": float(success),
        "task_score": float(success),
        "success": success,
        "stop": "done" if success else "turn_limit",
        "policy_version": number,
        "phase": "learn",
        "update": number,
        "replayed": replayed,
        "turns": [turn, {**turn, "valid": False}],
        "final_observation": f"the end of {number}",
        "process_reward": [0.5, -0.25],
    }


def metrics() -> list[Json]:
    rows: list[Json] = []
    steps = 0

    def add(phase: str, update: int, success: float, dense: float | None) -> None:
        row = {"phase": phase, "update": update, "loop": update // 2, "seconds": len(rows)}
        row |= {"environment_steps": steps, "success": success, "dense_reward_mean": dense}
        if phase in ("explore", "learn"):
            row |= {"kl_old": 0.005 * (len(rows) % 3), "clip_low_share": 0.02}
            row |= {"clip_high_share": 0.03, "effective_sample_size": 60 - len(rows)}
        rows.append(row)

    add("evaluate", 0, 0.15, None)
    for loop in range(3):
        for number in range(2):
            steps += 100
            add("explore", 2 * loop, 0.1 + 0.1 * number, 0.4 + 0.2 * number)
        steps += 100
        add("harvest", 2 * loop, 0.3, 0.8)
        for number in range(2):
            steps += 100
            add("learn", 2 * loop + number + 1, 0.2 + 0.1 * loop, 0.3)
    add("evaluate", 6, 0.55, None)
    return rows


def evaluation(when: int) -> Json:
    families = {
        name: {
            "tasks": counts[0],
            "success": counts[1 + when] / counts[0],
            "interval": [counts[1 + when] / counts[0] - 0.1, counts[1 + when] / counts[0] + 0.1],
            "mean_turns": 14.5 - 6 * when,
        }
        for name, counts in FAMILIES.items()
    }
    return {
        "panel": {"split": "fresh", "tasks": 20, "hash": "9f3a"},
        "temperature": 1.0,
        "success": 0.55 if when else 0.15,
        "interval": [0.45, 0.65] if when else [0.1, 0.3],
        "mean_turns": 8.5 if when else 14.5,
        "invalid_action_rate": 0.06 if when else 0.31,
        "families": families,
    }


def trajectory(task: str, family: str, success: bool, phase: str = "evaluate") -> Json:
    words = f"{phase} of {task}, {'solved' if success else 'failed'}"
    turns = [
        {"observation": f"start: {words}", "action": "go to sink 1", "valid": True, "reward": 0.25},
        {"observation": "the sink", "action": "eat sink 1", "valid": False, "reward": 0.0},
    ]
    return {
        "task": task,
        "family": family,
        "index": 0,
        "outcome": float(success),
        "success": success,
        "stop": "done" if success else "turn_limit",
        "policy_version": 3,
        "phase": phase,
        "turns": [{**turn, "truncated": False, "logprob_sum": -1.0, "tokens": 4} for turn in turns],
        "final_observation": f"end: {words}",
        "process_reward": [0.5, -0.125],
    }


TASKS = {
    "a1": ("heat", False, True),
    "a2": ("heat", False, True),
    "a3": ("two", False, True),
    "b1": ("two", False, False),
    "b2": ("heat", False, False),
    "c1": ("heat", True, False),
    "d1": ("heat", True, True),
}
"""Task: family, success before and after."""


def make_run(folder: Path) -> Path:
    run = folder / "kitchen-rspo"
    write_lines(run / "metrics.jsonl", metrics())
    (run / "config.toml").write_text('method = "rspo"\nseed = 7\n')
    documents = {
        "environment.json": {
            "commit": "8165e6f",
            "versions": {"torch": "2.9.1"},
            "machine": "2 cores",
            "command": "rewardswap demo --seed 7",
            "started": "2026-10-02T09:31:04Z",
        },
        "summary.json": {"environment_steps": 1500, "seconds": 512.4, "agent_updates": 6},
        "remarks.json": {"fresh": ["2 tasks left out"], "train": ["2 tasks left out"]},
        "evaluation-before.json": evaluation(0),
        "evaluation-after.json": evaluation(1),
        "prm.json": {
            "auc_total": 0.946,
            "auc_length_only": 0.983,
            "turns": [
                {"turn": 3, "live": 200, "auc": 0.51, "auc_length_only": 0.5},
                {"turn": 5, "live": 100, "auc": 0.47, "auc_length_only": 0.5},
            ],
            "held_out_trajectories": 321,
        },
    }
    for name, document in documents.items():
        (run / name).write_text(json.dumps(document))
    for name, place in (("before", 1), ("after", 2)):
        played = [
            trajectory(task, str(told[0]), bool(told[place]), name) for task, told in TASKS.items()
        ]
        write_lines(run / f"trajectories/{name}.jsonl", played)
    explored = [trajectory(f"e{number}", "two", number == 2, "explore") for number in range(3)]
    explored[1]["process_reward"] = [4.0, 1.0]
    explored[2]["process_reward"] = [9.0, 9.0]
    write_lines(run / "trajectories/train.jsonl", explored)
    return run
