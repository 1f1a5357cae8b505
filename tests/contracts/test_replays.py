"""What every replay buffer must do, so that the loop cannot tell them apart."""

import json
from collections.abc import Callable

import pytest
import torch

from made import made_group
from rewardswap.replay import Replay, ReplayBuffer
from rewardswap.replay_staleness import Staleness, StalenessReplay

GROUPS = [made_group("a", (0, 0, 1, 0)), made_group("b", (1, 1, 1, 0)), made_group("c", (0, 0))]
Make = Callable[[int, int], Replay]
MAKERS: dict[str, Make] = {
    "of one loop": lambda capacity, seed: ReplayBuffer(capacity, seed),
    "of one loop, groups": lambda capacity, seed: ReplayBuffer(capacity, seed, unit="group"),
    "aging": lambda capacity, seed: StalenessReplay(capacity, seed, Staleness()),
    "aging, groups": lambda capacity, seed: StalenessReplay(capacity, seed, Staleness(), "group"),
}


@pytest.fixture(params=MAKERS)
def make(request: pytest.FixtureRequest) -> Make:
    return MAKERS[request.param]


def drawn(buffer: Replay, count: int) -> list[tuple[str, int]]:
    return [
        (group.task.id, n)
        for group in buffer.sample(count)
        for n, chosen in enumerate(group.selected)
        if chosen
    ]


def test_everything_is_drawn_once_before_anything_is_drawn_twice(make: Make) -> None:
    buffer = make(100, 0)
    assert (len(buffer), buffer.success_share(), buffer.successes()) == (0, 0.0, 0)
    buffer.add(GROUPS)
    assert len(buffer) == 10
    found = [place for _ in range(5) for place in drawn(buffer, 2)]
    assert len(set(found)) == 10
    assert buffer.refills == 0
    assert len(drawn(buffer, 3)) == 3
    assert buffer.refills == 1
    assert (buffer.success_share(), buffer.successes()) == (pytest.approx(4 / 10), 4)


def test_groups_stay_whole_and_are_marked_replayed(make: Make) -> None:
    buffer = make(100, 0)
    buffer.add([made_group("a", (0, 1, 0)).with_column("behavior_logprob", torch.zeros(3, 3, 3))])
    for (group,) in (buffer.sample(1), buffer.groups):
        assert group.replayed
        assert len(group.trajectories) == 3
        assert "behavior_logprob" in group.columns
    assert buffer.groups[0].selected == (True,) * 3


def test_the_seed_decides(make: Make) -> None:
    orders = []
    for seed in (1, 1, 2):
        buffer = make(100, seed)
        buffer.add([made_group(str(g), (0, 0, 0, 0)) for g in range(4)])
        orders.append([buffer.sample(1)[0].task.id for _ in range(16)])
    assert orders[0] == orders[1] != orders[2]


def test_more_than_it_holds_is_refused_and_counted(make: Make) -> None:
    buffer = make(4, 0)
    buffer.add(GROUPS)
    assert (len(buffer), buffer.evicted) == (4, 6)
    with pytest.raises(ValueError, match="holds 4 trajectories, 5 were asked"):
        buffer.sample(5)
    with pytest.raises(ValueError, match="at least 1 trajectory, got 0"):
        make(0, 0)


def test_it_goes_on_from_its_state_as_if_nothing_had_happened(make: Make) -> None:
    buffer = make(7, 3)
    buffer.add(GROUPS)
    buffer.clear()
    buffer.add([made_group("d", (1, 0, 0, 1))])
    buffer.sample(3)
    other = make(7, 3)
    other.restore(json.loads(json.dumps(buffer.state())), buffer.stored())
    for again in (buffer, other):
        again.sample(2)
    assert drawn(buffer, 3) == drawn(other, 3)
    for again in (buffer, other):
        again.clear()
        again.add(GROUPS)
    assert drawn(buffer, 5) == drawn(other, 5)
    assert buffer.state() == other.state()
