"""Several processes train what one trains: replicated and sharded, on gloo."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from launching import run_ranks
from made import MadePlay
from ranks_program import METHODS, REWARD, run, run_reward
from rewardswap.errors import StopAskedError
from rewardswap.ranks import ALONE, share
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.rollout.shared import play_shared
from rewardswap.types import Task

ROUNDED = {"gradient": 2e-3, "metric": 2e-3, "master": 3e-5, "policy": 2e-2}
"""Bounds in bfloat16: gradients are up to .24, weights of 1 in steps of .008, their masters in
float32 go up to 8.5e-5, of which 2e-5 is one step to the other side."""
PROGRAM = Path(__file__).parents[1] / "ranks_program.py"


@pytest.fixture(scope="module")
def alone() -> dict[str, dict[str, torch.Tensor]]:
    methods = {name: run(name, ALONE, sharded=False) for name in METHODS}
    return {**methods, REWARD: run_reward(ALONE, sharded=False)}


@pytest.mark.parametrize("size", [2, pytest.param(4, marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", ["replicated", "sharded"])
def test_ranks_train_what_one_process_trains(
    mode: str, size: int, alone: dict[str, dict[str, torch.Tensor]], tmp_path: Path
) -> None:
    """3 groups on 2 and 4 ranks: one has more, one has none. 1 group: all others have none."""
    run_ranks(PROGRAM, [str(tmp_path), mode, *METHODS, REWARD], size)
    for name, expected in alone.items():
        ranks = [load_file(tmp_path / f"{name}-{rank}.safetensors") for rank in range(size)]
        for key, value in expected.items():
            bound = ROUNDED[key.split(".")[0]] if name == "bfloat16" else 1e-6
            for found in ranks:
                assert torch.equal(found[key], ranks[0][key]), key  # every rank knows the same
            torch.testing.assert_close(
                ranks[0][key].double(), value.double(), atol=bound, rtol=1e-6, msg=f"{name} {key}"
            )


class Rank:
    """One of several, whose others are told."""

    def __init__(self, rank: int, others: list[Any]) -> None:
        self.rank, self.size, self.others = rank, len(others) + 1, others

    def gather(self, value: Any) -> list[Any]:
        return [*self.others[: self.rank], value, *self.others[self.rank :]]

    def first(self, value: Any) -> Any:
        return self.gather(value)[0]

    def add(self, tensor: torch.Tensor) -> None:
        raise AssertionError("nothing is added here")


REQUESTS = [EpisodeRequest(Task(name, "family"), n) for name in "abc" for n in range(2)]


def test_whole_groups_are_played_and_come_back_in_order() -> None:
    """Of tasks a, b, c rank 1 of 2 plays b; what all played is in the order that was asked for."""
    mine, other = MadePlay(), MadePlay()
    theirs = other([r for r in REQUESTS if r.task.id != "b"], 1, 0, None)
    found = play_shared(mine, Rank(1, [theirs]), REQUESTS, 1, 0, None)
    assert mine.calls[0][0] == [("b", 0), ("b", 1)]
    whole = MadePlay()(REQUESTS, 1, 0, None)
    assert [(t.task.id, t.index) for t in found.trajectories] == [
        (r.task.id, r.index) for r in REQUESTS
    ]
    for one, expected in zip(found.trajectories, whole.trajectories, strict=True):
        assert one.outcome == expected.outcome and len(one.turns) == len(expected.turns)
    assert found.counters == whole.counters


def test_who_stops_stops_all() -> None:
    with pytest.raises(StopAskedError, match="another rank"):
        play_shared(MadePlay(), Rank(1, [None]), REQUESTS, 1, 0, None)

    def stopping(*_: Any) -> Played:
        raise StopAskedError

    gathered: list[Any] = []
    rank = Rank(0, [MadePlay()(REQUESTS, 1, 0, None)])
    rank.gather = lambda value: gathered.append(value) or [value]  # type: ignore[func-returns-value]
    with pytest.raises(StopAskedError):
        play_shared(stopping, rank, REQUESTS, 1, 0, None)
    assert gathered == [None]  # the others are told before it leaves


def test_every_item_is_one_ranks() -> None:
    assert share(list("abcdefgh"), ALONE) == list("abcdefgh")
    assert share(list("abcdefgh"), Rank(2, [None, None])) == ["c", "f"]
