"""A run's parts by hand: the same bits as its loop, and as the whole run."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import replace
from io import StringIO
from pathlib import Path

import pytest
import torch
from rich.console import Console
from transformers import AutoModelForCausalLM

from rewardswap.by_hand import Parts, make_parts
from rewardswap.configuration import Run
from rewardswap.env_config.own import Own
from rewardswap.envs.corridor import CorridorWorld
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.ppo import PPO
from rewardswap.policy_config import PolicyConfig
from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.rule import ProgressReward
from rewardswap.rewards.sources import RewardConfig
from rewardswap.screen import Screen
from rewardswap.session import Training
from rewardswap.types import Trajectory
from training import parameters
from walking import save_walker


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(save_walker(tmp_path_factory.mktemp("model")))


def run_of(model: str, **changes: object) -> Run:
    run = Run(
        "by-hand",
        seed=3,
        budget=4,
        env=Own.of(CorridorWorld),
        policy=PolicyConfig(model=model, learning_rate=0.003, minibatches=2, action_tokens=2),
        batch=Batch(tasks=4, group_size=4),
        swap=RewardSwap(explore_steps=2, learn_steps=2, alpha=0.25),
        reward=RewardConfig(dense="progress"),
    )
    return replace(run, **changes)


def by_hand(parts: Parts) -> None:
    """RSPO as docs/library.md writes it."""
    run, trainer, outcome, dense = parts.run, parts.trainer, parts.outcome, parts.dense
    assert dense is not None
    (tasks, replayed), size = run.swap.split(run.batch), run.batch.group_size
    while trainer.agent_updates < run.budget:
        agent = trainer.branch()
        trainer.become_explorer(fresh_optimizer=True, learning_rate=None)
        for _ in range(run.swap.explore_steps):
            trainer.update(trainer.collect("explore", tasks, size), dense, "explore")
        seen = trainer.harvest(trainer.collect("harvest", tasks, size), outcome)
        trainer.restore(agent)
        parts.buffer.add(seen)
        for _ in range(run.swap.learn_steps):
            fresh, old = trainer.collect("learn", tasks, size), parts.buffer.sample(replayed)
            trainer.update(fresh, outcome, "learn", old, run.swap.alpha)
        parts.buffer.clear()
        trainer.loop += 1


def test_rspo_by_hand_is_the_loop_to_the_bit(model: str) -> None:
    run = run_of(model)
    with make_parts(run) as mine, make_parts(run) as theirs:
        before = parameters(mine.trainer)
        by_hand(mine)
        theirs.loop().run()
        assert not torch.equal(parameters(mine.trainer), before)
        assert torch.equal(parameters(mine.trainer), parameters(theirs.trainer))
        assert mine.trainer.counters == theirs.trainer.counters
        phases = [row["phase"] for row in mine.record]
        assert phases == ["explore", "explore", "harvest", "learn", "learn"] * 2
        assert [row["success"] for row in mine.record] == [row["success"] for row in theirs.record]
        assert mine.evaluate().total == theirs.evaluate().total


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"method": PPO(), "loop": "on_policy"},
        {
            "reward": RewardConfig(
                model=ProcessRewardConfig(hidden_size=4, epochs=2), trajectories=24, group_size=2
            )
        },
    ],
    ids=["rspo", "ppo", "fitted"],
)
def test_the_parts_are_those_of_a_whole_run(
    model: str, tmp_path: Path, changes: dict[str, object]
) -> None:
    run = run_of(model, budget=2, output=tmp_path / "run", **changes)
    training = Training(run)
    with closing(training.folder), closing(training.stage):
        trained = training.rehearse(Screen(Console(file=StringIO())))
    with make_parts(run) as parts:
        parts.loop().run()
        assert torch.equal(parameters(parts.trainer), parameters(trained))
        if trained.critic is not None:
            assert torch.equal(parameters(parts.trainer.critic), parameters(trained.critic))


def paid(trajectory: Trajectory) -> Sequence[float]:
    """The environment's own rewards."""
    return [turn.reward for turn in trajectory.turns]


def test_a_plain_function_is_a_dense_reward(model: str) -> None:
    run = run_of(model, budget=2, reward=RewardConfig())  # which would fit a model
    made = [make_parts(run, dense) for dense in (paid, ProgressReward(), lambda t: paid(t))]
    for parts in made:
        parts.loop().run()
        assert torch.equal(parameters(parts.trainer), parameters(made[0].trainer))
        parts.close()
    with pytest.raises(ValueError, match="a dense reward does nothing in loop 'on_policy'"):
        make_parts(replace(run, loop="on_policy"), paid)


def test_a_function_names_itself_in_the_settings() -> None:
    assert RewardConfig.of(paid, noise=0.1).dense == f"{__name__}:paid"
    with pytest.raises(ValueError, match="cannot be found by name; define it by `def`"):
        RewardConfig.of(lambda t: paid(t))


def test_the_policy_is_saved_as_it_plays(model: str, tmp_path: Path) -> None:
    with make_parts(run_of(model)) as parts:
        by_hand(parts)
        parts.save_pretrained(tmp_path / "policy")
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path / "policy")
    tokens = torch.arange(8)[None]
    mine = parts.stage.language_model.model
    assert torch.equal(loaded(tokens).logits, mine(tokens).logits)
