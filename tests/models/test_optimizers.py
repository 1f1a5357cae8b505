"""AdamW and its 8-bit version: sizes, branch and restore, and what is said without the extra."""

import sys
from typing import Any

import pytest
import torch
from torch import nn

from rewardswap.models.batching import Batch
from rewardswap.models.learner import Learner
from rewardswap.models.optimizers import make_adamw
from training import WholeLearner, same_snapshot

SETTINGS: Any = {"learning_rate": 0.01, "betas": (0.9, 0.95), "weight_decay": 0.1}
INPUTS = torch.randn(4, 128, generator=torch.Generator().manual_seed(0))


def learner(name: Any) -> Learner:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = nn.Linear(128, 64)
    return WholeLearner(
        model, make_optimizer=lambda m: make_adamw(name, m.parameters(), **SETTINGS)
    )


def step(trained: Learner) -> None:
    empty = torch.zeros(1, 1)
    batch = Batch(
        tokens=empty.long(),
        lengths=torch.ones(1, dtype=torch.int64),
        action_mask=empty.bool(),
        turn=empty.long(),
        trajectory=torch.zeros(1, dtype=torch.int64),
        group=torch.zeros(1, dtype=torch.int64),
        replayed=torch.zeros(1, dtype=torch.bool),
    )
    trained._step(batch, lambda _: (trained.model(INPUTS).square().mean(), {}))


def state_bytes(trained: Learner) -> int:
    """Of the weight's state: moments, and what reads them."""
    state = trained.optimizer.state[trained.model.weight]
    return sum(v.numel() * v.element_size() for v in state.values() if isinstance(v, torch.Tensor))


def test_adamw_is_torchs() -> None:
    ours = learner("adamw")
    theirs = nn.Linear(128, 64)
    theirs.load_state_dict(ours.model.state_dict())
    plain = torch.optim.AdamW(theirs.parameters(), lr=0.01, betas=(0.9, 0.95), weight_decay=0.1)
    for _ in range(3):
        step(ours)
        plain.zero_grad()
        theirs(INPUTS).square().mean().backward()
        nn.utils.clip_grad_norm_(theirs.parameters(), 1.0)
        plain.step()
    assert torch.equal(ours.model.weight, theirs.weight)
    assert 8 * 8192 <= state_bytes(ours) <= 8 * 8192 + 8


def test_8_bit_moments_take_two_bytes_and_move_alike() -> None:
    pytest.importorskip("bitsandbytes", reason="the extra `adamw-8bit` is not installed")
    short, full = learner("adamw_8bit"), learner("adamw")
    for _ in range(5):
        step(short)
        step(full)
    tables = 2 * 256 * 4  # one of each moment, shared by all weights
    assert state_bytes(short) - tables == 2 * 8192 + 2 * 4 * 8192 // 256
    gap = (short.model.weight - full.model.weight).detach().abs()
    assert float(gap.mean()) < 0.1 * 5 * 0.01


def test_8_bit_moments_come_back_to_the_bit() -> None:
    pytest.importorskip("bitsandbytes", reason="the extra `adamw-8bit` is not installed")
    trained = learner("adamw_8bit")
    for _ in range(2):
        step(trained)
    kept = trained.snapshot()
    after = []
    for _ in range(2):
        for _ in range(2):
            step(trained)
        after.append(trained.snapshot())
        trained.restore(kept)
        assert same_snapshot(trained.snapshot(), kept)
    assert same_snapshot(after[0], after[1])
    assert not same_snapshot(after[0], kept)


def test_without_bitsandbytes_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "bitsandbytes.optim", None)
    with pytest.raises(ValueError, match=r"needs bitsandbytes; pip install 'rewardswap\[adamw-8"):
        learner("adamw_8bit")
