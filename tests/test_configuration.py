"""Settings that make no sense or would do nothing are refused in one line that names them."""

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from rewardswap import outer_loop
from rewardswap.checkpoints.config import CheckpointConfig
from rewardswap.configuration import Run
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.loops.adaptive_alpha import AdaptiveAlpha
from rewardswap.loops.budget import Budget
from rewardswap.loops.dense_credit import RewardToGo
from rewardswap.loops.k_schedule import PhaseLengths
from rewardswap.loops.replay_credit import HistoryMedian, MixedGroup
from rewardswap.loops.rspo import Rspo
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods import METHODS
from rewardswap.methods.base import Method
from rewardswap.methods.dapo import DAPO
from rewardswap.methods.dr_grpo import DrGRPO
from rewardswap.methods.gigpo import GiGPO
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.ppo import PPO
from rewardswap.policy_config import PolicyConfig
from rewardswap.recipes import RECIPES
from rewardswap.replay_staleness import Staleness
from rewardswap.rewards.combined import AddedRewards
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.rewards.sources import RewardConfig
from rewardswap.rollout.config import RolloutConfig
from rewardswap.screen import Screen
from rewardswap.session import Training
from rewardswap.trainer import Trainer


def refused(make: Any) -> str:
    """What is said, in one line."""
    with pytest.raises(ValueError) as error:
        make()
    assert "\n" not in str(error.value)
    return str(error.value)


EXPLORING: list[dict[str, Any]] = [
    {"explorer_learning_rate": 0.1},
    {"explorer_minibatches": 2},
    {"explorer_optimizer": "copy"},
    {"explorer_critic": "fresh"},
    {"harvest": "during"},
    {"harvest": "both"},
    {"reuse_first_batch": True},
    {"on_hacking": "shorten"},
]
REPLAYING: list[dict[str, Any]] = [
    {"replay_by": "uniform"},
    {"replay_unit": "group"},
    {"replay_advantage": "mixed_group"},
    {"replay_capacity": 100},
    {"adaptive_alpha": True},
    {"replay_ages": True},
    {"harvest_temperatures": (0.5, 1.0)},
]


@pytest.mark.parametrize("setting", EXPLORING, ids=str)
def test_settings_of_an_explorer_that_never_learns(setting: dict[str, Any]) -> None:
    (name,) = setting
    said = refused(lambda: RewardSwap(explore_steps=0, **setting))
    assert said == f"{name} does nothing at explore_steps = 0"
    RewardSwap(**setting)


@pytest.mark.parametrize("setting", REPLAYING, ids=str)
def test_settings_of_replay_without_replay(setting: dict[str, Any]) -> None:
    (name,) = setting
    said = refused(lambda: RewardSwap(explore_steps=0, alpha=0.0, **setting))
    assert said == f"{name} does nothing at alpha = 0"
    RewardSwap(explore_steps=0, **setting)


def test_a_discount_without_discounted_credit() -> None:
    said = refused(lambda: RewardConfig(dense_discount=0.5))
    assert said == "dense_discount does nothing at dense_credit sum"
    assert RewardConfig(dense_credit="reward_to_go", dense_discount=0.5).dense_discount == 0.5


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"explorer_minibatches": 0}, "explorer_minibatches must be at least 1"),
        ({"learn_steps": 0}, "learn_steps must be at least 1"),
        ({"alpha": 0.6}, "alpha must be between 0 and 1/2"),
        ({"explorer_learning_rate": 0.0}, "explorer_learning_rate must be above 0"),
        ({"adaptive": AdaptiveAlpha(window=3)}, "adaptive does nothing at adaptive_alpha false"),
        ({"staleness": Staleness(tau=3.0)}, "staleness does nothing at replay_ages false"),
        ({"replay_ages": True, "replay_by": "uniform"}, "replay_by does nothing at replay_ages"),
        ({"phases": PhaseLengths(2)}, "phases does nothing at on_hacking report"),
        ({"harvest_temperatures": (0.5,)}, "at least two temperatures"),
        (
            {"harvest_temperatures": (0.5, 1.0), "harvest": "during"},
            "harvest_temperatures does nothing at harvest during",
        ),
    ],
)
def test_numbers_of_the_swap_that_make_no_sense(setting: dict[str, Any], said: str) -> None:
    assert said in refused(lambda: RewardSwap(**setting))


@pytest.mark.parametrize(
    ("setting", "said"),
    [
        ({"dense_credit": "reward_to_go", "dense_discount": 1.5}, "dense_discount must be in"),
        ({"dense": "progres"}, "dense must be one of learned, progress"),
        ({"dense": "noise"}, "set noise above 0"),
        ({"noise": -0.1}, "noise must be at least 0"),
        ({"planted_bonus": 1.0}, "planted_bonus does nothing at planted_phrase none"),
        ({"dense": "progress", "folder": Path("x")}, "folder does nothing in dense reward"),
        ({"temperatures": ()}, "temperatures must be at least"),
        ({"trajectories": 0}, "trajectories must be at least 1"),
    ],
)
def test_dense_rewards_that_make_no_sense(setting: dict[str, Any], said: str) -> None:
    assert said in refused(lambda: RewardConfig(**setting))


