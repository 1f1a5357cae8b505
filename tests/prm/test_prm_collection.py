"""Rollouts for process reward models: shares, bits, balance."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from made import MadePlay, made_trajectory
from rewardswap.collection import episode_requests
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.envs.base import World
from rewardswap.prm.collect_command import playable_tasks
from rewardswap.prm.collect_settings import Collecting
from rewardswap.prm.collection import Balance, Share, ShareStream, collect_for_reward
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.stage import make_stage
from rewardswap.task_stream import TaskStream, derived_seed
from rewardswap.types import EpisodeFailure, Task, Trajectory

TASKS = [Task(f"task-{n}", "family") for n in range(40)]


def keys(trajectories: Sequence[Trajectory]) -> list[tuple[str, int, int]]:
    """Task, index, and the draw that all tokens come from."""
    return [(t.task.id, t.index, t.policy_version) for t in trajectories]


def test_one_policy_plays_what_a_run_collects() -> None:
    # a run: the next tasks of one stream for each temperature, whole groups, seeded by its number
    play, stream = MadePlay(), TaskStream(TASKS, 7)
    expected = []
    for number in range(2):
        requests = episode_requests(stream.draw(3), 4)
        expected += play(requests, derived_seed(7, number), 0, None).trajectories
    found = collect_for_reward(
        MadePlay(), TASKS, seed=7, trajectories=27, group_size=4, temperatures=(0.7, 1.3)
    )
    assert keys(found) == keys(expected) and len(found) == 24


def test_each_share_has_its_temperature_and_at_least_one_group() -> None:
    seen: list[tuple[int, float | None]] = []

    def play(
        requests: Sequence[EpisodeRequest], seed: int, version: int, temperature: float | None
    ) -> Played:
        seen.append((len(requests), temperature))
        return MadePlay()(requests, seed, version, temperature)

    collect_for_reward(play, TASKS, seed=0, trajectories=1, group_size=4, temperatures=(0.7, 1.3))
    assert seen == [(4, 0.7), (4, 1.3)]


class Scripted:
    """Outcomes of one group after another, each a word of 1 and 0; x is a failed episode."""

    def __init__(self, *groups: str) -> None:
        self.groups = list(groups)
        self.played = 0
        self.asked: list[tuple[str, int]] = []

    def __call__(
        self, requests: Sequence[EpisodeRequest], seed: int, version: int, temperature: float | None
    ) -> Played:
        self.asked += [(r.task.id, r.index) for r in requests]
        trajectories, failures = [], []
        letters = "".join(self.groups[self.played :])
        self.played += len(requests) // len(self.groups[0])
        for letter, r in zip(letters, requests, strict=False):
            if letter == "x":
                failures.append(EpisodeFailure(r.task, r.index, "environment", "broke"))
            else:
                made = made_trajectory(r.task.id, r.index, outcome=float(letter))
                trajectories.append(replace(made, task=r.task))
        return Played(trajectories, failures, {})


def words(groups: Sequence[Sequence[Trajectory]]) -> list[str]:
    return ["".join(str(int(t.success)) for t in group) for group in groups]


def share(play: Scripted, groups: int, balance: Balance | None, tasks: int = 40) -> Share:
    stream = ShareStream(TASKS[:tasks], 0, groups, len(play.groups[0]))
    return stream.next(play, 1.0, balance)


def test_without_balance_nothing_more_is_played() -> None:
    play = Scripted("00", "00", "11")
    found = share(play, 2, None)
    assert words(found.kept) == ["00", "00"] and not found.left_out and play.played == 2


def test_tasks_are_drawn_until_both_kinds_have_their_share() -> None:
    # 2 groups of 2 kept: 25 % is one success, which the third further group brings
    play = Scripted("00", "00", "00", "00", "01", "11")
    found = share(play, 2, Balance(0.25, 100))
    # 01 takes the first place that has fewer
    assert words(found.kept) == ["01", "00"]
    assert words(found.left_out) == ["00", "00", "00"]
    assert play.played == 5


def test_further_groups_come_a_quarter_at_once_and_are_taken_while_they_are_needed() -> None:
    # 8 groups of 1 kept: 25 % are 2 successes; a round is of 2, and its second one is not needed
    play = Scripted(*"00000001", *"00", *"11", *"11")
    found = share(play, 8, Balance(0.25, 100))
    assert words(found.kept) == list("10000001") and words(found.left_out) == list("0001")
    assert play.played == 12


def test_the_rarer_kind_may_be_failure() -> None:
    play = Scripted("11", "11", "10", "00")
    found = share(play, 2, Balance(0.5, 100))
    # 10 first: 1 of 4; then 00 takes the first place with fewer failures, which is 10's: 2 of 4
    assert words(found.kept) == ["00", "11"] and words(found.left_out) == ["11", "10"]


def test_the_budget_ends_it() -> None:
    play = Scripted(*["00"] * 20)
    found = share(play, 2, Balance(0.25, 5))
    assert play.played == 5 and words(found.kept) == ["00", "00"]
    assert len(found.left_out) == 3


def test_failed_episodes_are_counted_and_a_further_group_takes_a_lost_ones_place() -> None:
    play = Scripted("0x", "xx", "01", "11")
    found = share(play, 2, Balance(0.25, 4))
    # 0 alone is kept of the first pair; the empty place is taken by 01: one success of three
    assert words(found.kept) == ["0", "01"] and not found.left_out
    assert found.failed_episodes == 3


def test_a_task_that_comes_again_gets_further_indices() -> None:
    play = Scripted(*["00"] * 8)
    share(play, 2, Balance(0.25, 8), tasks=2)
    assert len(set(play.asked)) == len(play.asked) == 16
    assert {index for _, index in play.asked} == set(range(8))


def test_the_next_share_plays_other_tasks_with_another_seed() -> None:
    play = MadePlay()
    stream = ShareStream(TASKS, 3, 4, 2)
    first, second = stream.next(play, 0.7), stream.next(play, 1.0)
    assert {t.task.id for t in first.trajectories}.isdisjoint(
        t.task.id for t in second.trajectories
    )
    assert [seed for _, seed, _ in play.calls] == [derived_seed(3, 0), derived_seed(3, 1)]


class Overlapping:
    """A world whose splits share a task."""

    def __init__(self, world: World) -> None:
        self.world = world

    def tasks(self, split: str) -> Sequence[Task]:
        evaluated = self.world.tasks("held_out")
        return [*self.world.tasks("train"), evaluated[-1]] if split == "train" else evaluated


def test_no_task_of_the_evaluated_split_is_played() -> None:
    env = Alfworld(generated_games=20, evaluation_tasks=3)
    stage = make_stage(env, None, device="cpu", temperature=1.0, action_tokens=None)
    assert len(playable_tasks(Collecting(env=env), stage)) == 20
    with pytest.raises(ValueError, match="'held_out' is the one that is evaluated"):
        playable_tasks(Collecting(env=env, split="held_out"), stage)
    # the last task of the split is not in a panel of two, and is not played either
    object.__setattr__(stage, "world", Overlapping(stage.world))
    object.__setattr__(stage, "panel", replace(stage.panel, tasks=stage.panel.tasks[:2]))
    with pytest.raises(ValueError, match="1 of 3 tasks of split 'held_out' are also trained on"):
        playable_tasks(Collecting(env=env), stage)
