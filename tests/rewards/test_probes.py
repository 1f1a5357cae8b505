from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from rewardswap.models.batching import rows_of
from rewardswap.rewards.changes import CHANGES, PADDING, changed
from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.probes import probe
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.types import Trajectory


def generator(seed: int = 0) -> np.random.Generator:
    return np.random.default_rng(seed)


def actions(trajectory: Trajectory | None) -> list[str]:
    assert trajectory is not None
    return [turn.action for turn in trajectory.turns]


def told(trajectory: Trajectory | None) -> list[int]:
    """All tokens of the one row, the end of the episode included."""
    assert trajectory is not None
    (row,) = rows_of(trajectory, 0)
    return [*row.tokens.tolist(), *trajectory.final_context_ids.tolist()]


def idle(trajectory: Trajectory, places: dict[int, bool]) -> Trajectory:
    """With turns after which nothing has changed: place -> whether the action was admitted."""
    turns = list(trajectory.turns)
    for place, valid in places.items():
        turns[place] = replace(turns[place], valid=valid)
        turns[place + 1] = replace(turns[place + 1], state_key=turns[place].state_key)
    return replace(trajectory, turns=tuple(turns))


def test_half_is_the_first_turns_and_their_answers(make) -> None:
    half = changed(make([7, 8, 9, 10, 11, 12]), CHANGES["halved"], generator())
    # five turns: two are kept, and the end is what was said to the second
    assert actions(half) == ["act 0", "act 1"]
    assert told(half) == [2, 7, 4, 20, 1, 8, 4, 21, 1, 9, 4]
    assert half is not None and half.final_observation == "9"


def test_a_repeated_turn_is_told_twice_with_its_answer(make) -> None:
    original = make([7, 8, 9], rewards=[0.25, 0.5])
    twice = changed(original, CHANGES["repeated"], generator())
    # of two turns only the first is not the last
    assert actions(twice) == ["act 0", "act 0", "act 1"]
    assert told(twice) == [2, 7, 4, 20, 1, 8, 4, 20, 1, 8, 4, 21, 1, 9, 4]
    assert twice is not None
    assert [turn.observation for turn in twice.turns] == ["7", "8", "8"]
    assert [turn.reward for turn in twice.turns] == [0.25, 0.0, 0.5]
    assert [turn.extends for turn in twice.turns] == [False, True, True]


def test_the_turn_that_is_repeated_is_drawn(make) -> None:
    original = make([5] * 7)
    found = set()
    for seed in range(40):
        said = actions(changed(original, CHANGES["repeated"], generator(seed)))
        assert len(said) == 7
        (double,) = [a for a, b in pairwise(said) if a == b]
        found.add(double)
    assert found == {f"act {k}" for k in range(5)}


def test_shuffled_turns_keep_their_answers_and_the_end(make) -> None:
    original = make([7, 8, 9, 10, 11])
    # the answer to act k is 8 + k
    for seed in range(10):
        other = changed(original, CHANGES["shuffled"], generator(seed))
        assert other is not None
        said = actions(other)
        assert said != actions(original) and sorted(said) == sorted(actions(original))
        assert said[-1] == "act 3"
        answers = [turn.observation for turn in other.turns[1:]] + [other.final_observation]
        assert answers == [str(8 + int(action[-1])) for action in said]
        assert sorted(told(other)) == sorted(told(original))


def test_padding_takes_an_idle_action_again(make) -> None:
    original = idle(make([7, 8, 9, 10, 11]), {0: True, 2: False})
    padded = changed(original, CHANGES["padded"], generator())
    # the third action was refused, so it is taken, though the first was idle too
    assert actions(padded) == ["act 0", "act 1", *["act 2"] * (1 + PADDING), "act 3"]
    again = [22, 1, 10, 4]
    expected = [2, 7, 4, 20, 1, 8, 4, 21, 1, 9, 4, *again * (1 + PADDING), 23, 1, 11, 4]
    assert told(padded) == expected
    admitted = changed(idle(make([7, 8, 9, 10]), {1: True}), CHANGES["padded"], generator())
    assert actions(admitted) == ["act 0", *["act 1"] * (1 + PADDING), "act 2"]