SWAP = RewardSwap()
TO_GO = RewardConfig(dense_credit="reward_to_go")
QUIET = RewardSwap(explore_steps=0, alpha=0.0)


@pytest.mark.parametrize(
    ("method", "swap", "said"),
    [
        (PPO(), replace(SWAP, replay_advantage="mixed_group"), "mixed_group does nothing in PPO"),
        (PPO(), replace(SWAP, replay_advantage="history_median"), "median does nothing in PPO"),
        (GRPO(), replace(SWAP, explorer_critic="fresh"), "explorer_critic does nothing in GRPO"),
        (DAPO(), replace(SWAP, explorer_critic="fresh"), "explorer_critic does nothing in DAPO"),
        (
            GRPO(mixing="concatenated"),
            replace(SWAP, adaptive_alpha=True),
            "adaptive_alpha does nothing at method.mixing concatenated",
        ),
    ],
)
def test_settings_of_the_swap_that_the_method_does_not_read(
    method: Method, swap: RewardSwap, said: str
) -> None:
    found = refused(lambda: Run("x", method=method, swap=swap))
    assert found.startswith("swap.")
    assert said in found
    # the loops that have no swap do not read them
    plain = type(method)()
    Run("x", method=plain, swap=swap, loop="on_policy")
    Run("x", method=plain, swap=swap, loop="dense")


@pytest.mark.parametrize("loop", ["rspo", "dense"])
def test_credit_of_turns_in_a_method_that_credits_them_itself(loop: Any) -> None:
    said = refused(lambda: Run("x", method=PPO(), reward=TO_GO, loop=loop))
    assert said.startswith("reward.dense_credit reward_to_go does nothing in PPO")
    Run("x", method=PPO(), reward=TO_GO, loop="on_policy")


@pytest.mark.parametrize(
    "method",
    [
        GRPO(replay_clip_low=0.1),
        GRPO(replay_clip_high=0.1),
        GRPO(mixing="concatenated"),
        GRPO(kl_coefficient=0.1, kl_on_replay=False),
        PPO(critic_on_replay=True),
        GRPO(clip_center="one"),
        GRPO(importance_cap="mask"),
        GRPO(importance_cap="truncate", importance_maximum=3.0),
    ],
    ids=str,
)
def test_settings_of_a_method_that_need_replayed_rows(method: Method) -> None:
    for other in ({"loop": "on_policy"}, {"swap": QUIET}):
        said = refused(partial(Run, "x", method=method, **other))
        assert said.startswith("method.")
        assert said.endswith("does nothing without replayed rows")
    Run("x", method=method)


def test_an_importance_is_there_to_cap_where_the_engine_is_the_behavior() -> None:
    Run("x", method=GRPO(importance_cap="mask", behavior="engine"), loop="on_policy")


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (GRPO(kl_estimator="k2"), "method.kl_estimator does nothing at method.kl_coefficient 0"),
        (GRPO(kl_placement="reward"), "method.kl_placement does nothing at method.kl_coefficient"),
        (
            GRPO(kl_coefficient=0.1, kl_placement="reward", kl_on_replay=False),
            "method.kl_on_replay does nothing outside method.kl_placement loss",
        ),
        (GRPO(importance_maximum=3.0), "importance_maximum does nothing at method.importance_cap"),
        (GRPO(average_tokens=9.0), "method.average_tokens does nothing at method.average token"),
    ],
)
def test_settings_of_a_method_that_another_one_switches_off(method: Method, said: str) -> None:
    assert said in refused(lambda: Run("x", method=method))


def test_defaults_of_every_method_and_recipe_are_never_idle() -> None:
    for name in METHODS:
        method = METHODS[name]()
        for loop in ("on_policy", "rspo", "dense"):
            reward = RewardConfig() if method.signed_returns else TO_GO
            Run("x", method=method, loop=loop, reward=reward)
        Run("x", method=method, swap=QUIET)
    for make in RECIPES.values():
        make()
    Run("x", method=DrGRPO(average_tokens=20.0))


@pytest.mark.parametrize(
    ("settings", "said"),
    [
        ({"budget": 0}, "budget must be at least 1"),
        (
            {"policy": PolicyConfig(decay="linear"), "budget_unit": "environment_steps"},
            "policy.decay linear needs a budget in agent_updates",
        ),
        ({"batch": Batch(8, 1)}, "it compares siblings; set batch.group_size to 2 or more"),
        ({"batch": Batch(12, 8)}, "the nearest numbers of tasks"),
        (
            {"batch": Batch(8, 4), "swap": replace(SWAP, explorer_minibatches=29)},
            "swap.explorer_minibatches 29 is larger than the 28 trajectories",
        ),
        (
            {"batch": Batch(8, 4), "policy": PolicyConfig(minibatches=5)},
            "policy.minibatches 5 is larger than the 4 trajectories of a kind",
        ),
        (
            {"batch": Batch(64, 64), "swap": replace(SWAP, replay_capacity=100)},
            "replay_capacity 100 is smaller than the 512 replayed trajectories",
        ),
    ],
)
def test_runs_whose_settings_do_not_go_together(settings: dict[str, Any], said: str) -> None:
    assert said in refused(lambda: Run("x", **settings))


