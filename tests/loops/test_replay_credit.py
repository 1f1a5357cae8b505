"""The three readings of a replayed row's advantage."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from made import made_group
from rewardswap.loops.replay_credit import HistoryMedian, replay_credit
from rewardswap.methods import METHODS
from rewardswap.methods.grpo import GRPO
from rewardswap.rewards.checked import label
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.types import Group
from training import ChangedPlay, by_index, read_batches, trainer_of

GRPOS = GRPO().algorithm().advantage
WITHOUT_CRITIC = [name for name in METHODS if METHODS[name]().algorithm().critic is None]


def rewarded(task: str, outcomes: Sequence[float], selected: Sequence[int] | None = None) -> Group:
    """Labelled with the outcome; a replayed group if some siblings are `selected`."""
    group = label(made_group(task, outcomes), OutcomeReward())
    if selected is None:
        return group
    return replace(
        group, selected=tuple(n in selected for n in range(len(outcomes))), replayed=True
    )


def per_trajectory(advantage: torch.Tensor) -> list[float]:
    return [round(float(value), 4) for value in advantage[:, 0]]


def test_the_explorers_whole_group_judges_by_default() -> None:
    assert replay_credit(GRPOS, "collection_group") is GRPOS
    (few,) = GRPOS([rewarded("a", (1, 0, 1, 0), [0])])
    (all_of_them,) = GRPOS([rewarded("a", (1, 0, 1, 0), [0, 1, 2, 3])])
    assert torch.equal(few, all_of_them)
    assert few[0, 0] > 0


def test_selected_and_fresh_trajectories_of_a_task_are_one_group_when_mixed() -> None:
    fresh, stored = rewarded("a", (0, 1)), rewarded("a", (1, 0, 1), [0, 2])
    mixed = replay_credit(GRPOS, "mixed_group")([fresh, stored])
    # returns 0, 1, 1, 1: mean 3 / 4, unbiased standard deviation 1 / 2
    assert per_trajectory(mixed[0]) == pytest.approx([-1.5, 0.5], abs=1e-4)
    assert per_trajectory(mixed[1]) == pytest.approx([0.5, 0.0, 0.5], abs=1e-4)
    for advantage, group in zip(mixed, (fresh, stored), strict=True):
        assert advantage.shape == group.turn_mask.shape
        chosen = group.turn_mask & torch.tensor(group.selected)[:, None]
        assert torch.equal(advantage != 0, chosen)


def test_the_best_of_a_task_without_fresh_rows_teach_nothing_when_mixed() -> None:
    fresh, stored = rewarded("a", (0, 1)), rewarded("b", (1, 0, 1), [0, 2])
    assert per_trajectory(GRPOS([fresh, stored])[1]) != [0.0] * 3
    mixed = replay_credit(GRPOS, "mixed_group")([fresh, stored])
    assert not mixed[1].any()
    assert torch.equal(mixed[0], GRPOS([fresh])[0])


def test_replayed_groups_of_one_task_mix_with_each_other() -> None:
    stored = [rewarded("a", (1, 0, 0), [0]), rewarded("a", (0, 1, 0), [0, 2])]
    mixed = replay_credit(GRPOS, "mixed_group")(stored)
    # returns 1, 0, 0: mean 1 / 3, unbiased standard deviation sqrt(1 / 3)
    assert per_trajectory(mixed[0]) == pytest.approx([1.1547, 0, 0], abs=1e-3)
    assert per_trajectory(mixed[1]) == pytest.approx([-0.5774, 0, -0.5774], abs=1e-3)


def test_the_history_is_the_median_of_the_last_fresh_batches() -> None:
    credit = HistoryMedian(GRPOS, window=3)
    stored = rewarded("b", (1, 0, 1), [0, 2])
    baselines = []
    for outcomes in ((0, 1), (0, 0, 0, 1), (1, 1, 1, 0), (1, 1)):
        fresh = rewarded("a", outcomes)
        first, second = credit([fresh, stored])
        assert torch.equal(first, GRPOS([fresh])[0])
        assert torch.equal(second != 0, stored.turn_mask)
        baselines.append(1 - float(second[0, 0]))
        assert float(second[1, 0]) == pytest.approx(-baselines[-1])
    # mean returns 1/2, 1/4, 3/4, 1; the first has left the window of the last
    assert baselines == pytest.approx([0.5, 0.375, 0.5, 0.75])


@pytest.mark.parametrize("name", WITHOUT_CRITIC)
def test_every_method_without_a_critic_can_be_read_in_both_other_ways(name: str) -> None:
    groups = [rewarded("a", (0, 1, 1)), rewarded("b", (1, 0)), rewarded("a", (1, 0, 1), [0, 2])]
    for mode in ("mixed_group", "history_median"):
        found = replay_credit(METHODS[name]().algorithm().advantage, mode)(groups)
        for advantage, group in zip(found, groups, strict=True):
            assert advantage.shape[:2] == group.turn_mask.shape
            assert torch.isfinite(advantage).all()


def replayed_advantages(mode: Any, updates: int = 2) -> list[torch.Tensor]:
    """Of the replayed rows of each update, through the trainer; all of them are successes."""
    algorithm = GRPO().algorithm()
    algorithm = replace(algorithm, advantage=replay_credit(algorithm.advantage, mode))
    trainer = trainer_of(ChangedPlay(by_index), algorithm=algorithm)
    harvested = trainer.harvest(trainer.collect("harvest", 2, 4), OutcomeReward())
    batches, found = read_batches(trainer.policy), []
    for _ in range(updates):
        fresh = trainer.collect("learn", 2, 4)
        task = next(g for g in harvested if g.task.id not in {f.task.id for f in fresh.groups})
        stored = replace(task, selected=(True, False, True, False), replayed=True)
        trainer.update(fresh, OutcomeReward(), "learn", [stored], 0.25)
        batch = batches[-1]  # without the rows whose advantage is 0
        rows = torch.nonzero(batch.replayed)[:, 0]
        found.append(batch.column("advantage")[rows][batch.action_mask[rows]])
    return found


def test_through_the_trainer_the_three_readings_differ() -> None:
    # half of each group succeeds: z-score .5 / .577, nothing among successes, 1 - median .5
    for advantage in replayed_advantages("collection_group"):
        assert advantage.tolist() == pytest.approx([0.866] * len(advantage), abs=1e-3)
        assert len(advantage)
    assert not any(len(advantage) for advantage in replayed_advantages("mixed_group"))
    for advantage in replayed_advantages("history_median"):
        assert advantage.tolist() == pytest.approx([0.5] * len(advantage))
        assert len(advantage)
