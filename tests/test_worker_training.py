"""Training is the same to the bit with environments in this process and in worker processes."""

from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
import torch

from corridors import WORLD, wholes, workers
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.envs.faulty import Fault, FaultyWorld
from rewardswap.learners import make_learners
from rewardswap.methods.grpo import GRPO
from rewardswap.models.loading import load_language_model, model_folder
from rewardswap.policy_config import PolicyConfig
from rewardswap.rewards.rule import ProgressReward
from rewardswap.rollout.config import RolloutConfig
from rewardswap.rollout.environments import Environments, LocalEnvironments
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.rollout.workers import WorkerEnvironments
from rewardswap.stage import make_stage
from training import Record, parameters
from walking import save_walker, walking_trainer

FAULTS = (Fault("raises", share=0.02), Fault("slow", share=0.05, seconds=0.02))


def trained(folder: Path, environments: Environments) -> tuple[torch.Tensor, list[dict[str, Any]]]:
    """Parameters and metrics of two updates, without what a clock says."""
    found, record = load_language_model(str(folder)), Record()
    algorithm = GRPO().algorithm()
    config = PolicyConfig(learning_rate=0.01)
    policy = make_learners(config, found.model, None, algorithm).policy
    trainer = walking_trainer(
        found, policy=policy, algorithm=algorithm, environments=environments, report=record
    )
    for _ in range(2):
        trainer.update(trainer.collect("learn", 6, 6), ProgressReward(), "learn")
    metrics = [
        {name: value for name, value in metrics.items() if "second" not in name}
        for _, metrics, _ in record.rows
    ]
    return parameters(policy), metrics


def test_training_with_any_number_of_workers_gives_the_same_bits(tmp_path: Path) -> None:
    folder = save_walker(tmp_path / "model")
    expected, metrics = trained(folder, LocalEnvironments(FaultyWorld(WORLD, FAULTS)))
    assert len(metrics) == 2 and metrics[0]["gradient_norm"] > 0
    assert metrics[-1]["failed_episodes"] > 0
    for count in (1, 2, 8):
        with closing(workers(count, FAULTS)) as environments:
            found, said = trained(folder, environments)
        assert torch.equal(found, expected)
        assert said == metrics


def played_on_stage(rollout: RolloutConfig) -> Played:
    """Episodes of both splits: the second is listed behind the making of the workers."""
    stage = make_stage(
        Alfworld(generated_games=20, evaluation_tasks=5, turn_limit=4),
        str(model_folder("base-agent")),
        device="cpu",
        temperature=1.0,
        action_tokens=None,
        rollout=rollout,
    )
    with closing(stage):
        assert isinstance(stage.environments, WorkerEnvironments) == (rollout.workers > 0)
        tasks = [*stage.panel.tasks, *stage.world.tasks("train")[:5]]
        played = stage.play([EpisodeRequest(task, 0) for task in tasks], 0, 0, None)
        if stage.environments is not None:
            assert len(stage.environments.processes) == rollout.workers
    assert stage.environments is None or not stage.environments.processes
    return played


def test_a_stage_plays_in_as_many_workers_as_its_settings_say() -> None:
    expected = played_on_stage(RolloutConfig())
    found = played_on_stage(RolloutConfig(workers=2, step_seconds=60.0))
    assert wholes(found) == wholes(expected)
    assert found.counters == expected.counters
    assert not found.failures


def test_settings_of_workers_reach_them(monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = {"step_seconds": 7.0, "restart_seconds": 8.0, "restarts": 9}
    seen: dict[str, Any] = {}
    monkeypatch.setattr(
        "rewardswap.stage.WorkerEnvironments", lambda *_, **settings: seen.update(settings)
    )
    make_stage(
        Alfworld(generated_games=4, evaluation_tasks=2),
        str(model_folder("base-agent")),
        device="cpu",
        temperature=1.0,
        action_tokens=None,
        rollout=RolloutConfig(workers=1, **chosen),  # type: ignore[arg-type]
    )
    assert {name: seen[name] for name in chosen} == chosen
