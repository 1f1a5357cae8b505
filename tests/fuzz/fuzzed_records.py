"""Records of runs, results, collections for process rewards and their folders, spoiled."""

import json
import shutil
from contextlib import ExitStack
from functools import cache
from io import TextIOBase
from pathlib import Path
from random import Random
from typing import Any
from unittest.mock import patch

from fuzzed import command
from fuzzed_values import damaged, spoiled
from matplotlib.figure import Figure

from made import made_trajectory
from rewardswap.comparison.results import FORMAT
from rewardswap.prm.store import Collection, read_collection, write_collection
from rewardswap.recipes import RECIPES
from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.heads import RewardHead
from rewardswap.rewards.saving import SavedHead, read_head, write_head
from rewardswap.settings import write_run

Json = dict[str, Any]


def _evaluation(success: float) -> Json:
    families = {
        name: {"tasks": 4, "success": success, "interval": [0.0, 1.0], "mean_turns": 8.0}
        for name in ("cool", "heat")
    }
    return {
        "panel": {"split": "held_out", "tasks": 8, "hash": "9f3a", "remarks": ["none"]},
        "temperature": 1.0,
        "success": success,
        "interval": [0.1, 0.9],
        "task_score": 0.5,
        "mean_turns": 8.0,
        "invalid_action_rate": 0.1,
        "families": families,
    }


def _episode(task: str, family: str, success: bool) -> Json:
    turn = {"observation": "a sink", "action": "go to sink 1", "valid": True, "reward": 0.5}
    turn |= {"context": "a sink <act>", "pieces": ["go", " to sink 1"], "old": None}
    turn |= {"behavior": [-0.5, -0.25], "advantage": [0.5, -1.0]}
    return {
        "task": task,
        "family": family,
        "index": 0,
        "outcome": float(success),
        "success": success,
        "stop": "done",
        "policy_version": 1,
        "phase": "learn",
        "update": 1,
        "replayed": False,
        "turns": [{**turn, "truncated": False, "logprob_sum": -1.0, "tokens": 4}] * 2,
        "final_observation": "the end",
        "process_reward": [0.5, -0.25],
    }


def _metrics() -> list[Json]:
    shared = {"loop": 0, "seconds": 1.0, "success": 0.5, "kl_old": 0.01, "clip_low_share": 0.1}
    shared |= {"clip_high_share": 0.1, "effective_sample_size": 0.9, "dense_reward_mean": 0.5}
    rows = []
    for number, phase in enumerate(("evaluate", "explore", "harvest", "learn", "learn")):
        rows.append({"phase": phase, "update": number, "environment_steps": 9 * number, **shared})
    return rows


DOCUMENTS: Json = {
    "environment.json": {"commit": "c0ffee", "versions": {}, "machine": {}, "command": "train"},
    "summary.json": {
        "seed": 3,
        "seconds": 12.5,
        "phases": {"learn": {"updates": 2, "seconds": 5.0, "environment_steps": 30}},
        **dict.fromkeys(("agent_updates", "all_updates", "environment_steps"), 7),
        **dict.fromkeys(("generated_tokens", "trained_tokens", "failed_episodes"), 7),
    },
    "remarks.json": {"held_out": ["2 tasks left out"]},
    "evaluation-before.json": _evaluation(0.25),
    "evaluation-after.json": _evaluation(0.5),
    "prm.json": {
        "auc_total": 0.9,
        "auc_within_task": 0.6,
        "auc_length_only": 0.98,
        "auc_at_fixed_turns": 0.5,
        "brier": 0.2,
        "warning": None,
        "turns": [{"turn": 3, "live": 20, "auc": 0.51, "auc_length_only": 0.5}],
    },
}
LINES: Json = {
    "metrics.jsonl": _metrics(),
    "warnings.jsonl": [{"kind": "hacking", "update": 1.0, "words": "it may be hacked"}],
    **{
        f"trajectories/{name}.jsonl": [
            _episode(task, family, won != (name == "after"))
            for task, family, won in (("a", "cool", True), ("b", "heat", False))
        ]
        for name in ("before", "after", "train")
    },
}


def _as_lines(rows: list[Any], random: Random) -> bytes:
    """A file of lines, one of which is spoiled."""
    lines = [json.dumps(row).encode() for row in rows]
    place = random.randrange(len(rows))
    lines[place] = spoiled(rows[place], random)
    whole = b"".join(line + b"\n" for line in lines)
    return whole if random.random() < 0.8 else damaged(whole, random)


def _whole_run(run: Path) -> Path:
    shutil.rmtree(run, ignore_errors=True)
    (run / "trajectories").mkdir(parents=True)
    write_run(RECIPES["demo"](), run / "config.toml")
    for name, content in DOCUMENTS.items():
        (run / name).write_text(json.dumps(content))
    for name, rows in LINES.items():
        (run / name).write_text("".join(json.dumps(row) + "\n" for row in rows))
    return run