@pytest.fixture
def small(tmp_path: Path) -> Iterator[Callable[..., Training]]:
    """Makes a small training whose run folder is closed in the end."""
    made: list[Training] = []

    def make(**settings: Any) -> Training:
        run = Run(
            "x",
            output=tmp_path / "run",
            env=Alfworld(generated_games=20, evaluation_tasks=2, turn_limit=3),
            batch=Batch(4, 2),
            **{"reward": RewardConfig(dense="progress"), **settings},
        )
        made.append(Training(run))
        return made[-1]

    yield make
    for training in made:
        training.folder.close()


def handed_over(training: Training, monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the session gives to the loop rspo."""
    given: dict[str, Any] = {}

    class Given(Rspo):
        def __init__(self, *_: Any, **named: Any) -> None:
            given.update(named)

    monkeypatch.setattr(outer_loop, "Rspo", Given)
    training._loop(trainer_in(training), SILENT)
    return given


SILENT = Screen(Console(file=StringIO()))


def trainer_in(training: Training) -> Trainer:
    return training._trainer(SILENT)


def test_the_settings_reach_the_loop(small: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    swap = RewardSwap(
        alpha=1 / 4,
        replay_by="variance",
        replay_unit="group",
        replay_advantage="history_median",
        replay_capacity=40,
    )
    reward = replace(TO_GO, dense="progress", dense_discount=0.5, add_outcome=True)
    training = small(method=GiGPO(), swap=swap, reward=reward, budget=9, budget_unit="all_updates")
    given = handed_over(training, monkeypatch)
    assert given["budget"] == Budget(9, "all_updates")
    assert given["dense"] == AddedRewards(ProgressReward(), OutcomeReward())
    assert given["outcome"] == OutcomeReward()
    buffer = given["buffer"]
    assert (buffer.by, buffer.unit, buffer.capacity) == ("variance", "group", 40)
    plain = GiGPO().algorithm()
    assert training.explorer_algorithm == replace(plain, advantage=RewardToGo(0.5))
    # the history is of the agent's returns: the explorer must not write into it
    assert isinstance(training.algorithm.advantage, HistoryMedian)
    assert replace(training.algorithm, advantage=plain.advantage) == plain


def test_without_them_agent_and_explorer_run_the_method_as_it_is(
    small: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    training = small(swap=RewardSwap(alpha=1 / 4))
    given = handed_over(training, monkeypatch)
    assert given["dense"] == ProgressReward()
    assert given["budget"] == Budget(150, "agent_updates")
    assert (given["buffer"].by, given["buffer"].unit) == ("highest_outcome", "trajectory")
    assert training.algorithm == training.explorer_algorithm == GRPO().algorithm()


def test_the_mixed_reading_is_the_agents_alone(small: Any) -> None:
    swap = RewardSwap(alpha=1 / 4, replay_advantage="mixed_group")
    training = small(swap=swap)
    assert isinstance(training.algorithm.advantage, MixedGroup)
    assert training.explorer_algorithm == GRPO().algorithm()


@pytest.mark.parametrize(
    ("own", "expected"), [(None, 10 * 1e-6), (0.5, 0.5)], ids=["ten times", "its own"]
)
def test_the_critics_learning_rate(own: float | None, expected: float, small: Any) -> None:
    training = small(method=PPO(critic_learning_rate=own), swap=RewardSwap(alpha=1 / 4))
    trainer = trainer_in(training)
    assert trainer.critic is not None
    assert trainer.critic.optimizer.param_groups[0]["lr"] == pytest.approx(expected)
    assert trainer.policy.optimizer.param_groups[0]["lr"] == 1e-6
    trunk = dict(trainer.critic.model.trunk.named_parameters())
    policy = dict(trainer.policy.model.get_decoder().named_parameters())
    assert all(p.data_ptr() != policy[name].data_ptr() for name, p in trunk.items())


def test_the_limits_of_a_run_reach_the_trainer(small: Any) -> None:
    training = small(
        rollout=RolloutConfig(failure_limit=0.25),
        checkpoint=CheckpointConfig(every=3, keep=4, most_skipped=5),
        swap=RewardSwap(alpha=1 / 4),
        method=PPO(),
    )
    trainer = trainer_in(training)
    assert trainer.collector.failure_limit == 0.25
    assert trainer.policy.most_skipped == trainer.critic.most_skipped == 5
    assert training.checkpoints.keep == 4


@pytest.mark.parametrize("settings", [{"every": -1}, {"keep": 0}, {"most_skipped": 0}])
def test_checkpoint_settings_that_make_no_sense_are_refused(settings: dict[str, int]) -> None:
    (name,) = settings
    with pytest.raises(ValueError, match=f"{name} must be at least"):
        CheckpointConfig(**settings)
