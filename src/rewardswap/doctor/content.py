"""The data, the model, and one turn of play with them."""

import os
from collections.abc import Iterator
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import torch

from rewardswap.doctor.check import Check
from rewardswap.env_config import environment_name, model_of
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.models.batching import collate
from rewardswap.models.policy import Policy
from rewardswap.rollout.episodes import EpisodeRequest
from rewardswap.stage import Stage, make_stage
from rewardswap.types import Group

GAMES = "ALFWORLD_DATA"
TRIED = 2
"""Tasks of which one turn is played."""
LARGEST_GAP = 1e-3
"""Nats that sampler and trainer may differ at a token in float32 (ours: ten times what is healthy
in training, see docs/metrics.md)."""


def check_official_games() -> Check:
    """The folder of ALFWorld's official games that the environment variable names."""
    folder = os.environ.get(GAMES)
    fetch = "pip install alfworld && alfworld-download"
    if folder is None:
        found = f"${GAMES} is not set; official games need it"
        return Check("alfworld", "optional", found, fetch, needed=False)
    games = Path(folder) / "json_2.1.1"
    if not games.is_dir():
        found = f"${GAMES} is {folder}, which has no folder json_2.1.1"
        return Check("alfworld", "wrong", found, fetch, needed=False)
    return Check("alfworld", "ok", f"--env.games {games}", needed=False)


def check_play(env: EnvironmentConfig, model: str | None, device: str) -> Iterator[Check]:
    """The environment's tasks; then the model, and what it samples against what is trained."""
    name = environment_name(env)
    try:
        tasks = env.world("full").tasks(env.panel_split)
    except ValueError as error:
        yield Check("data", "wrong", f"{name}: {error}", f"see `rewardswap eval --env {name} -h`")
        return
    yield Check("data", "ok", f"{name}: {len(tasks)} tasks in split {env.panel_split}")
    tried = replace(env, evaluation_tasks=min(TRIED, len(tasks)), turn_limit=1)
    try:
        stage = make_stage(tried, model, device=device, temperature=1.0, action_tokens=None)
    except ValueError as error:
        yield Check("model", "wrong", str(error), "give another --model")
        return
    with closing(stage):
        weights = stage.language_model.model.num_parameters()
        yield Check("model", "ok", f"{model_of(env, model)}: {weights:,} weights, it can chat")
        yield check_turn(stage)


def check_turn(stage: Stage) -> Check:
    """One turn of some tasks, and the log-probs of its tokens by the sampler and the trainer."""
    requests = [EpisodeRequest(task, 0) for task in stage.panel.tasks]
    played = stage.play(requests, seed=0, version=0, temperature=None)
    for failure in played.failures:
        advice = "the environment raises; look at the cause"
        return Check("turn", "wrong", f"an episode broke: {failure.cause}", advice)
    groups = [Group(trajectory.task, (trajectory,)) for trajectory in played.trajectories]
    groups = [group.with_column("sampled", group.sampled_logprob) for group in groups]
    batch = collate(groups)
    policy = Policy(
        stage.language_model.model,
        make_optimizer=lambda model: torch.optim.SGD(model.parameters()),
        temperature=stage.sampling.temperature,
    )
    gaps = (policy.score(batch).logprob - batch.column("sampled")).abs()[batch.action_mask]
    gap = float(gaps.max())
    found = f"{len(gaps)} tokens; sampler and trainer differ by {gap:.1e} nats"
    if gap <= LARGEST_GAP:
        return Check("turn", "ok", found)
    advice = "the sampler reads other tokens or weights than the trainer: docs/engines.md"
    return Check("turn", "wrong", found, advice)
