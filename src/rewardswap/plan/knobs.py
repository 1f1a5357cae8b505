"""Settings that make a run smaller, in the order in which they are worth trying (ours)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

from rewardswap.configuration import Run
from rewardswap.loops.settings import Batch
from rewardswap.plan.learned import Models
from rewardswap.plan.shapes import Blueprint
from rewardswap.plan.sizing import Memory, Sizing

LORA_RANK = 16
"""Rank that the knob tries."""


@dataclass(frozen=True)
class Knob:
    """One changed setting and what it does to memory."""

    change: str
    """The setting as the command line takes it."""
    memory: Memory | None
    """Memory with it; none where the run refuses it."""
    refusal: str = ""


def knobs(sizing: Sizing, blueprint: Blueprint) -> list[Knob]:
    """Every knob that the run has not turned, each alone."""
    found: list[Knob] = []
    for change, make in (*_of_policy(sizing, blueprint), *_of_episodes(sizing)):
        try:
            found.append(Knob(change, make().memory()))
        except ValueError as error:
            found.append(Knob(change, None, str(error)))
    return found


Change = tuple[str, Callable[[], Sizing]]


def _of_policy(sizing: Sizing, blueprint: Blueprint) -> Iterator[Change]:
    run, policy = sizing.run, sizing.run.policy
    tokens = policy.tokens_per_microbatch
    wanted: dict[str, Any] = {
        "gradient_checkpointing": True,
        "tokens_per_microbatch": min(tokens, max(tokens // 4, sizing.context)),
        "precision": "bfloat16",
        "optimizer": "adamw_8bit",
        "lora_rank": LORA_RANK if policy.lora_rank is None else policy.lora_rank,
    }

    def changed(name: str, value: Any) -> Sizing:
        settings: dict[str, Any] = {name: value}
        smaller = replace(run, policy=replace(policy, **settings))
        return replace(sizing, run=smaller, models=Models.of(smaller, blueprint))

    for name, value in wanted.items():
        if value != getattr(policy, name):
            shown = str(value).lower() if isinstance(value, bool) else value
            option = f"--policy.{name.replace('_', '-')} {shown}"
            yield option, lambda name=name, value=value: changed(name, value)  # type: ignore[misc]


def _of_episodes(sizing: Sizing) -> Iterator[Change]:
    """Fewer live episodes, shorter ones, smaller batches."""
    run, slots = sizing.run, max(sizing.live.values()) // 2
    if slots:
        fewer = replace(run, rollout=replace(run.rollout, slots=slots))
        yield f"--rollout.slots {slots}", lambda: replace(sizing, run=fewer)
    turns = run.env.turns // 2
    if turns:
        shorter = sizing.lengths.cut(turns)
        yield f"--env.turn-limit {turns}", lambda: replace(sizing, lengths=shorter)
    smaller = _smaller_batch(run)
    if smaller is not None:
        option = (
            f"--batch.tasks {smaller.batch.tasks} --batch.group-size {smaller.batch.group_size}"
        )
        yield option, lambda: replace(sizing, run=smaller)


def _smaller_batch(run: Run) -> Run | None:
    """The run with half the tasks, or with half the groups where alpha refuses that."""
    tasks, size = run.batch.tasks, run.batch.group_size
    for batch in ((tasks // 2, size), (tasks, size // 2)):
        try:
            return replace(run, batch=Batch(*batch))
        except ValueError:
            continue
    return None
