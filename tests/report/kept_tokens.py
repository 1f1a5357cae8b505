"""Trajectories of training as a run keeps them, token by token."""

import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

Json = dict[str, Any]


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
