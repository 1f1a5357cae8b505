"""What a run came to, in the numbers of `summary.json`."""

from typing import Any

from rewardswap.configuration import Run
from rewardswap.evaluation import Evaluation
from rewardswap.methods import method_name
from rewardswap.trainer import Trainer


def summary_of(
    run: Run, trainer: Trainer, before: Evaluation, after: Evaluation, seconds: float
) -> dict[str, Any]:
    """Success before and after, and what it cost in all."""
    counters = trainer.counters
    return {
        "recipe": run.recipe,
        "method": method_name(run.method),
        "loop": run.loop,
        "seed": run.seed,
        "tasks": before.total.tasks,
        "panel_hash": before.panel.hash,
        "success_before": before.total.success,
        "success_before_interval": list(before.total.interval),
        "task_score_before": before.total.task_score,
        "success_after": after.total.success,
        "success_after_interval": list(after.total.interval),
        "task_score_after": after.total.task_score,
        "seconds": seconds,
        "agent_updates": trainer.agent_updates,
        "all_updates": trainer.counters["all_updates"],
        "environment_steps": counters["environment_steps"],
        "generated_tokens": counters["generated_tokens"],
        "trained_tokens": counters["trained_tokens"],
        "failed_episodes": counters["failed_episodes"],
        "dropped_rewards": counters["dropped_rewards"],
    }
