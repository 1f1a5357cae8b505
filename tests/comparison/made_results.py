"""Results made up, with numbers that can be checked by hand."""

from collections.abc import Mapping, Sequence
from typing import Any

from rewardswap.comparison.results import FORMAT

Json = dict[str, Any]


def made(
    arm: str,
    seed: int,
    tasks: Mapping[str, str] | None = None,
    *,
    curve: Sequence[float] = (0.1, 0.3, 0.5),
    steps: int = 100,
    dense: Sequence[float] = (),
    **changed: Any,
) -> Json:
    """A result whose success is that of its task bits; its curve has a point every `steps`."""
    bits = tasks or {"cool": "10", "heat": "1100"}
    families = {
        name: {"tasks": len(won), "success": won.count("1") / len(won)}
        for name, won in bits.items()
    }
    everything = "".join(bits.values())
    measured = {"task_score": 0.5, "mean_turns": 8.0, "invalid_action_rate": 0.1}
    success = everything.count("1") / len(everything)
    after = {"success": success, **measured, "families": families}
    total = {"environment_steps": steps * len(curve), "generated_tokens": 4 * steps * len(curve)}
    total |= {"trained_tokens": 300, "seconds": 60.0}
    places = range(1, 1 + len(curve))
    learn: Json = {
        "update": [*places],
        "environment_steps": [steps * place for place in places],
        "generated_tokens": [4 * steps * place for place in places],
        "success": [*curve],
    }
    explore = {**learn, "dense": [*dense]} if dense else {}
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
        "settings_changed": {},
        "panel": {"split": "held_out", "hash": "9f3a", "tasks": len(everything)},
        "temperature": 1.0,
        "budget": {"amount": 3, "unit": "agent_updates"},
        "counters": {"agent_updates": 3, "all_updates": 6, **total, "failed_episodes": 0},
        "phases": {"learn": {**total, "updates": 3}},
        "before": {**after, "success": 0.25},
        "after": after,
        "tasks": dict(bits),
        "process_reward": None,
        "warnings": {},
        "curve": {"learn": learn, "explore": explore, "loop": {}},
        "mixed": [],
        **changed,
    }
