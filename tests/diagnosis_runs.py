"""Made-up run folders for a diagnosis: a healthy one, and one for each known cause."""

import json
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rewardswap.configuration import Run
from rewardswap.methods.ppo import PPO
from rewardswap.recipes import demo
from rewardswap.settings import write_run

Json = dict[str, Any]
LOOPS = 8
"""Loops of three updates each."""
STEPS = 400
"""Environment steps of a row: 50 episodes of 8 turns."""


@dataclass
class Made:
    """A run before it is written; cases change it."""

    config: Run
    metrics: list[Json]
    before: Json
    after: Json | None
    process_reward: Json | None
    turns_of_wins: tuple[int, ...] = (5, 6, 7, 8)
    warnings: list[Json] = field(default_factory=list)

    def put(
        self, value: object, *names: str, phase: str = "learn", where: slice = slice(None)
    ) -> None:
        """Give metrics another value in the rows of a phase."""
        for row in [row for row in self.metrics if row["phase"] == phase][where]:
            row.update(dict.fromkeys(names, value))

    def line(self, name: str, start: float, end: float, *phases: str) -> None:
        """Let a metric go straight from one value to another over the rows of some phases."""
        rows = [row for row in self.metrics if row["phase"] in phases]
        for place, row in enumerate(rows):
            wobble = 0.01 * start * (place % 3 - 1)
            row[name] = start + (end - start) * place / max(1, len(rows) - 1) + wobble

    def write(self, folder: Path) -> Path:
        """The run folder."""
        folder.mkdir(parents=True)
        (folder / "trajectories").mkdir()
        write_run(self.config, folder / "config.toml")
        _lines(folder / "metrics.jsonl", self.metrics)
        _lines(folder / "warnings.jsonl", self.warnings)
        documents = {"evaluation-before": self.before, "evaluation-after": self.after}
        documents |= {"prm": self.process_reward, "summary": {"agent_updates": 3 * LOOPS}}
        for name, document in documents.items():
            if document is not None:
                (folder / f"{name}.json").write_text(json.dumps(document))
        played = [_episode(turns, True) for turns in self.turns_of_wins] + [_episode(12, False)]
        for when in ("before", "after"):
            _lines(folder / f"trajectories/{when}.jsonl", played)
        return folder


def healthy() -> Made:
    """A run in which every rule has something to look at, and nothing is wrong."""
    run = replace(
        demo(),
        method=PPO(kl_coefficient=0.01),
        env=replace(demo().env, turn_limit=12),
        policy=replace(demo().policy, action_tokens=12),
    )
    rows = []
    for loop in range(LOOPS):
        for _ in range(3):
            rows.append(_row("explore", 3 * loop, loop) | _fitted())
        rows.append(_row("harvest", 3 * loop, loop))
        for number in range(3):
            learned = _row("learn", 3 * loop + number + 1, loop) | _fitted() | _replayed()
            rows.append(learned | (_stored() if number == 0 else {}))
    made = Made(run, rows, evaluation(0.3), evaluation(0.6), quality())
    made.line("success", 0.3, 0.6, "learn")
    made.line("outcome_mean", 0.3, 0.65, "explore", "harvest")
    made.line("process_reward_mean", 0.2, 0.5, "explore", "harvest")
    made.line("entropy", 0.4, 0.2, "learn")
    return made


def evaluation(success: float, tasks: int = 400, half: float = 0.047) -> Json:
    return {
        "success": success,
        "interval": [success - half, success + half],
        "panel": {"split": "held_out", "tasks": tasks, "hash": "9f3a"},
        "temperature": 1.0,
    }


def quality(total: float = 0.9, fixed: float = 0.75) -> Json:
    return {
        "auc_total": total,
        "auc_at_fixed_turns": fixed,
        "auc_length_only": 0.88,
        "held_out_trajectories": 152,
        "held_out_successes": 60,
    }


