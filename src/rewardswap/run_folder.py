"""The run folder: the record that reports read, and the only place that a run writes to."""

import json
import os
import platform
import subprocess
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from importlib.metadata import version
from pathlib import Path
from typing import IO, Any

from rewardswap.evaluation import Evaluation
from rewardswap.types import Group, Trajectory

RECORDED_VERSIONS = ("rewardswap", "torch", "transformers", "numpy", "tokenizers", "safetensors")


class RunFolder:
    """Files of one run: configuration, machine, metrics, trajectories, evaluations, summary."""

    def __init__(self, path: Path) -> None:
        """Create `path`; raises ValueError if it holds files already or cannot be written."""
        if path.is_dir() and any(path.iterdir()):
            raise ValueError(
                f"run folder {path} is not empty; give another with --output, or move it away"
            )
        try:
            (path / "trajectories").mkdir(parents=True)
            (path / "metrics.jsonl").touch()
        except OSError as error:
            raise ValueError(f"run folder {path} cannot be written: {error.strerror}") from error
        self.path = path
        self._metrics = self._open("metrics.jsonl")
        self._train = self._open("trajectories/train.jsonl")

    def _open(self, name: str) -> IO[str]:
        return (self.path / name).open("a", encoding="utf-8")

    def write_environment(self) -> None:
        """Where and with what the run was made, so that it can be made again."""
        self.write(
            "environment.json",
            {
                "commit": commit(),
                "versions": {
                    "python": platform.python_version(),
                    **{name: version(name) for name in RECORDED_VERSIONS},
                },
                "machine": {
                    "system": platform.platform(),
                    "processor": platform.machine(),
                    "cores": os.cpu_count(),
                },
                "command": " ".join([Path(sys.argv[0]).name, *sys.argv[1:]]),
                "started": datetime.now(UTC).isoformat(timespec="seconds"),
            },
        )

    def write(self, name: str, content: Mapping[str, Any]) -> None:
        """Write a JSON file whole or not at all."""
        target = self.path / name
        beside = target.with_suffix(".part")
        beside.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        beside.replace(target)

    def add_metrics(self, metrics: Mapping[str, Any]) -> None:
        """One more line of metrics.jsonl, on disk when this returns."""
        self._metrics.write(json.dumps(metrics) + "\n")
        self._metrics.flush()

    def add_refit(self, accepted: bool, quality: Mapping[str, Any]) -> None:
        """One more line of prm-refits.jsonl: what came of a refit of the process reward model."""
        self._add("prm-refits.jsonl", {"accepted": accepted, "quality": quality})

    def add_warning(self, kind: str, words: str, update: float) -> None:
        """One more line of warnings.jsonl."""
        self._add("warnings.jsonl", {"kind": kind, "update": update, "words": words})

    def _add(self, name: str, row: Mapping[str, Any]) -> None:
        with self._open(name) as file:
            file.write(json.dumps(row) + "\n")

    def add_trajectories(
        self, groups: Sequence[Group], phase: str, source: str, indices: Sequence[int] = (0,)
    ) -> None:
        """Sampled trajectories of training, with the rewards of `source` where they have them."""
        for group in groups:
            rewards = group.rewards.get(source)
            for n in indices:
                trajectory = group.trajectories[n]
                count = len(trajectory.turns)
                scored = None if rewards is None else rewards[n, :count].tolist()
                record = trajectory_record(trajectory, phase, scored)
                self._train.write(json.dumps(record) + "\n")
        self._train.flush()

    def write_evaluation(
        self, name: str, evaluation: Evaluation, scores: Sequence[Sequence[float] | None] | None
    ) -> None:
        """The table of an evaluation and all of its trajectories."""
        self.write(f"evaluation-{name}.json", evaluation.as_dict())
        with self._open(f"trajectories/{name}.jsonl") as file:
            for n, trajectory in enumerate(evaluation.trajectories):
                scored = None if scores is None else scores[n]
                file.write(json.dumps(trajectory_record(trajectory, "evaluate", scored)) + "\n")

    def close(self) -> None:
        """Close the open files."""
        self._metrics.close()
        self._train.close()


def trajectory_record(
    trajectory: Trajectory, phase: str, process_reward: Sequence[float] | None
) -> dict[str, Any]:
    """A trajectory as a person and a report read it."""
    return {
        "task": trajectory.task.id,
        "family": trajectory.task.family,
        "origin": trajectory.task.origin,
        "index": trajectory.index,
        "outcome": trajectory.outcome,
        "task_score": trajectory.task_score,
        "success": trajectory.success,
        "stop": trajectory.stop,
        "policy_version": trajectory.policy_version,
        "phase": phase,
        "turns": [
            {
                "observation": turn.observation,
                "action": turn.action,
                "valid": turn.valid,
                "truncated": turn.truncated,
                "reward": turn.reward,
                "logprob_sum": float(turn.logprobs.sum()),
                "tokens": len(turn.action_ids),
            }
            for turn in trajectory.turns
        ],
        "final_observation": trajectory.final_observation,
        "process_reward": None if process_reward is None else list(process_reward),
    }


def commit() -> str | None:
    """The commit of the source tree, with a mark if it has changes; none outside a checkout."""
    here = Path(__file__).parent
    try:
        described = subprocess.run(
            ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"],
            cwd=here,
            capture_output=True,
            text=True,
            check=False,
        )
    except FileNotFoundError:
        return None
    return described.stdout.strip() or None
