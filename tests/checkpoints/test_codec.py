"""State that goes to JSON and tensors comes back to the bit."""

import json
from collections import Counter, deque
from typing import Any

import numpy as np
import pytest
import torch

from made import made_trajectory
from rewardswap.checkpoints.codec import Encoded, decode, encode
from rewardswap.collection import Collected
from rewardswap.models.learner import Snapshot
from rewardswap.types import Group

TASK = made_trajectory().task


def through_json(state: Any) -> Any:
    encoded = encode(state)
    tree, trajectories = json.loads(json.dumps([encoded.tree, encoded.trajectories]))
    return decode(Encoded(tree, trajectories, encoded.tensors))


def made_group() -> Group:
    trajectories = tuple(made_trajectory(index=n) for n in range(2))
    reward = torch.tensor([[0.1, 0.2], [0.3, 1 / 3]])
    return Group(TASK, trajectories, {"process": reward}, reward, selected=(True, False))


@pytest.mark.parametrize(
    "value",
    [
        None,
        True,
        -0.0,
        1 / 3,
        5e-324,
        float("inf"),
        2**63 - 1,
        "\x1b[31m\ud7ff\u2028'\"",
        [],
        (),
        (1, [2.5, (None,)], "x"),
        {"a": {"tuple": 1}, "table": [1]},
        {0: "a", (1, 2): {"b": ()}},
        Counter({"a": 2}),
    ],
    ids=repr,
)
def test_plain_values_keep_their_kind(value: Any) -> None:
    found = through_json(value)
    assert repr(found) == repr(value)
    assert type(found) is type(value)


def test_a_number_of_numpy_is_a_number() -> None:
    assert repr(through_json([np.float64(0.1)])) == "[0.1]"


def test_tensors_keep_type_shape_and_bits() -> None:
    whole = torch.arange(12, dtype=torch.float32)
    state = {
        "bfloat16": torch.tensor([1.5, float("nan")], dtype=torch.bfloat16),
        "bytes": torch.arange(7, dtype=torch.uint8),
        "bool": torch.tensor([True, False]),
        "scalar": torch.tensor(3.0),
        "empty": torch.zeros(0, 4),
        "view": whole[3:7],
        "turned": whole.reshape(3, 4).T,
        "again": whole,
        "first": whole,
    }
    found = through_json(state)
    for name, tensor in state.items():
        assert found[name].dtype == tensor.dtype
        assert found[name].shape == tensor.shape
        assert torch.equal(found[name].nan_to_num(), tensor.nan_to_num())


def test_groups_come_back_and_a_trajectory_that_was_one_is_one_again() -> None:
    group = made_group()
    state = {"seen": [group], "first": Collected([group], {"seconds": 0.5}, 2, Counter(a=2))}
    found = through_json(state)
    back = found["seen"][0]
    assert back.selected == group.selected
    assert back.task == group.task
    assert torch.equal(back.reward, group.reward)
    assert back.trajectories[0] is found["first"].groups[0].trajectories[0]
    for one, other in zip(back.trajectories, group.trajectories, strict=True):
        for turn, wanted in zip(one.turns, other.turns, strict=True):
            assert turn.logprobs.dtype == np.float32
            assert turn.action_ids.tolist() == wanted.action_ids.tolist()
            assert turn.logprobs.tobytes() == wanted.logprobs.tobytes()
            assert (turn.observation, turn.reward) == (wanted.observation, wanted.reward)
        assert one.outcome == other.outcome
        assert one.final_context_ids.tolist() == other.final_context_ids.tolist()
    assert found["first"].episodes == {"a": 2}
    assert len(encode(state).trajectories) == 2


def test_a_snapshot_comes_back() -> None:
    state = {"param_groups": [{"lr": 1e-3, "betas": (0.9, 0.999)}], "state": {0: {"step": 2}}}
    snapshot = Snapshot({"w": torch.ones(2)}, [], state, 7, 3, torch.get_rng_state())
    found = through_json(snapshot)
    assert found.optimizer == state
    assert (found.version, found.skipped_in_a_row) == (7, 3)
    assert torch.equal(found.random_state, snapshot.random_state)


@pytest.mark.parametrize("value", [{1, 2}, deque([1]), object(), np.zeros((2, 2))])
def test_what_is_not_known_is_refused(value: Any) -> None:
    with pytest.raises(TypeError, match="cannot be kept"):
        encode({"x": [value]})


@pytest.mark.parametrize(
    "tree",
    [
        {},
        {"a": 1, "b": 2},
        {"os.system": "x"},
        {"tensor": "9"},
        {"part": "0"},
        {"array": ["integers"]},
        {"trajectory": 3},
        {"task": [["id", "x"]]},
        {"group": 5},
        {"table": [[1]]},
    ],
    ids=str,
)
def test_what_is_no_state_is_refused(tree: Any) -> None:
    empty = encode([]).tensors
    with pytest.raises(ValueError, match=r"no state of a run|values to unpack"):
        decode(Encoded(tree, [], empty))
