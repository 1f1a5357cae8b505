"""Stands for `rewardswap train CONFIG --output FOLDER`: writes a run folder at once, or fails.

usage: pretended_training.py CONFIG FOLDER {"ARM/seed-S": ["fail" | "hang" | "other" | "well", ...]}

The n-th word is what happens after n stopped attempts, the last one from then on; "other": it ends
well on other code and another panel; "hang": it trains without end.
"""

import json
import os
import sys
import time
import tomllib
from pathlib import Path

config, folder, behaviours = Path(sys.argv[1]), Path(sys.argv[2]), json.loads(sys.argv[3])
run = tomllib.loads(config.read_text())
label = f"{folder.parent.name}/{folder.name}"
stopped = len(list(folder.parent.glob(f"{folder.name}.stopped-*.log")))
plan = behaviours.get(label, ["well"])
behaviour = plan[min(stopped, len(plan) - 1)]


def write(name: str, content: object) -> None:
    (folder / name).parent.mkdir(parents=True, exist_ok=True)
    (folder / name).write_text(json.dumps(content) + "\n")


write("trajectories/after.jsonl", {"task": "t", "family": "f", "success": True})
write("trajectories/before.jsonl", {"task": "t", "family": "f", "success": False})
write("metrics.jsonl", {"phase": "learn", "update": 1, "success": 0.5, "seconds": 1.0})
(folder / "config.toml").write_text(config.read_text())
print(f"training {run['recipe']}, threads {os.environ['OMP_NUM_THREADS']}", flush=True)
if behaviour == "hang":
    time.sleep(60)
if behaviour == "fail":
    sys.exit("rewardswap: it broke\n\n")
other = behaviour == "other"
environment = {"versions": {"rewardswap": "1"}, "machine": {}, "command": "x"}
write("environment.json", {"commit": "other" if other else "here", **environment})
panel = {"split": "s", "hash": "p2" if other else "p1", "tasks": 1}
evaluation = {"panel": panel, "temperature": 1.0, "families": {}, "success": 0.25}
evaluation |= {"task_score": None, "mean_turns": 2.0, "invalid_action_rate": 0.0}
write("evaluation-before.json", evaluation)
write("evaluation-after.json", evaluation | {"success": 0.5})
(folder / "checkpoint").mkdir()
names = (
    "agent_updates all_updates environment_steps generated_tokens trained_tokens failed_episodes"
)
write("summary.json", {"seed": run["seed"], "seconds": 10.0, **dict.fromkeys(names.split(), 4)})
