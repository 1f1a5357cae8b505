"""RSPO with an adapter through trainer, engine and world: the base stays, the branch comes back."""

from collections.abc import Sequence
from pathlib import Path

import pytest
import torch
from torch import Tensor

from rewardswap.learners import make_learners
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.grpo import GRPO
from rewardswap.models.adapter import add_adapter
from rewardswap.models.batching import collate
from rewardswap.models.learner import Snapshot
from rewardswap.models.loading import load_language_model
from rewardswap.policy_config import PolicyConfig
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.trainer import Agent, Trainer
from rewardswap.types import Group
from training import Record, run_rspo, same_snapshot
from walking import save_walker, walking_trainer

pytest.importorskip("peft", reason="the extra `lora` is not installed")


def walker(folder: Path, record: Record | None = None) -> Trainer:
    found = load_language_model(str(save_walker(folder)))
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        add_adapter(found.model, 4, 8.0, ())
    algorithm = GRPO(kl_coefficient=0.01).algorithm()
    config = PolicyConfig(learning_rate=0.02, lora_rank=4)
    learners = make_learners(config, found.model, None, algorithm)
    return walking_trainer(
        found,
        policy=learners.policy,
        reference=learners.reference,
        algorithm=algorithm,
        report=record or Record(),
    )


def base_of(trainer: Trainer) -> dict[str, Tensor]:
    named = trainer.policy.model.named_parameters()
    return {name: p.detach().clone() for name, p in named if ".lora_" not in name}


def ratio_gap(trainer: Trainer, groups: Sequence[Group]) -> float:
    """How far the ratio of what was just sampled is from 1, at the worst token."""
    batch = collate([group.with_column("sampled", group.sampled_logprob) for group in groups])
    gap = trainer.policy.score(batch).logprob - batch.column("sampled")
    return float((gap[batch.action_mask].exp() - 1).abs().max())


def test_two_loops_leave_the_base_and_bring_every_branch_back(tmp_path: Path) -> None:
    record = Record()
    trainer = walker(tmp_path, record)
    base, branches, back = base_of(trainer), [], []
    branch, restore = trainer.branch, trainer.restore

    def watched_branch() -> Agent:
        branches.append(trainer.policy.snapshot())
        return branch()

    def watched_restore(agent: Agent) -> None:
        moved = trainer.policy.snapshot()
        assert not same_snapshot(moved, branches[-1])
        restore(agent)
        back.append(trainer.policy.snapshot())

    trainer.branch, trainer.restore = watched_branch, watched_restore  # type: ignore[method-assign]
    run_rspo(trainer, RewardSwap(2, 2, 1 / 4), Batch(4, 8), updates=4)
    phases = [phase for phase, *_ in record.rows]
    assert phases == ["explore", "explore", "harvest", "learn", "learn"] * 2
    assert len(branches) == 2
    for before, after in zip(branches, back, strict=True):
        assert same_snapshot(before, after)
    assert base.keys() == base_of(trainer).keys()
    assert all(torch.equal(value, base[name]) for name, value in base_of(trainer).items())
    kls = record.metric("kl_reference", "explore")
    assert kls[0] == 0 and kls[1] > 0
    assert max(record.metric("engine_gap_max")) < 1e-5


def test_what_the_explorer_samples_has_ratio_one_and_so_has_the_agent_again(tmp_path: Path) -> None:
    trainer = walker(tmp_path)
    trainer.update(trainer.collect("learn", 4, 8), ProgressReward(), "learn")
    agent = trainer.branch()
    explored = trainer.collect("explore", 4, 8)
    trainer.update(explored, ProgressReward(), "explore")
    harvested = trainer.collect("harvest", 4, 8).groups
    assert ratio_gap(trainer, harvested) < 1e-5
    trainer.restore(agent)
    assert ratio_gap(trainer, harvested) > 1e-3
    assert ratio_gap(trainer, trainer.collect("learn", 4, 8).groups) < 1e-5


def test_a_branch_is_a_share_of_the_models_memory(tmp_path: Path) -> None:
    trainer = walker(tmp_path)
    trainer.update(trainer.collect("learn", 4, 8), OutcomeReward(), "learn")
    kept: Snapshot = trainer.branch().policy
    sizes = {name: p.numel() for name, p in trainer.policy.model.named_parameters()}
    adapter = sum(size for name, size in sizes.items() if ".lora_" in name)
    assert sum(value.numel() for value in kept.model.values()) == adapter
    moments = [t for state in kept.optimizer["state"].values() for t in state.values()]
    # two moments of every weight and a count of steps for each of 14 layers' two matrices
    assert sum(t.numel() for t in moments) == 2 * adapter + 28
