"""GiGPO by hand."""

from dataclasses import replace

import pytest
from worked import chain_loss, group_of, near, two_trajectories_loss

from rewardswap.methods.gigpo import GiGPO
from rewardswap.types import Group

HALF = 0.7071058
""".5 / (sqrt(.5) + 1e-6): the z-score of two."""


def turns(method: GiGPO, group: Group) -> list[list[float]]:
    (found,) = method.algorithm().advantage([group])
    return [
        row[: len(trajectory.turns)].tolist()
        for row, trajectory in zip(found, group.trajectories, strict=True)
    ]


def pair(**members: object) -> Group:
    """A success and a failure of two turns; the members say what they saw."""
    named = {n: {key: values[n] for key, values in members.items()} for n in range(2)}
    return group_of([[0.0, 1.0], [0.0, 0.0]], members=named)


def test_turns_of_equal_states_are_compared_with_each_other() -> None:
    # episode +-.7071; G = .95, 1 against 0, 0: +-.7071 at both states
    found = turns(GiGPO(), pair(states=(["s", "t"], ["s", "t"])))
    assert found[0] == near([2 * HALF, 2 * HALF], 3e-6)
    assert found[1] == near([-2 * HALF, -2 * HALF], 3e-6)


def test_a_state_that_one_turn_saw_adds_nothing() -> None:
    found = turns(GiGPO(), pair(states=(["s", "t"], ["s", "u"])))
    assert found[0] == near([2 * HALF, HALF], 3e-6)
    assert found[1] == near([-2 * HALF, -HALF], 3e-6)


def test_centred_parts_and_their_weight_by_hand() -> None:
    # episode +-.5; at s G = .95 and 0: +-.475, half of it
    found = turns(
        GiGPO(normalisation="mean", step_weight=0.5), pair(states=(["s", "t"], ["s", "u"]))
    )
    assert found[0] == near([0.7375, 0.5])
    assert found[1] == near([-0.7375, -0.5])


def test_a_state_seen_twice_counts_twice_with_its_discounted_returns() -> None:
    # at s G = .81, .9, 0 with mean .57; at t G = 1 alone; episode +-.5
    group = group_of(
        [[0.0, 0.0, 1.0], [0.0]],
        members={0: {"states": ["s", "s", "t"]}, 1: {"states": ["s"]}},
    )
    found = turns(GiGPO(normalisation="mean", discount=0.9), group)
    assert found[0] == near([0.5 + 0.24, 0.5 + 0.33, 0.5])
    assert found[1] == near([-0.5 - 0.57])


def test_the_episode_part_counts_trajectories_and_not_turns() -> None:
    # no two turns share a state: +-.7071 whatever the lengths
    states = [["a", "b"], list("cdefghij")]
    members = {n: {"states": states[n]} for n in range(2)}
    found = turns(GiGPO(), group_of([[0.0, 1.0], [0.0] * 8], members=members))
    assert found[0] == near([HALF] * 2)
    assert found[1] == near([-HALF] * 8)


SEEN = (["in the kitchen at noon", "left", "end"], ["in the kitchen at moon", "right", "end"])


def test_observations_are_anchors_where_asked() -> None:
    states = (["s", "t"], ["u", "v"])
    group = pair(states=states, observations=SEEN)
    equal = pair(states=states, observations=(SEEN[0], SEEN[0]))
    assert turns(GiGPO(), equal)[0] == near([HALF, HALF])
    assert turns(GiGPO(anchor="observation"), equal)[0] == near([2 * HALF, 2 * HALF], 3e-6)
    assert turns(GiGPO(anchor="observation"), group)[0] == near([HALF, HALF])
    # 21 of 22 characters are the same
    similar = GiGPO(anchor="similar_observation", similarity=0.95)
    assert turns(similar, group)[0] == near([2 * HALF, HALF], 3e-6)
    strict = GiGPO(anchor="similar_observation", similarity=0.96)
    assert turns(strict, group)[0] == near([HALF, HALF])


def test_groups_never_share_a_state() -> None:
    one = pair(states=(["s", "t"], ["u", "v"]))
    other = group_of([[0.0, 1.0], [0.0, 0.0]], task="b", members={0: {"states": ["s", "t"]}})
    first, _ = GiGPO().algorithm().advantage([one, other])
    assert first[0].tolist() == near([HALF, HALF])


def test_siblings_that_are_not_trained_on_carry_anchors() -> None:
    group = pair(states=(["s", "t"], ["s", "t"]))
    assert turns(GiGPO(), replace(group, selected=(True, False))) == turns(GiGPO(), group)


def test_loss_by_hand() -> None:
    assert two_trajectories_loss(GiGPO())[0] == near(1.11875)


def test_the_whole_chain_has_its_pinned_loss() -> None:
    assert chain_loss(GiGPO()) == near(0.16634443)


@pytest.mark.parametrize(
    "settings", [{"discount": 2.0}, {"step_weight": -1.0}, {"similarity": 1.0}]
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ValueError, match=next(iter(settings))):
        GiGPO(**settings)