def _spoiled_run(folder: Path, random: Random) -> Path:
    """A run folder one or two files of which are spoiled or gone."""
    run = _whole_run(folder / "run")
    names = ["config.toml", *DOCUMENTS, *LINES]
    for name in random.sample(names, random.choice((1, 1, 2))):
        path = run / name
        if random.random() < 0.1:
            path.unlink()
        elif name in DOCUMENTS:
            path.write_bytes(spoiled(DOCUMENTS[name], random))
        elif name in LINES:
            path.write_bytes(_as_lines(LINES[name], random))
        else:
            path.write_bytes(damaged(path.read_bytes(), random))
    return run


def _report(words: list[str], random: Random) -> None:
    """The command; of ten reports one has its curves drawn to the end, which takes seconds."""
    with ExitStack() as stack:
        if random.random() < 0.9:
            stack.enter_context(patch.object(Figure, "savefig", _undrawn))
        command(["report", *words])


def _undrawn(figure: Figure, file: Any, **settings: Any) -> None:
    file.write("<svg></svg>" if isinstance(file, TextIOBase) else b"")


def run_folders(random: Random, folder: Path) -> None:
    """A spoiled run folder: its own report."""
    _spoiled_run(folder, random)
    _report(["run"], random)


def runs_side_by_side(random: Random, folder: Path) -> None:
    """A spoiled run folder beside a whole one: the page of both."""
    _spoiled_run(folder, random)
    _whole_run(folder / "whole")
    _report(["run", "whole", "--output", "compared"], random)


def compared_runs(random: Random, folder: Path) -> None:
    """A spoiled run folder as a result to compare."""
    _spoiled_run(folder, random)
    _report(["run", "--output", "compared"], random)


def _result(arm: str, seed: int) -> Json:
    counters = {"agent_updates": 3, "all_updates": 6, "environment_steps": 30, "seconds": 9.0}
    counters |= {"generated_tokens": 120, "trained_tokens": 100, "failed_episodes": 0}
    curve = {"update": [1, 2], "environment_steps": [10, 20], "generated_tokens": [40, 80]}
    curve |= {"success": [0.1, 0.5]}
    families = {"cool": {"tasks": 2, "success": 0.5}, "heat": {"tasks": 4, "success": 0.5}}
    measured = {"task_score": 0.5, "mean_turns": 8.0, "invalid_action_rate": 0.1}
    return {
        "format": FORMAT,
        "experiment": "made",
        "arm": arm,
        "baseline": None if arm == "base" else "base",
        "seed": seed,
        "commit": "c0ffee",
        "versions": {},
        "machine": {},
        "command": "rewardswap train demo",
        "settings": f"digest of {arm}",
        "settings_changed": {"seed": 3},
        "panel": {"split": "held_out", "hash": "9f3a", "tasks": 6},
        "temperature": 1.0,
        "budget": {"amount": 3, "unit": "agent_updates"},
        "counters": counters,
        "phases": {"learn": {**counters, "updates": 3}},
        "before": {"success": 0.25, **measured, "families": families},
        "after": {"success": 0.5, **measured, "families": families},
        "tasks": {"cool": "10", "heat": "1100"},
        "process_reward": DOCUMENTS["prm.json"],
        "warnings": {"hacking": {"count": 1, "first_update": 1.0, "words": "hacked"}},
        "curve": {"learn": curve, "explore": {**curve, "dense": [0.1, 0.2]}, "loop": {}},
        "mixed": [],
    }


def result_files(random: Random, folder: Path) -> None:
    """A results.jsonl with a spoiled line: its comparison."""
    rows = [_result(arm, seed) for arm in ("base", "other") for seed in (0, 1)]
    (folder / "results.jsonl").write_bytes(_as_lines(rows, random))
    _report(["results.jsonl", "--output", "compared"], random)


@cache
def _collection() -> Collection:
    played = tuple(made_trajectory(t, outcome=float(t == "a")) for t in "abc")
    environment = {"name": "alfworld", "turn_limit": 12}
    policies = [{"model": "base-agent", "weights_sha256": "0" * 64}]
    manifest = {"policies": policies, "tokenizer_sha256": "0" * 64, "environment": environment}
    return Collection(played, (0, 0, 0), manifest)


def collections(random: Random, folder: Path) -> None:
    """Rollouts for process rewards with a spoiled manifest or line."""
    data = folder / "collection"
    shutil.rmtree(data, ignore_errors=True)
    write_collection(data, _collection())
    path = data / random.choice(("manifest.json", "trajectories.jsonl"))
    if path.suffix == ".json":
        path.write_bytes(spoiled(json.loads(path.read_bytes()), random))
    else:
        rows = [json.loads(line) for line in path.read_bytes().splitlines()]
        path.write_bytes(_as_lines(rows, random))
    read_collection(data)
    command(["prm", "eval", "collection", "--reward", random.choice(("constant", "progress"))])


def reward_folders(random: Random, folder: Path) -> None:
    """The folder of a process reward model with one file spoiled."""
    model = folder / "model"
    shutil.rmtree(model, ignore_errors=True)
    head = RewardHead(8, 4, "tanh")
    config = PRESETS["action"]
    write_head(model, SavedHead(config, head.state_dict(), "0" * 64, 1))
    path = model / random.choice(("process_reward.json", "process_reward.safetensors"))
    if path.suffix == ".json":
        path.write_bytes(spoiled(json.loads(path.read_bytes()), random))
    else:
        path.write_bytes(damaged(path.read_bytes(), random))
    read_head(model).head()
