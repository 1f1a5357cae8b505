"""What a plan says of devices that divide the weights."""

from dataclasses import replace

import pytest

from rewardswap.env_config.alfworld import Alfworld
from rewardswap.plan.command import make_plan
from rewardswap.plan.settings import PlanSettings
from rewardswap.recipes import demo

WORLD = Alfworld(generated_games=40, evaluation_tasks=2)
RUN = replace(demo(), env=WORLD)
SHARDED = replace(RUN, policy=replace(RUN.policy, sharded=True))


def test_parts_of_the_weights_by_hand() -> None:
    """957,824 weights in float32 on 4 devices: 957,824 bytes of weights and of gradients each."""
    sizing = make_plan(SHARDED, PlanSettings(devices=4)).sizing
    update = sizing.memory().phases["update"]
    assert update["weights"] == update["gradients"] == 957_824
    assert update["sampler's copy"] == 4 * 957_824
    # moments: two of 4 bytes a weight, and a counter of 4 bytes for each of 39 tensors, by 4
    tensors = len(sizing.models.policy.sizes)
    assert update["moments"] == -(-(8 * 957_824 + 4 * tensors) // 4)
    ends = 957_824 - sizing.shape.multiplied
    layers = 2 * sizing.shape.multiplied // sizing.shape.layers
    assert update["weights that are together"] == 8 * (ends + layers)
    assert update["process reward's trunk"] == -(-sizing.models.backbone // 4)


@pytest.mark.parametrize("devices", [1, 4])
def test_without_sharding_every_device_has_all(devices: int) -> None:
    whole = make_plan(RUN, PlanSettings(devices=devices)).memory.phases["update"]
    assert whole["weights"] == 4 * 957_824
    assert not {"sampler's copy", "weights that are together"} & set(whole)


def test_one_device_has_nothing_to_divide() -> None:
    assert make_plan(SHARDED, PlanSettings()).memory == make_plan(RUN, PlanSettings()).memory
