"""A run folder that is small, finished and has every file that a result is made from."""

import hashlib
import json
from dataclasses import replace
from pathlib import Path

from rewardswap.env_config.alfworld import Alfworld
from rewardswap.recipes import demo_grpo
from rewardswap.settings import write_run

TASKS = {"t1": ("heat", True), "t2": ("cool", False), "t3": ("heat", False), "t4": ("cool", True)}


def make_run(folder: Path, lost_after: str = "", lost_before: str = "") -> Path:
    """A run of which the episodes of some tasks broke."""
    (folder / "trajectories").mkdir(parents=True)
    run = replace(demo_grpo(), seed=3, budget=2, output=folder)
    env = run.env
    assert isinstance(env, Alfworld)
    policy = replace(run.policy, model="base-agent", action_tokens=12)
    write_run(replace(run, env=env.decided("short"), policy=policy), folder / "config.toml")
    families = {
        "cool": {"tasks": 2, "success": 0.5},
        "heat": {"tasks": 2, "success": 0.123456789},
    }
    identity = hashlib.sha256("\n".join(TASKS).encode()).hexdigest()[:16]
    evaluation = {
        "panel": {"split": "held_out", "tasks": 4, "hash": identity, "remarks": ["none"]},
        "temperature": 1.0,
        "success": 0.5,
        "task_score": 1 / 3,
        "mean_turns": 8.0,
        "invalid_action_rate": 0.1,
        "families": families,
    }
    counters = ("agent_updates", "all_updates", "environment_steps", "generated_tokens")
    counters += ("trained_tokens", "failed_episodes")
    documents = {
        "environment": {"commit": "c0ffee", "versions": {}, "machine": {}, "command": "train"},
        "summary": {"seed": 3, "seconds": 12.3456789, **{name: 7 for name in counters}},
        "evaluation-before": evaluation,
        "evaluation-after": evaluation,
    }
    for name, document in documents.items():
        (folder / f"{name}.json").write_text(json.dumps(document))
    for name, lost in (("before", lost_before), ("after", lost_after)):
        rows = [
            {"task": task, "family": family, "success": won}
            for task, (family, won) in TASKS.items()
            if task not in lost.split()
        ]
        write_lines(folder / f"trajectories/{name}.jsonl", rows)
    write_lines(
        folder / "metrics.jsonl",
        [
            {"phase": "explore", "update": 0.0, "success": 0.25, "progress_reward_mean": 1 / 3},
            {"phase": "harvest", "update": 0.0, "success": 0.5},
            {"phase": "learn", "update": 1.0, "success": 2 / 3, "outcome_reward_mean": 2 / 3}
            | {"explorer_kl": 0.01, "replay_success_share": 0.5, "entropy": float("nan")},
            {"phase": "learn", "update": 2.0, "success": 1.0, "outcome_reward_mean": 1.0},
        ],
    )
    return folder


def write_lines(path: Path, rows: list[dict[str, object]]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
