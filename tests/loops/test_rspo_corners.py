"""Loops that are cut short, ask for more, or harvest nothing."""

from collections.abc import Sequence
from typing import Any

import pytest

from made import MadePlay
from rewardswap.loops.budget import Budget
from rewardswap.loops.hacking import Alarm
from rewardswap.loops.hacking_rules import HackingRules
from rewardswap.loops.hacking_watch import HackingWatch
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.dapo import DAPO
from rewardswap.rewards.novelty import NoveltyReward
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.types import Group, Trajectory
from training import ChangedPlay, Record, by_index, on_policy, run_rspo, trainer_of, won

SIZES = Batch(4, 4)
ALARMED = Alarm(("trend",), "it is hacked")


class Crying(HackingWatch):
    """Gives an alarm at every batch, or at the end of every phase 1 alone."""

    def __init__(self, source_name: str, *, at_end: bool = False) -> None:
        self.alarms: list[Alarm] = []
        super().__init__(source_name, self.alarms.append, HackingRules())
        self.at_end = at_end

    def see(self, groups: Sequence[Group]) -> bool:
        super().see(groups)
        return not self.at_end and self._tell(ALARMED)

    def end_loop(self) -> bool:
        super().end_loop()
        return self.at_end and self._tell(ALARMED)


def phases_of(swap: RewardSwap, updates: int, **settings: Any) -> list[str]:
    record = Record()
    run_rspo(trainer_of(ChangedPlay(by_index), record), swap, SIZES, Budget(updates), **settings)
    return [phase for phase, _, _ in record.rows]


def test_a_phase_one_cut_to_its_reused_batch_harvests_once_more() -> None:
    """Its only batch is the agent's next one: without a harvest nothing would be replayed."""
    swap = RewardSwap(2, 2, 1 / 4, harvest="during", reuse_first_batch=True, on_hacking="shorten")
    phases = phases_of(swap, 3, watch=Crying("progress"))
    assert phases == ["explore", "harvest", "learn"] * 3


def test_an_alarm_at_the_end_of_phase_one_halves_the_phases_too() -> None:
    swap = RewardSwap(4, 4, 1 / 4, on_hacking="shorten")
    watch = Crying("progress", at_end=True)
    phases = phases_of(swap, 3, watch=watch)
    first = ["explore"] * 4 + ["harvest"] + ["learn"] * 2
    assert phases == [*first, "explore", "explore", "harvest", "learn"]
    assert watch.alarms == [ALARMED, ALARMED]


def test_a_budget_of_steps_that_ends_while_exploring_stops_at_once_with_the_agent() -> None:
    record = Record()
    trainer = trainer_of(MadePlay(), record)
    before = trainer.policy.version
    spent = Budget(1, "environment_steps")
    run_rspo(trainer, RewardSwap(2, 2, 1 / 4, harvest="both"), SIZES, spent)
    assert [phase for phase, _, _ in record.rows] == ["harvest", "explore"]
    assert trainer.policy.version == before


def test_the_spread_of_turn_rewards_is_known_where_nothing_is_harvested_afterwards() -> None:
    for harvest in ("final", "during"):
        record = Record()
        swap = RewardSwap(1, 1, 1 / 4, harvest=harvest)  # type: ignore[arg-type]
        run_rspo(trainer_of(MadePlay(), record), swap, SIZES, updates=1)
        assert record.metric("turn_rewards_collapsed") == [0.0]


def hard_first(trajectory: Trajectory) -> Trajectory:
    """Two tasks of six are won by some siblings alone: a filter asks for further ones."""
    number = int(trajectory.task.id.removeprefix("task-"))
    return won(trajectory, number % 3 == 1 and trajectory.index % 2 == 0)


class Counted(NoveltyReward):
    """Fails where a state that it scores was never counted."""

    def score(self, group: Group) -> Any:
        assert group.task.id in self._visits
        self.scored = getattr(self, "scored", 0) + len(group.trajectories)
        return super().score(group) * group.outcomes[:, None]


@pytest.mark.parametrize("loop", ["rspo", "dense"])
def test_what_a_filter_asks_for_further_is_counted_before_it_is_scored(loop: str) -> None:
    record, reward = Record(), Counted()
    trainer = trainer_of(ChangedPlay(hard_first), record, algorithm=DAPO().algorithm())
    if loop == "dense":
        on_policy(
            trainer,
            budget=Budget(1),
            tasks=3,
            group_size=4,
            reward=reward,
            before_scoring=reward.count,
        )
        assert record.metric("collections")[0] > 1
    else:
        swap = RewardSwap(1, 1, 1 / 4, harvest="during")
        run_rspo(trainer, swap, SIZES, updates=1, dense=reward, before_scoring=reward.count)
        assert record.metric("collections", "explore")[0] > 1
    visits = sum(sum(found.values()) for found in reward._visits.values())
    turns = [
        len(t.turns)
        for p, _, gs in record.rows
        for g in gs
        for t in g.trajectories
        if p == ("learn" if loop == "dense" else "explore")
    ]
    assert visits == sum(turns)


def test_watchers_of_a_loop_see_what_a_filter_asked_for() -> None:
    record, loops = Record(), list[int]()
    trainer = trainer_of(ChangedPlay(hard_first), record, algorithm=DAPO().algorithm())
    run_rspo(
        trainer,
        RewardSwap(0, 1, 1 / 4),
        SIZES,
        updates=1,
        dense=OutcomeReward(),
        after_loop=lambda groups: loops.append(len(groups)),
    )
    assert record.metric("collections")[0] > 1
    assert loops == [sum(len(groups) for _, _, groups in record.rows)]


def test_a_watch_adds_up_the_dense_turns_of_each_trajectory() -> None:
    seen: list[Any] = []

    class Kept(HackingWatch):
        def see(self, groups: Sequence[Group]) -> bool:
            found = super().see(groups)
            seen.append(self.detector.state()["batches"][-1])
            return found

    record = Record()
    trainer = trainer_of(ChangedPlay(by_index), record)
    swap = RewardSwap(1, 1, 1 / 4)
    run_rspo(trainer, swap, SIZES, updates=1, watch=Kept("progress", lambda _: None))
    explored = record.rows[0][2]
    sums = [float(row.sum()) for group in explored for row in group.rewards["progress"]]
    assert len(seen) == 2  # explored and harvested
    assert seen[0]["dense"] == pytest.approx(sum(sums) / len(sums))
    assert seen[0]["outcome"] == 0.5
    assert seen[0]["trajectories"] == 12


def test_the_explorer_draws_other_tokens_in_every_loop_and_the_agent_one_stream() -> None:
    play = MadePlay()
    run_rspo(trainer_of(play), RewardSwap(1, 1, 1 / 4), SIZES, updates=3)
    seeds = [seed for _, seed, _ in play.calls]  # of explore, harvest and learn, loop by loop
    assert seeds[0::3] == seeds[1::3]
    assert len(set(seeds[0::3])) == 3
    assert len(set(seeds[2::3])) == 1
    assert seeds[2] not in seeds[0::3]
