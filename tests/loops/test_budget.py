"""When a run ends, in each of the three units, through the loops themselves."""

import pytest

from made import MadePlay
from rewardswap.loops.budget import Budget
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.rewards.outcome import OutcomeReward
from training import Record, on_policy, parameters, run_rspo, trainer_of

SWAP, SIZES = RewardSwap(2, 2, 1 / 4), Batch(4, 4)


def phases(budget: Budget, swap: RewardSwap = SWAP) -> tuple[list[str], Record]:
    record = Record()
    run_rspo(trainer_of(MadePlay(), record), swap, SIZES, budget)
    return [phase for phase, *_ in record.rows], record


@pytest.mark.parametrize("unit", ["agent_updates", "all_updates"])
def test_the_base_method_has_only_updates_of_the_agent(unit: str) -> None:
    trainer = trainer_of(MadePlay())
    budget = Budget(3, unit)
    on_policy(trainer, budget=budget, tasks=2, group_size=4, reward=OutcomeReward())
    assert trainer.agent_updates == budget.done(trainer) == 3


def test_agent_updates_leave_the_explorers_out() -> None:
    loop = ["explore", "explore", "harvest", "learn", "learn"]
    found, record = phases(Budget(3))
    assert found == [*loop, *loop[:4]]
    assert record.rows[-1][1]["update"] == 3


def test_all_updates_count_the_explorers_too() -> None:
    loop = ["explore", "explore", "harvest", "learn", "learn"]
    found, record = phases(Budget(7, "all_updates"))
    assert found == [*loop, "explore", "explore", "harvest", "learn"]
    assert record.rows[-1][1]["all_updates"] == 7


def test_environment_steps_end_the_base_method_with_the_update_that_reaches_them() -> None:
    record = Record()
    trainer = trainer_of(MadePlay(), record)
    budget = Budget(40, "environment_steps")
    on_policy(trainer, budget=budget, tasks=2, group_size=4, reward=OutcomeReward())
    steps = record.metric("environment_steps")
    assert steps[-2] < 40 <= steps[-1] == budget.done(trainer)


def test_environment_steps_count_every_phase() -> None:
    _, whole = phases(Budget(2))
    explored = whole.rows[1][1]["environment_steps"]
    learned = whole.rows[3][1]["environment_steps"]
    # the first update of the agent reaches it, though the agent alone has not played so much
    found, record = phases(Budget(int(learned), "environment_steps"))
    assert found == ["explore", "explore", "harvest", "learn"]
    assert record.rows[-1][1]["environment_steps"] == learned > explored


@pytest.mark.parametrize(
    ("amount", "expected"),
    [
        (1, ["explore"]),
        (2, ["explore", "explore"]),
        (5, ["explore", "explore", "harvest", "learn", "learn", "explore"]),
    ],
)
def test_a_budget_that_ends_while_exploring_ends_the_run_with_the_agent(
    amount: int, expected: list[str]
) -> None:
    """No explorer goes on after the last counted update, and none is left as the policy."""
    record = Record()
    trainer = trainer_of(MadePlay(), record)
    seen = []
    trainer.report = lambda metrics, phase, groups: (
        record(metrics, phase, groups),
        seen.append((phase, parameters(trainer))),
    )
    start = parameters(trainer)
    run_rspo(trainer, SWAP, SIZES, Budget(amount, "all_updates"))
    assert [phase for phase, *_ in record.rows] == expected
    agents = [found for phase, found in seen if phase == "learn"]
    assert parameters(trainer).equal(agents[-1] if agents else start)
    assert not parameters(trainer).equal(seen[-1][1])
