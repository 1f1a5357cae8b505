"""Trainer and loop brought back at every place between two pieces end in the same bits."""

from dataclasses import replace
from typing import Any

import pytest
import torch

from made import MadePlay
from rewardswap.checkpoints.codec import decode, encode
from rewardswap.loops.adaptive_alpha import AdaptiveAlpha
from rewardswap.loops.budget import Budget
from rewardswap.loops.hacking_watch import HackingWatch
from rewardswap.loops.loop import Loop
from rewardswap.loops.on_policy import OnPolicy
from rewardswap.loops.replay_credit import replay_credit
from rewardswap.loops.rspo import Rspo
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.base import Method
from rewardswap.methods.dapo import DAPO
from rewardswap.methods.gigpo import GiGPO
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.ppo import PPO
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.trainer import Trainer
from training import Record, parameters, same_snapshot, trainer_of

SIZES = Batch(4, 4)
PLAIN = RewardSwap(2, 2, 1 / 4)
QUIET = {"seconds", "rollout_seconds", "update_seconds"}
EAGER = AdaptiveAlpha(success_low=0.0, success_high=0.9, window=2, least_successes=1)
SWAPS: list[tuple[Method, RewardSwap]] = [
    (GRPO(), PLAIN),
    (GiGPO(), replace(PLAIN, replay_advantage="history_median", harvest="both")),
    (PPO(), replace(PLAIN, explorer_critic="fresh", explorer_optimizer="copy", harvest="during")),
    (DAPO(), replace(PLAIN, replay_advantage="mixed_group", reuse_first_batch=True)),
    (GRPO(), replace(PLAIN, adaptive_alpha=True, adaptive=EAGER, replay_ages=True)),
    (GRPO(), replace(PLAIN, on_hacking="shorten", replay_by="proportional", replay_unit="group")),
    (GRPO(), RewardSwap(0, 2, 1 / 4, harvest_temperatures=(0.5, 1.0))),
    (GRPO(), RewardSwap(0, 2, 0.0)),
]


class Alarmed(HackingWatch):
    """Gives an alarm at every third batch that it sees."""

    def __init__(self) -> None:
        super().__init__("progress", lambda _: None)
        self.seen = 0

    def see(self, groups: Any) -> bool:
        self.seen += 1
        return super().see(groups) or self.seen % 3 == 0

    def state(self) -> dict[str, Any]:
        return {**super().state(), "seen": self.seen}

    def restore(self, state: Any) -> None:
        super().restore(state)
        self.seen = state["seen"]


def made(method: Method, swap: RewardSwap | None) -> tuple[Loop, Record]:
    record, algorithm = Record(), method.algorithm()
    mode = "collection_group" if swap is None else swap.replay_advantage
    algorithm = replace(algorithm, advantage=replay_credit(algorithm.advantage, mode))
    trainer = trainer_of(MadePlay(), record, algorithm=algorithm)
    if swap is None:
        reward, budget = OutcomeReward(), Budget(4)
        return OnPolicy(trainer, SIZES, budget=budget, reward=reward), record
    return (
        Rspo(
            trainer,
            swap,
            SIZES,
            budget=Budget(4),
            dense=ProgressReward(),
            outcome=OutcomeReward(),
            buffer=swap.buffer(5),
            after_loop=lambda _: None,
            watch=Alarmed() if swap.explore_steps else None,
        ),
        record,
    )


def kept(loop: Loop) -> Any:
    state = {"trainer": loop.trainer.state(), "loop": loop.state()}
    encoded = encode({**state, "learners": loop.trainer.learners()})
    encoded.tensors = {name: tensor.clone() for name, tensor in encoded.tensors.items()}
    return decode(encoded)


def rows(record: Record) -> list[Any]:
    return [
        (phase, {name: v for name, v in metrics.items() if name not in QUIET})
        for phase, metrics, _ in record.rows
    ]


@pytest.mark.parametrize(
    ("method", "swap"), [*SWAPS, (PPO(), None)], ids=[*map(str, range(len(SWAPS))), "on policy"]
)
def test_at_every_place(method: Method, swap: RewardSwap | None) -> None:
    whole, wanted = made(method, swap)
    states: list[tuple[int, Any]] = []
    whole.run(lambda: states.append((len(wanted.rows), kept(whole))))
    assert len(states) > 3
    for reported, state in states:
        loop, found = made(method, swap)
        loop.trainer.resume(state["trainer"], state["learners"])
        loop.restore(state["loop"])
        loop.run()
        assert rows(found) == rows(wanted)[reported:]
        assert torch.equal(parameters(loop.trainer), parameters(whole.trainer))
        assert same_learners(loop.trainer, whole.trainer)
        again, once = calls(loop.trainer), calls(whole.trainer)
        assert again == once[len(once) - len(again) :]


def calls(trainer: Trainer) -> list[Any]:
    play: Any = trainer.collector.play
    return list(play.calls)


def same_learners(one: Trainer, other: Trainer) -> bool:
    pairs = zip(one.learners().values(), other.learners().values(), strict=True)
    return all(a is b is None or same_snapshot(a, b) for a, b in pairs)  # type: ignore[arg-type]