def test_a_refused_action_after_which_something_changed_is_no_padding(make) -> None:
    original = make([7, 8, 9])
    refused = replace(original.turns[0], valid=False)
    original = replace(original, turns=(refused, original.turns[1]))
    assert changed(original, CHANGES["padded"], generator()) is None


@pytest.mark.parametrize("name", CHANGES)
def test_what_cannot_be_changed_is_left_alone(make, name: str) -> None:
    fresh = idle(make([7, 8, 9, 10, 11], fresh=(2,)), {0: False})
    unread = replace(
        idle(make([7, 8, 9, 10, 11]), {0: False}), final_context_ids=np.array([], dtype=np.int64)
    )
    for trajectory in (fresh, unread, make([7, 8])):
        assert changed(trajectory, CHANGES[name], generator()) is None
    whole = idle(make([7, 8, 9, 10, 11], success=True), {0: False})
    other = changed(whole, CHANGES[name], generator())
    assert other is not None
    assert (other.task, other.outcome, other.success) == (whole.task, 1.0, True)


def one_a_turn(some):
    return [[1.0] * len(trajectory.turns) for trajectory in some]


def test_probes_by_hand(make) -> None:
    episodes = [
        idle(make([5] * 5, index=0, success=True), {0: False}),
        make([5] * 7, index=1),
        make([5] * 3, index=2, fresh=(1,)),
    ]
    report = probe(one_a_turn, episodes)
    # R_hat is the number of turns: 4, 6 and 2, deviating by sqrt(8 / 3)
    assert report.deviation == pytest.approx((8 / 3) ** 0.5)
    halved = report.of("halved")
    assert (halved.successes, halved.failures, halved.unchangeable) == (1, 1, 1)
    assert (halved.mean_successes, halved.mean_failures, halved.mean) == (-2.0, -3.0, -2.5)
    assert (halved.mean_size, halved.rising_share) == (2.5, 0.0)
    padded = report.of("padded")
    assert (padded.successes, padded.failures, padded.unchangeable) == (1, 0, 2)
    assert (padded.mean_successes, padded.mean_failures) == (PADDING, None)
    assert report.of("shuffled").mean_size == 0.0
    said = " ".join(report.warnings)
    assert f"pays for padding: {PADDING} more turns" in said and "in 100% of the episodes" in said
    assert "pays for repetition: a turn told twice raises R_hat by 1.000" in said
    assert "does not notice order: shuffled turns change R_hat by 0.000" in said


def test_a_reward_that_costs_turns_and_sees_order_is_not_warned_about(make) -> None:
    def careful(some):
        return [
            [-1.0 * (k + 1) * int(turn.action[-1]) for k, turn in enumerate(t.turns)] for t in some
        ]

    episodes = [idle(make([5] * (4 + n % 3), index=n), {1: False}) for n in range(9)]
    assert probe(careful, episodes).warnings == ()


def test_nothing_could_be_changed(make) -> None:
    report = probe(one_a_turn, [make([5, 5])])
    assert [found.unchangeable for found in report.probes] == [1] * len(CHANGES)
    assert all(found.mean is None and found.rising_share is None for found in report.probes)
    assert report.warnings == ()
    assert "not changed" in [column.header for column in report.table().columns]
    with pytest.raises(ValueError, match="no probe 'upside down'"):
        report.of("upside down")
    with pytest.raises(ValueError, match="no held-out trajectories"):
        probe(one_a_turn, [])


def test_draws_belong_to_the_episode(make) -> None:
    seen: dict[int, list[list[str]]] = {0: [], 1: []}

    def watching(way: int):
        def rewards(some):
            seen[way] += [actions(t) for t in some if t.index == 2]
            return one_a_turn(some)

        return rewards

    episodes = [make([5] * 9, index=n) for n in range(4)]
    probe(watching(0), episodes)
    probe(watching(1), episodes[::-1][:2])
    assert seen[0] == seen[1]


def test_a_fitted_model_is_probed(backbone, revealing) -> None:
    model = ProcessRewardModel(backbone, replace(PRESETS["after_observation"], epochs=3))
    model.fit(revealing)
    first, second = (probe(model.rewards, revealing[:24]) for _ in range(2))
    assert first == second
    halved = first.of("halved")
    assert halved.successes + halved.failures == 24
    assert halved.mean_size is not None and halved.mean_size > 0
