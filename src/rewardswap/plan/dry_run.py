"""A dry run: everything of a training run once, with random weights and one turn an episode."""

import json
import resource
import sys
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch
from rich.console import Console
from rich.table import Table
from transformers import AutoConfig, AutoModelForCausalLM, GenerationConfig

from rewardswap.configuration import Run
from rewardswap.models.loading import TRUSTED, load_language_model
from rewardswap.plan.settings import DryRunSettings
from rewardswap.plan.speech import spoken
from rewardswap.plan.tables import size_of
from rewardswap.plan.trial import TrialActions, TrialWorld
from rewardswap.rollout.config import RolloutConfig
from rewardswap.rollout.scripted import ScriptedEngine
from rewardswap.screen import Screen
from rewardswap.session import Training
from rewardswap.trackers.config import TrackConfig

REWARD_TASKS = 4
"""Tasks at each temperature that a process reward is fitted on in a dry run."""


@dataclass(frozen=True)
class DryRun:
    """What a dry run did."""

    layers: int
    parameters: int
    steps: tuple[Mapping[str, Any], ...]
    """Metrics of every update and harvest, in order."""
    process_reward: bool
    """Whether one was fitted."""
    changed: int
    """Actions that the tokenizer did not bring back as they were."""
    peak: int
    """Most memory of this process so far, in bytes; on a CUDA device that of the device."""

    def table(self) -> Table:
        """A column per update or harvest."""
        table = Table(title="what was done", title_justify="left")
        table.add_column("")
        for step in self.steps:
            table.add_column(step["phase"], justify="right")
        for name, (metric, form) in ROWS.items():
            cells = [_shown(step, metric, form) for step in self._apart()]
            if set(cells) != {"-"}:
                table.add_row(name, *cells)
        return table

    def _apart(self) -> list[dict[str, Any]]:
        """The steps with their own share of what a run adds up."""
        before = dict.fromkeys(SUMS, 0.0)
        apart: list[dict[str, Any]] = []
        for step in self.steps:
            apart.append({**step, **{name: step[name] - before[name] for name in SUMS}})
            before = {name: step[name] for name in SUMS}
        return apart


SUMS = ("generated_tokens", "trained_tokens")
"""Metrics that a run adds up."""
ROWS = {
    "turns": ("rollout/environment_steps", ",.0f"),
    "invalid actions": ("invalid_rate", ".0%"),
    "tokens said": ("generated_tokens", ",.0f"),
    "rows": ("rows", ",.0f"),
    "rows without gradient": ("rows_without_gradient", ",.0f"),
    "action tokens trained": ("trained_tokens", ",.0f"),
    "gradient norm": ("gradient_norm", ".3g"),
    "critic's gradient norm": ("critic_gradient_norm", ".3g"),
    "seconds of playing": ("rollout_seconds", ".1f"),
    "seconds of the update": ("update_seconds", ".1f"),
}
"""Metric and format of each row."""


def dry_run(run: Run, settings: DryRunSettings) -> DryRun:
    """Build a run, play one turn of every episode of a loop, do one update of every kind.

    Weights are random, of the run's own shape but for `dry_run_layers`; the first ones of each kind
    are drawn by the run's seed. The sampled log-probs are the script's, outcomes are made up.
    Nothing is left. Raises ValueError as a run does, and RunStoppedError as training does.
    """
    read = partial(random_weights, layers=settings.dry_run_layers, seed=run.seed)
    with TemporaryDirectory() as folder:
        training = Training(
            _short(run, Path(folder) / "run"), partial(load_language_model, read=read)
        )
        actions = _stage_trial(training)
        with closing(training.folder):
            training.rehearse(Screen(Console(quiet=True)))
        path = training.folder.path
        lines = (path / "metrics.jsonl").read_text(encoding="utf-8").splitlines()
        fitted = (path / "prm.json").is_file()
    model = training.stage.language_model.model
    return DryRun(
        layers=model.config.get_text_config().num_hidden_layers,
        parameters=sum(weight.numel() for weight in model.parameters()),
        steps=tuple(json.loads(line) for line in lines),
        process_reward=fitted,
        changed=actions.changed,
        peak=peak_memory(run.policy.device),
    )


