"""The command `rewardswap prm collect`."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from typing import Any

import torch
from rich.console import Console
from rich.progress import Progress

from rewardswap.env_options import ENVIRONMENT, elsewhere, idle_in
from rewardswap.evaluation import Panel, assert_disjoint
from rewardswap.options import UsageError, checked, parse, refuse_named, with_choices
from rewardswap.prm.collect_settings import Collecting
from rewardswap.prm.collection import Share, ShareStream
from rewardswap.prm.manifest import (
    about_policy,
    about_world,
    choices,
    counts,
    refuse_other_world,
    share_counts,
)
from rewardswap.prm.store import Collection, write_collection
from rewardswap.run_folder import commit
from rewardswap.stage import Stage, make_stage
from rewardswap.task_stream import derived_seed
from rewardswap.types import Task
from rewardswap.whole import refuse_taken


def collect(words: list[str], console: Console) -> None:
    """Play rollouts with one or several policies and store them."""
    start, rest = with_choices(Collecting(), words, ENVIRONMENT)
    refuse_named({"in a collection, which plays --split": ["env.train-split"]}, rest)
    config = parse(Collecting, start, rest, "rewardswap prm collect", elsewhere())
    refuse_named(idle_in(config.env), rest)
    output = config.output
    if output is None:
        raise UsageError("--output is missing; give the folder that is made")
    checked(lambda: refuse_taken(output))
    torch.set_num_threads(config.threads)
    with Progress(console=console, transient=True) as progress:
        collection = checked(lambda: _Collector(config, progress).collection())
    checked(lambda: write_collection(output, collection))
    for line in _summary(collection.manifest, config):
        console.print(line, highlight=False, markup=False)
    console.print(str(output), highlight=False, markup=False, soft_wrap=True)


class _Collector:
    """All shares, policy after policy: one model is loaded at a time."""

    def __init__(self, config: Collecting, progress: Progress) -> None:
        self.config, self.progress = config, progress
        self.bar = progress.add_task("policies x temperatures", total=config.share_count)
        self.world: dict[str, Any] = {}
        self.policies: list[dict[str, str]] = []
        self.shares: list[Share] = []
        self.rows: list[dict[str, Any]] = []
        self.stream: ShareStream | None = None

    def collection(self) -> Collection:
        """What is kept, and what is said of it."""
        for policy in self.config.policies or (None,):
            with closing(_stage(self.config, policy)) as stage:
                self._play(stage)
        kept = [(t, number) for number, share in enumerate(self.shares) for t in share.trajectories]
        manifest = {
            "policies": self.policies,
            **self.world,
            **choices(self.config),
            "counts": counts(self.shares),
            "shares": self.rows,
            "commit": commit(),
        }
        return Collection(tuple(t for t, _ in kept), tuple(number for _, number in kept), manifest)

    def _play(self, stage: Stage) -> None:
        config = self.config
        tasks = playable_tasks(config, stage)
        world = about_world(stage, config.split, tasks)
        self.policies.append(about_policy(stage))
        self.world = self.world or world
        refuse_other_world(self.world, world, self.policies[0]["model"], stage.model)
        if self.stream is None:
            seed = derived_seed(config.seed, "reward")
            self.stream = ShareStream(tasks, seed, config.groups, config.group_size)
        for temperature in config.temperatures:
            share = self.stream.next(stage.play, temperature, config.balancing)
            self.shares.append(share)
            self.rows.append(share_counts(share, len(self.policies) - 1, temperature))
            self._say(stage.model, self.rows[-1])

    def _say(self, model: str, row: Mapping[str, Any]) -> None:
        line = (
            f"{model} at temperature {row['temperature']:g}: {row['trajectories']} rollouts kept, "
            f"{row['successes']} successes"
        )
        self.progress.console.print(line, highlight=False, markup=False)
        self.progress.advance(self.bar)


def _stage(config: Collecting, policy: str | None) -> Stage:
    return make_stage(
        config.env,
        policy,
        device=config.device,
        temperature=1.0,
        action_tokens=config.action_tokens,
        rollout=config.rollout,
    )


def playable_tasks(config: Collecting, stage: Stage) -> Sequence[Task]:
    """The tasks that may be played; ValueError where one of them is evaluated."""
    panel = stage.panel
    if config.split == panel.split:
        raise ValueError(
            f"split {config.split!r} is the one that is evaluated; collect on another --split"
        )
    tasks = stage.world.tasks(config.split)
    whole = Panel(panel.split, tuple(stage.world.tasks(panel.split)), origin=panel.origin)
    assert_disjoint(tasks, whole, may_share_origins=config.env.shares_origins)
    return tasks


def _summary(manifest: Mapping[str, Any], config: Collecting) -> list[str]:
    """What is kept and what is not, and where the balance was not reached."""
    found, left_out = manifest["counts"], manifest["counts"]["left_out"]
    said = [
        f"{found['trajectories']} rollouts of {found['tasks']} tasks kept, {found['successes']} "
        f"successes; {left_out['trajectories']} played and left out ({left_out['successes']} "
        f"successes), {found['failed_episodes']} episodes failed"
    ]
    balance = config.balancing
    for row in manifest["shares"]:
        rarer = min(row["successes"], row["trajectories"] - row["successes"])
        if balance and rarer < balance.least_share * row["trajectories"]:
            said.append(
                f"warning: {rarer} of {row['trajectories']} are of the rarer kind at temperature "
                f"{row['temperature']:g}: its budget is spent; raise most_played or change "
                "temperatures"
            )
    return said