def _row(phase: str, update: int, loop: int) -> Json:
    counts = ("truncated_turns", "context_full", "token_limit", "time_limit", "worker_restarts")
    counts += ("ill_formed_actions", "unsent_actions", "step_deadlines", "replayed_steps")
    return {
        "phase": phase,
        "update": float(update),
        "loop": float(loop),
        "success": 0.5,
        "informative_groups": 0.7,
        "turns_mean": 8.0,
        "invalid_rate": 0.08,
        "rollout/environment_steps": float(STEPS),
        "rollout/generated_tokens": 4.0 * STEPS,
        "rollout/turn_limit": 20.0,
        **{f"rollout/{name}": 0.0 for name in counts},
        **dict.fromkeys(("failed_episodes", "dropped_groups", "dropped_rewards"), 0.0),
    }


def _fitted() -> Json:
    return {
        "kl_old": 1e-3,
        "entropy": 0.3,
        "clip_low_share": 0.01,
        "clip_high_share": 0.02,
        "gradient_norm": 0.3,
        "gradient_clipped": 0.1,
        "skipped_steps": 0.0,
        "critic_skipped_steps": 0.0,
        "engine_gap_max": 1e-5,
        "engine_gap_mean": 1e-7,
        "zero_advantage_groups": 0.2,
        "missing_groups": 0.0,
        "filtered_groups": 0.0,
    }


def _replayed() -> Json:
    return {
        "effective_sample_size": 0.95,
        "missing_replay": 0.0,
        "kl_reference": 0.02,
        "explained_variance": 0.4,
    }


def _stored() -> Json:
    return {
        "turn_rewards_collapsed": 0.0,
        "explorer_kl": 0.01,
        "replay_success_share": 0.6,
        "replay_size": 56.0,
        "replay_edit_distance": 0.5,
    }


def _episode(turns: int, success: bool) -> Json:
    turn = {"observation": "a room", "action": "look", "valid": True, "tokens": 3}
    return {"task": "a", "family": "heat", "index": 0, "success": success, "turns": [turn] * turns}


def _lines(path: Path, rows: list[Json]) -> None:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))


Case = Callable[[Made], None]
CASES: dict[str, Case] = {}
"""What a known cause does to the healthy run, by the cause; it and nothing else is then seen."""


def case(change: Case) -> Case:
    CASES[change.__name__] = change
    return change


@case
def undecided(made: Made) -> None:
    made.after = evaluation(0.33)


@case
def success_fell(made: Made) -> None:
    made.after = evaluation(0.1)
    made.line("success", 0.6, 0.3, "learn")


@case
def learning_rate_too_high(made: Made) -> None:
    success_fell(made)
    made.put(0.12, "kl_old", where=slice(4, 5))


@case
def overfitted(made: Made) -> None:
    made.after = evaluation(0.1)


@case
def hacking_alarm(made: Made) -> None:
    made.warnings.append({"kind": "hacking", "update": 9.0, "words": "the dense reward rises"})


@case
def dense_against_outcome(made: Made) -> None:
    made.line("outcome_mean", 0.6, 0.2, "explore", "harvest")


@case
def uninformative_groups(made: Made) -> None:
    made.put(0.2, "informative_groups")


@case
def zero_advantages(made: Made) -> None:
    made.put(0.8, "zero_advantage_groups")


@case
def unfilled_places(made: Made) -> None:
    made.put(3.0, "filtered_groups")
    made.put(2.0, "missing_groups", where=slice(5, 8))


@case
def invalid_actions(made: Made) -> None:
    made.put(0.4, "invalid_rate")


@case
def ill_formed_actions(made: Made) -> None:
    made.put(0.2 * STEPS, "rollout/ill_formed_actions")


@case
def token_cap(made: Made) -> None:
    made.put(0.1 * STEPS, "rollout/truncated_turns")


@case
def token_cap_ends(made: Made) -> None:
    made.put(5.0, "rollout/token_limit")


