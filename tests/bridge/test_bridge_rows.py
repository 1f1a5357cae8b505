"""Padded responses as groups, and advantages back at their tokens."""

from dataclasses import replace

import pytest
import torch
from torch import Tensor

from methods.worked import group_of
from rewardswap.bridge.rows import batch_of, groups_of, spread, turns_of
from rewardswap.methods import METHODS
from rewardswap.models.batching import collate
from rewardswap.types import Group, Turn

MASK = torch.tensor(
    [
        [1, 1, 0, 0, 1, 0, 1, 0],  # turns of 2, 1 and 1 tokens
        [0, 1, 0, 1, 1, 1, 0, 0],  # an observation first; turns of 1 and 3
        [0, 0, 0, 0, 0, 0, 0, 0],  # nothing was sampled
        [1, 0, 0, 0, 0, 0, 0, 0],
    ]
).bool()


def placed(*numbers: tuple[int, int, float]) -> Tensor:
    rewards = torch.zeros(MASK.shape)
    for row, column, number in numbers:
        rewards[row, column] = number
    return rewards


def test_a_turn_is_a_run_of_sampled_tokens() -> None:
    assert turns_of(MASK).tolist() == [
        [0, 0, -1, -1, 1, -1, 2, -1],
        [-1, 0, -1, 1, 1, 1, -1, -1],
        [-1] * 8,
        [0, -1, -1, -1, -1, -1, -1, -1],
    ]


def test_what_a_token_is_paid_belongs_to_the_turn_that_began_last() -> None:
    rewards = placed((0, 1, 0.5), (0, 3, 0.25), (0, 6, 1.0), (0, 7, 2.0), (1, 2, -1.0), (3, 7, 4.0))
    groups, rows = groups_of(rewards, MASK, ["x", "y", "x", "x"])
    assert rows == [[0, 3], [1]]  # row 2 has no turn
    assert [group.task.id for group in groups] == ["x", "y"]
    assert groups[0].reward_in_force.tolist() == [[0.75, 0.0, 3.0], [4.0, 0.0, 0.0]]
    assert groups[1].reward_in_force.tolist() == [[-1.0, 0.0]]
    assert groups[0].turn_mask.tolist() == [[True, True, True], [True, False, False]]
    assert [len(turn.action_ids) for turn in groups[1].trajectories[0].turns] == [1, 3]


@pytest.mark.parametrize(("row", "column"), [(1, 0), (2, 4)])
def test_a_reward_that_no_turn_can_have_is_refused(row: int, column: int) -> None:
    with pytest.raises(ValueError, match=f"row {row} is paid before its first action token"):
        groups_of(placed((row, column, 1.0)), MASK, list("abcd"))
    with pytest.raises(ValueError, match="4 rows need as many tasks, got 2"):
        groups_of(placed(), MASK, ["a", "b"])


def test_advantages_stand_at_the_tokens_of_their_turn() -> None:
    members = [[0, 3], [1]]
    turns = [torch.tensor([[1.0, 2.0, 3.0], [4.0, 0.0, 0.0]]), torch.tensor([[5.0, 6.0]])]
    assert spread(turns, members, MASK).tolist() == [
        [1, 1, 0, 0, 2, 0, 3, 0],
        [0, 5, 0, 6, 6, 6, 0, 0],
        [0] * 8,
        [4, 0, 0, 0, 0, 0, 0, 0],
    ]
    tokens = [torch.zeros(2, 3, 2), torch.tensor([[[1.0, 0.0, 0.0], [2.0, 3.0, 4.0]]])]
    assert spread(tokens, members, MASK)[1].tolist() == [0, 1, 0, 2, 3, 4, 0, 0]


def test_a_batch_keeps_nothing_off_the_action_tokens() -> None:
    batch = batch_of(
        MASK,
        advantage=torch.ones(MASK.shape),
        old_logprob=torch.full(MASK.shape, -1.0),
        behavior_logprob=torch.full(MASK.shape, float("nan")).masked_fill(MASK, -2.0),
    )
    assert batch.column("behavior_logprob").tolist() == (-2.0 * MASK).tolist()
    assert batch.trajectory.tolist() == [0, 1, 2, 3]


def groups() -> list[Group]:
    """Dense rewards, turns of several lengths, one group of three and one of two."""
    return [
        group_of(
            [[0.1, 0.6, 0.2], [0.3], [0.0, 0.1]],
            tokens=[[2, 1, 3], [2], [1, 2]],
            members={1: {"invalid": (0,)}},
        ),
        group_of([[0.2, 0.2], [0.9, 0.0]], task="b", tokens=[[1, 1], [3, 2]]),
    ]


SUFFICED = [name for name in METHODS if METHODS[name].rewards_suffice]


@pytest.mark.parametrize("name", [n for n in SUFFICED if METHODS[n]().algorithm().critic is None])
def test_a_method_finds_in_padded_rows_what_it_finds_in_groups(name: str) -> None:
    estimate = METHODS[name]().algorithm().advantage
    given = groups()
    ours = [g.with_column("advantage", a) for g, a in zip(given, estimate(given), strict=True)]
    batch = collate(ours)
    rewards = torch.zeros(batch.action_mask.shape)
    names: list[str] = []
    for group in given:
        for n, trajectory in enumerate(group.trajectories):
            row = len(names)
            for k in range(len(trajectory.turns)):
                last = int((batch.turn[row] == k).nonzero()[-1])
                rewards[row, last] = group.reward_in_force[n, k]
            names.append(group.task.id)
    shuffled = torch.tensor([3, 0, 4, 2, 1])
    mask = batch.action_mask[shuffled]
    found, members = groups_of(rewards[shuffled], mask, [names[i] for i in shuffled])
    values = spread(estimate(found), members, mask)
    torch.testing.assert_close(values, batch.column("advantage")[shuffled], rtol=0, atol=1e-6)


def without_evidence(group: Group) -> Group:
    def bare(turn: Turn) -> Turn:
        return replace(turn, observation="", action="", valid=True, state_key="", reward=0.0)

    siblings = tuple(
        replace(t, turns=tuple(map(bare, t.turns)), final_observation="", outcome=0.0)
        for t in group.trajectories
    )
    return replace(group, trajectories=siblings)


@pytest.mark.parametrize("name", METHODS)
def test_only_methods_that_say_so_need_no_more_than_rewards(name: str) -> None:
    algorithm = METHODS[name]().algorithm()
    if algorithm.critic is not None:
        pytest.skip("reads values of a critic")
    seen = {0: {"observations": ["a", "a", "a"]}}  # what ProGPO looks at where all fail
    failed = [group_of([[0.0, 0.0], [0.0]], task="c", members=seen)]
    pairs = zip(
        algorithm.advantage([*groups(), *failed]),
        algorithm.advantage([without_evidence(group) for group in [*groups(), *failed]]),
        strict=True,
    )
    same = all(torch.equal(one, other) for one, other in pairs)
    assert same == METHODS[name].rewards_suffice
