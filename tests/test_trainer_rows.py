"""Rows through a whole update: each exactly once, in whatever company it is read."""

from collections import Counter
from collections.abc import Mapping
from typing import Any

import pytest
import torch

from made import MadePlay, small_policy
from rewardswap.methods.grpo import GRPO
from rewardswap.models.batching import rows_of
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rollout.episodes import Played
from rewardswap.types import EpisodeFailure
from training import ChangedPlay, Record, by_index, parameters, read_batches, trainer_of

COMPANIES: Mapping[str, Mapping[str, Any]] = {
    "one row": {"tokens_per_microbatch": 1},
    "a few rows": {"tokens_per_microbatch": 60},
    "all rows": {"tokens_per_microbatch": 10_000},
    "packed": {"tokens_per_microbatch": 60, "packing": True},
}


def policy_in(company: str) -> Any:
    return small_policy(
        make_optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=1.0), **COMPANIES[company]
    )


@pytest.mark.parametrize("company", COMPANIES)
def test_the_old_policys_log_probs_are_those_of_every_row_alone(company: str) -> None:
    """Fault 22: they are scored once, in other micro-batches than those of the steps."""
    trainer = trainer_of(ChangedPlay(by_index), policy=policy_in(company), minibatches=3)
    batches = read_batches(trainer.policy)
    trainer.update(trainer.collect("learn", 3, 8), OutcomeReward(), "learn")
    alone = policy_in("one row")
    assert len(batches) == 3
    for batch in batches:
        assert len(batch) == 8
        old = batch.column("old_logprob")
        torch.testing.assert_close(old, alone.score(batch).logprob, atol=1e-5, rtol=0)


def test_an_update_is_the_same_in_every_company() -> None:
    """Faults 22 and 26: the loss is decided on the whole batch, whatever is read at once."""
    found, losses, norms = [], [], []
    for company in COMPANIES:
        record = Record()
        algorithm = GRPO(kl_coefficient=0.1, entropy_coefficient=0.01).algorithm()
        trainer = trainer_of(
            ChangedPlay(by_index),
            record,
            policy=policy_in(company),
            algorithm=algorithm,
            reference=small_policy(1),
        )
        trainer.update(trainer.collect("learn", 3, 8), OutcomeReward(), "learn")
        found.append(parameters(trainer))
        losses.append(record.metric("loss")[0])
        norms.append(record.metric("gradient_norm")[0])
    for moved in found[1:]:
        torch.testing.assert_close(moved, found[0], atol=1e-5, rtol=0)
    assert losses == pytest.approx([losses[0]] * len(losses), abs=1e-5)
    # AdamW moves as far by a gradient of another scale
    assert norms == pytest.approx([norms[0]] * len(norms), rel=1e-4)
    assert float((found[0] - parameters(small_policy())).abs().max()) > 0.01


class OneIsBroken(MadePlay):
    """The first episode of every collection breaks; of the others every second is won."""

    def __call__(self, requests: Any, *arguments: Any) -> Played:
        broken = EpisodeFailure(requests[0].task, requests[0].index, "environment", "it broke")
        played = ChangedPlay(by_index)(requests[1:], *arguments)
        return Played(played.trajectories, [broken], played.counters)


@pytest.mark.parametrize("minibatches", [1, 2, 3, 5])
def test_rows_that_nothing_divides_are_read_once_each(minibatches: int) -> None:
    """Fault 27: 7 trajectories in 2, 3 or 5 steps; none is repeated, none left out."""
    record = Record()
    trainer = trainer_of(OneIsBroken(), record, minibatches=minibatches)
    collected = trainer.collect("learn", 2, 4)
    members = [t for group in collected.groups for t in group.trajectories]
    assert len(members) == 7
    batches = read_batches(trainer.policy)
    trainer.update(collected, OutcomeReward(), "learn")
    there = Counter(tuple(row.tokens.tolist()) for t in members for row in rows_of(t, 0))
    read = Counter(
        tuple(tokens[:length].tolist())
        for batch in batches
        for tokens, length in zip(batch.tokens, batch.lengths, strict=True)
    )
    assert read == there and set(read.values()) == {1}
    assert len(batches) == minibatches
    for batch in batches:
        assert float(batch.weights["policy"].sum()) == pytest.approx(1.0, abs=1e-6)
    assert record.rows[0][1]["rows"] == 7
    # outcomes 0 1 0 of the three that are left, not of four: mean 1/3, unbiased std .57735
    found = sorted(
        round(float(batch.column("advantage")[b][batch.action_mask[b]][0]), 4)
        for batch in batches
        for b in torch.nonzero(batch.group == 0)[:, 0].tolist()
    )
    assert found == [-0.5773, -0.5773, 1.1547]
