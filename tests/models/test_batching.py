"""Rows, columns and minibatches."""

from dataclasses import replace

import pytest
import torch

from made import made_group, made_trajectory
from rewardswap.models.batching import collate, microbatches, minibatches, rows_of, uncollate
from rewardswap.types import Group, Task


def test_two_turns_that_extend_are_one_row() -> None:
    trajectory = made_trajectory(lengths=((3, 2), (2, 3)))
    (row,) = rows_of(trajectory, 7)
    first, second = trajectory.turns
    # P0 (3) A0 (2) P1 (2) A1 (3): ten tokens, actions at 3 and at 3 + 2 + 2 = 7
    assert row.spans == ((0, 3), (1, 7))
    expected = [*first.context_ids, *first.action_ids, *second.context_ids, *second.action_ids]
    assert row.tokens.tolist() == [int(token) for token in expected]
    assert row.trajectory == 7


def test_a_turn_that_does_not_extend_starts_a_row() -> None:
    trajectory = made_trajectory(lengths=((3, 2), (2, 3), (1, 1)), fresh_rows=(0, 1))
    rows = rows_of(trajectory, 0)
    assert [row.spans for row in rows] == [((0, 3),), ((1, 2), (2, 6))]


def test_an_action_without_context_is_refused_with_its_task() -> None:
    trajectory = made_trajectory(task="kitchen-7", lengths=((0, 2),))
    with pytest.raises(ValueError, match="kitchen-7"):
        rows_of(trajectory, 0)


def test_the_mask_is_true_exactly_at_sampled_tokens() -> None:
    group = made_group(outcomes=(0.0, 1.0, 0.0))
    batch = collate([group])
    for b, trajectory in enumerate(group.trajectories):
        sampled = [int(i) for turn in trajectory.turns for i in turn.action_ids]
        assert batch.tokens[b][batch.action_mask[b]].tolist() == sampled
    assert int(batch.action_mask.sum()) == sum(t.action_token_count for t in group.trajectories)


def test_columns_come_back_as_they_went() -> None:
    group = made_group(outcomes=(0.0, 1.0, 0.0))
    column = torch.arange(3 * 3 * 3).reshape(3, 3, 3).float() * group.token_mask
    batch = collate([group.with_column("x", column)])
    (back,) = uncollate([group], batch.column("x"))
    assert torch.equal(back, column)
    assert float(batch.column("x")[~batch.action_mask].abs().sum()) == 0


def test_a_turn_column_stands_at_each_of_the_turns_tokens() -> None:
    group = made_group(outcomes=(0.0, 1.0))
    batch = collate([group.with_column("x", torch.tensor([[1.0, 2.0], [3.0, 0.0]]))])
    assert batch.column("x")[0][batch.action_mask[0]].tolist() == [1, 1, 2, 2, 2]
    assert batch.column("x")[1][batch.action_mask[1]].tolist() == [3]


def test_siblings_that_are_not_selected_have_no_row() -> None:
    group = replace(made_group(outcomes=(0.0, 1.0, 0.0)), selected=(False, True, True))
    column = torch.ones(3, 3, 3) * group.token_mask
    batch = collate([group.with_column("x", column)])
    assert len(batch) == 2
    (back,) = uncollate([group], batch.column("x"))
    assert float(back[0].sum()) == 0
    assert torch.equal(back[1:], column[1:])


def test_minibatches_hold_whole_trajectories_and_both_kinds() -> None:
    fresh = [made_group("a", (0.0, 1.0, 0.0)), made_group("b", (0.0, 1.0, 0.0))]
    stored = replace(made_group("c", (0.0, 1.0)), replayed=True)
    batch = collate([*fresh, stored])
    parts = list(minibatches(batch, 2))
    assert sorted(int(row) for part in parts for row in part) == list(range(len(batch)))
    for part in parts:
        assert batch.replayed[part].sum() == 1
        assert (~batch.replayed[part]).sum() == 3
    with pytest.raises(ValueError, match=r"8 trajectories into 9 minibatches"):
        list(minibatches(batch, 9))


def test_microbatches_keep_the_budget_and_lose_nothing() -> None:
    batch = collate([made_group("a", (0.0,) * 6), made_group("b", (1.0,) * 6)])
    parts = list(microbatches(batch, 24))
    assert sorted(int(row) for part in parts for row in part) == list(range(12))
    assert all(len(part) * int(batch.lengths[part].max()) <= 24 for part in parts)
    assert [len(part) for part in microbatches(batch, 1)] == [1] * 12


def test_microbatches_of_whole_trajectories_cut_none_of_them() -> None:
    """Trajectories of three rows each, of different lengths; what is too long stands alone."""
    lengths = [((n + 1, 1),) * 3 for n in (4, 1, 6, 2)]
    members = [made_trajectory("a", n, shape, 0.0, range(3)) for n, shape in enumerate(lengths)]
    batch = collate([Group(Task("a", "family"), tuple(members))])
    assert len(batch) == 12
    for tokens in (1, 40, 60, 10_000):
        parts = list(microbatches(batch, tokens, whole_trajectories=True))
        assert sorted(int(row) for part in parts for row in part) == list(range(12))
        homes = [set(batch.trajectory[part].tolist()) for part in parts]
        assert sum(map(len, homes)) == 4  # no trajectory is in two parts
        for part, home in zip(parts, homes, strict=True):
            assert len(part) == 3 * len(home)
            assert len(home) == 1 or len(part) * int(batch.lengths[part].max()) <= tokens
    counts = [len(list(microbatches(batch, n, whole_trajectories=True))) for n in (1, 40, 10_000)]
    assert counts == [4, 3, 1]
    assert any(
        len(set(batch.trajectory[part].tolist())) * 3 != len(part)
        for part in microbatches(batch, 40)
    )


def test_columns_of_all_groups_must_be_the_same() -> None:
    one, other = made_group("a"), made_group("b").with_column("x", torch.zeros(2, 2))
    with pytest.raises(ValueError, match=r"task 'b' has columns \['x'\]"):
        collate([one, other])
