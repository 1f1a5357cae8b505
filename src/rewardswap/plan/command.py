"""The command `rewardswap plan`: what a run needs, before anything of it is loaded."""

import os
from dataclasses import dataclass, fields, replace
from pathlib import Path

import torch
from rich.console import Console

from rewardswap.configuration import Run
from rewardswap.env_config import environment_name, model_of
from rewardswap.env_config.own import Own
from rewardswap.methods import method_name
from rewardswap.options import UsageError, checked
from rewardswap.plan.knobs import knobs
from rewardswap.plan.learned import Models
from rewardswap.plan.run_lengths import RunLengths, measure_lengths
from rewardswap.plan.settings import PlanSettings
from rewardswap.plan.shapes import Blueprint, read_blueprint, shape_of
from rewardswap.plan.sizing import Memory, Sizing
from rewardswap.plan.tables import (
    GIB,
    facts_table,
    groups_table,
    host_table,
    knob_table,
    memory_table,
    size_of,
    work_table,
)


@dataclass(frozen=True)
class Plan:
    """A run's sizes, and the limits that they are held against, in bytes; none: unknown."""

    sizing: Sizing
    blueprint: Blueprint
    found: RunLengths
    memory: Memory
    limit: float | None
    host_limit: float | None

    @property
    def too_large(self) -> bool:
        """Whether something does not fit."""
        device = self.limit is not None and self.memory.peak > self.limit
        host = self.host_limit is not None and self.memory.host_total > self.host_limit
        return device or host


def plan_run(run: Run, settings: PlanSettings, console: Console) -> bool:
    """Print a run's plan; whether its exit code is 0. Raises UsageError for what is wrong."""
    plan = checked(lambda: make_plan(run, settings))
    if settings.check and plan.limit is None:
        raise UsageError(
            f"there is nothing to check {run.policy.device} against; give --device-memory"
        )
    show(plan, settings, console)
    return not (settings.check and plan.too_large)


def make_plan(run: Run, settings: PlanSettings) -> Plan:
    """Size a run; raises ValueError as its world, its model's folder and its adapter do."""
    blueprint = read_blueprint(model_of(run.env, run.policy.model))
    found = measure_lengths(run, blueprint)
    lengths = found.lengths
    if settings.tokens_per_action is not None:
        lengths = lengths.with_actions(settings.tokens_per_action)
    on_cpu = run.policy.device == "cpu"
    host = _bytes(settings.host_memory) or _memory_of_this_machine()
    device = _bytes(settings.device_memory)
    if device is None:
        device = host if on_cpu else _memory_of_device(run.policy.device)
    sizing = Sizing(
        run=run,
        shape=shape_of(blueprint.build()),
        models=Models.of(run, blueprint),
        lengths=lengths,
        evaluated=found.evaluated,
        action_cap=found.action_cap,
        devices=settings.devices,
        device_memory=device,
    )
    return Plan(sizing, blueprint, found, sizing.memory(), device, host)


def show(plan: Plan, settings: PlanSettings, console: Console) -> None:
    """Print the plan."""
    sizing = plan.sizing
    run = sizing.run
    console.print(f"[bold]{run.recipe}[/]: nothing was loaded, nothing is run", highlight=False)
    console.print(facts_table(_facts(plan, settings)), highlight=False)
    shared = f" on each of {settings.devices} devices" if settings.devices > 1 else ""
    title = f"memory of {run.policy.device}{shared}, at most"
    console.print(memory_table(plan.memory, title, plan.limit), highlight=False)
    if plan.memory.host:
        console.print(host_table(plan.memory.host, plan.host_limit), highlight=False)
    turned = knobs(sizing, plan.blueprint)
    console.print(knob_table(turned, plan.memory, plan.limit), highlight=False)
    mean = sizing
    if settings.turns is not None:
        mean = replace(sizing, lengths=sizing.lengths.cut(settings.turns))
    console.print(work_table(mean), highlight=False)
    batch = run.batch
    console.print(groups_table(batch.tasks, batch.group_size, settings.success), highlight=False)
    for line in _verdicts(plan):
        console.print(line, highlight=False)


def _facts(plan: Plan, settings: PlanSettings) -> dict[str, str]:
    """What the plan rests on, measured or assumed."""
    sizing, found = plan.sizing, plan.found
    run, shape, lengths = sizing.run, sizing.shape, sizing.lengths
    policy = run.policy
    learns = "all weights" if policy.lora_rank is None else f"an adapter of rank {policy.lora_rank}"
    head = "tied to the embedding" if plan.blueprint.tied else "its own"
    live = ", ".join(f"{count} in {what}" for what, count in sizing.live.items())
    said = f"{lengths.action:.0f} an action"
    if settings.tokens_per_action is not None:
        said += " (given)"
    elif found.thinking:
        said += f" (of which {found.thinking} are assumed to be thinking)"
    turns = f"every episode runs to its cap of {lengths.turns:.0f} turns"
    if settings.turns is not None:
        turns += f"; {settings.turns} (given) for the work"
    return {
        "model": f"{plan.blueprint.name} ({plan.blueprint.source}): {shape.parameters:,} weights, "
        f"{shape.layers} layers, head {head}; learns {learns} in {policy.precision}",
        "method": f"{method_name(run.method)} in loop {run.loop}",
        "world": f"{environment_name(run.env)}, {_origin(run)}, {found.tasks} tasks in split "
        f"{run.env.train_split!r}, prompt {run.env.prompt}",
        "turns": turns,
        "tokens": f"{lengths.opening:.0f} in the first prompt, {lengths.following:.0f} in each "
        f"later one, {said}; rows an episode: {lengths.rows:.0f}, the longest of "
        f"{lengths.longest_row}",
        "lengths": f"{found.source}, in {len(lengths.episodes)} episodes of random admissible "
        "actions",
        "cache": f"{size_of(sizing.cache_per_token)} a token, room for {sizing.room} tokens "
        f"(actions of {found.action_cap} fit); live at once: {live}",
    }


def _origin(run: Run) -> str:
    """Where the world's tasks come from: what makes it, or the folder that a setting names."""
    if isinstance(run.env, Own):
        return f"made by {run.env.make}"
    for name in (setting.name for setting in fields(run.env)):
        folder = getattr(run.env, name)
        if isinstance(folder, Path):
            return f"{name} {folder}"
    return "generated"


def _verdicts(plan: Plan) -> list[str]:
    """What does not fit, in sentences."""
    memory, sizing = plan.memory, plan.sizing
    lines: list[str] = []
    if plan.limit is None:
        lines.append(f"give --device-memory to hear what fits on {sizing.run.policy.device}")
    if plan.too_large:
        lines.append(
            "[bold red]it does not fit[/]: take a setting above whose row says fits, or several"
        )
    elif plan.limit is not None:
        lines.append(f"[bold]it fits[/]: {size_of(memory.peak)} of {size_of(plan.limit)}")
    if sizing.lengths.longest_row > sizing.shape.positions:
        lines.append(
            f"an episode of {sizing.lengths.longest_row} tokens is longer than the model's "
            f"{sizing.shape.positions} positions: it ends with context_full"
        )
    return lines


def _bytes(size: float | None) -> float | None:
    return None if size is None else size * GIB


def _memory_of_this_machine() -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))


def _memory_of_device(device: str) -> float | None:
    """Bytes of a CUDA device, none where it is not there."""
    if not device.startswith("cuda") or not torch.cuda.is_available():
        return None
    return float(torch.cuda.get_device_properties(device).total_memory)