@case
def context_full(made: Made) -> None:
    made.put(5.0, "rollout/context_full")


@case
def out_of_time(made: Made) -> None:
    made.put(5.0, "rollout/time_limit")


@case
def turn_cap(made: Made) -> None:
    made.put(30.0, "rollout/turn_limit")
    made.turns_of_wins = (9, 10, 11, 12)


@case
def length_growth(made: Made) -> None:
    made.line("success", 0.5, 0.5, "learn")
    made.line("rollout/generated_tokens", 4.0 * STEPS, 12.0 * STEPS, "learn")


@case
def large_kl(made: Made) -> None:
    made.put(0.08, "kl_old", where=slice(4, 7))


@case
def far_from_start(made: Made) -> None:
    made.put(0.8, "kl_reference", where=slice(20, None))


@case
def collapsed_entropy(made: Made) -> None:
    made.line("entropy", 0.4, -0.1, "learn")
    made.put(0.01, "entropy", where=slice(12, None))


@case
def clipped_below(made: Made) -> None:
    made.put(0.3, "clip_low_share")


@case
def clipped_above(made: Made) -> None:
    made.put(0.3, "clip_high_share", where=slice(3, 13))


@case
def still_policy(made: Made) -> None:
    made.put(-1e-10, "kl_old")


@case
def always_clipped_gradient(made: Made) -> None:
    made.put(1.0, "gradient_clipped")
    made.put(40.0, "gradient_norm")


@case
def worse_critic(made: Made) -> None:
    made.put(-0.3, "explained_variance")


@case
def process_reward_chance(made: Made) -> None:
    made.process_reward = quality(0.55, 0.5)


@case
def process_reward_length(made: Made) -> None:
    made.process_reward = quality(0.9, 0.5)


@case
def process_reward_reversed(made: Made) -> None:
    made.process_reward = quality(0.9, 0.4)


@case
def process_reward_one_kind(made: Made) -> None:
    made.process_reward = quality() | {"held_out_successes": 0}


@case
def collapsed_turn_rewards(made: Made) -> None:
    for row in made.metrics:
        if "turn_rewards_collapsed" in row:
            row["turn_rewards_collapsed"] = 1.0


def _in_buffer(made: Made, name: str, value: float) -> None:
    made.put(value, name, where=slice(None, None, 3))


@case
def replay_without_success(made: Made) -> None:
    _in_buffer(made, "replay_success_share", 0.0)


@case
def homogeneous_replay(made: Made) -> None:
    _in_buffer(made, "replay_edit_distance", 0.2)


@case
def effective_sample_size(made: Made) -> None:
    made.put(0.3, "effective_sample_size", where=slice(4, 15))


@case
def explorer_still(made: Made) -> None:
    _in_buffer(made, "explorer_kl", -1e-9)


@case
def explorer_far(made: Made) -> None:
    _in_buffer(made, "explorer_kl", 0.4)


@case
def missing_replay(made: Made) -> None:
    made.put(4.0, "missing_replay", where=slice(2, 3))


@case
def not_finite(made: Made) -> None:
    made.put(float("nan"), "value_loss", where=slice(2, 3))


@case
def skipped_steps(made: Made) -> None:
    made.put(1.0, "skipped_steps", where=slice(2, 4))


@case
def engine_gap(made: Made) -> None:
    made.put(0.4, "engine_gap_max", where=slice(7, 8))


@case
def failed_episodes(made: Made) -> None:
    made.put(80.0, "failed_episodes")


@case
def worker_restarts(made: Made) -> None:
    made.put(2.0, "rollout/worker_restarts", where=slice(7, 8))


@case
def dropped_rewards(made: Made) -> None:
    reward = replace(made.config.reward, on_failure="drop")
    made.config = replace(made.config, reward=reward)
    made.put(3.0, "dropped_rewards")


@case
def dropped_groups(made: Made) -> None:
    made.put(2.0, "dropped_groups")