def random_weights(folder: Path, *, layers: int | None, seed: int) -> Any:
    """A model of a folder's shape, float32, its weights drawn; its file of weights is not read.

    Raises ValueError for more layers than the folder's.
    """
    config = AutoConfig.from_pretrained(folder, **TRUSTED)
    inner = config.get_text_config()
    if layers is not None:
        if layers > inner.num_hidden_layers:
            raise ValueError(f"dry_run_layers is {layers}, the model has {inner.num_hidden_layers}")
        inner.num_hidden_layers = layers
        if getattr(inner, "layer_types", None):
            inner.layer_types = inner.layer_types[:layers]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        model = AutoModelForCausalLM.from_config(config, dtype=torch.float32)
    if (folder / "generation_config.json").is_file():
        model.generation_config = GenerationConfig.from_pretrained(folder, local_files_only=True)
    return model


def peak_memory(device: str) -> int:
    """Most bytes that were in use so far: of a CUDA device, else of this process."""
    if device.startswith("cuda"):
        return int(torch.cuda.max_memory_allocated(device))
    unit = 1 if sys.platform == "darwin" else 1024
    return unit * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def show(done: DryRun, settings: DryRunSettings, console: Console) -> None:
    """Print what was done, and what a reader must know of it."""
    shape = f"{done.parameters:,} random weights in {done.layers} layers"
    if settings.dry_run_layers is not None:
        shape += " (--dry-run-layers: fewer than the model has)"
    console.print(f"[bold]dry run[/]: {shape}; nothing was saved", highlight=False)
    console.print(done.table(), highlight=False)
    if done.process_reward:
        console.print("a process reward model was fitted on made-up outcomes", highlight=False)
    if done.changed:
        console.print(
            f"[yellow]warning:[/] {done.changed} actions came back from the tokenizer as another "
            "text: it does not know all words of this world",
            highlight=False,
        )
    console.print(
        f"peak memory {size_of(done.peak)}, of one turn an episode: `rewardswap plan` says how "
        "much whole episodes need",
        highlight=False,
    )


def _short(run: Run, output: Path) -> Run:
    """The run with one update of each kind, and as many more as its critic warms up.

    Its engine is not built: what it would say, the script says.
    """
    rollout = run.rollout
    reward = run.reward
    each = reward.group_size * len(reward.temperatures)
    critic = run.method.algorithm().critic
    swap = replace(
        run.swap,
        explore_steps=min(1, run.swap.explore_steps),
        learn_steps=1 + rollout.one_step_off,  # one is refused there; the budget is one update
    )
    return replace(
        run,
        output=output,
        budget=1 + (0 if critic is None else critic.warmup_updates),
        budget_unit="agent_updates",
        rollout=RolloutConfig(
            slots=rollout.slots,
            cut_actions=rollout.cut_actions,
            episode_seconds=rollout.episode_seconds,
            failure_limit=rollout.failure_limit,
            one_step_off=rollout.one_step_off,
        ),
        swap=swap,
        reward=replace(reward, trajectories=REWARD_TASKS * each),
        track=TrackConfig(),
    )


def _stage_trial(training: Training) -> TrialActions:
    """Put the one-turn world and the scripted engine in place of the run's own."""
    stage = training.stage
    world, language_model = TrialWorld(stage.world), stage.language_model
    actions = TrialActions(
        world,
        stage.context,
        language_model.tokenizer,
        language_model.end_token_ids[0],
        partial(spoken, env=training.run.env),
    )
    ends, limit = language_model.end_token_ids, stage.engine.context_limit
    engine = ScriptedEngine(actions, ends, context_limit=limit)
    training.stage = replace(stage, world=world, engine=engine)
    return actions


def _shown(cells: Mapping[str, Any], name: str, form: str) -> str:
    return format(cells[name], form) if name in cells else "-"
