"""What the recipes for the field's models take from whom."""

import pytest

from rewardswap.env_config.webshop import WebShop
from rewardswap.loops.settings import RewardSwap
from rewardswap.methods.gigpo import GiGPO
from rewardswap.recipes import RECIPES, demo

WEBSHOP = [name for name in RECIPES if name.startswith("webshop-") and "demo" not in name]


def test_every_recipe_has_its_name_and_one_line_on_it() -> None:
    for name, make in RECIPES.items():
        assert make().recipe == name
        assert (make.__doc__ or "").splitlines()[0].endswith(".")


def test_webshop_stands_beside_every_recipe_for_alfworld() -> None:
    alfworld = [name for name in RECIPES if name.startswith("alfworld-")]
    assert [name.replace("alfworld", "webshop") for name in alfworld] == WEBSHOP
    for one, other in zip(alfworld, WEBSHOP, strict=True):
        alf, shop = RECIPES[one](), RECIPES[other]()
        assert (type(alf.method), alf.loop, alf.batch) == (
            type(shop.method),
            shop.loop,
            shop.batch,
        )


@pytest.mark.parametrize("name", WEBSHOP)
def test_the_fields_settings_of_webshop(name: str) -> None:
    run = RECIPES[name]()
    assert isinstance(run.env, WebShop)
    assert (run.env.turns, run.env.prompt, run.env.instructions) == (15, "verl_agent", "synthetic")
    assert run.env.decided("full").mode == "text"
    assert not run.env.upstream_split
    assert (run.policy.learning_rate, run.policy.minibatches) == (1e-6, 16)
    assert (run.policy.temperature, run.evaluation_temperature) == (1.0, 0.4)
    assert (run.batch.tasks, run.batch.group_size, run.budget) == (16, 16, 150)
    assert run.swap == RewardSwap()
    assert (run.method.kl_coefficient, run.method.clip_low, run.method.clip_high) == (
        0.01,
        0.2,
        0.2,
    )
    assert run.method.importance_cap == ("truncate" if "stable" in name else "none")
    if isinstance(run.method, GiGPO):
        assert run.method.normalisation == "mean"


def test_the_demos_of_both_environments_are_the_same_but_for_the_world() -> None:
    shop, alone = RECIPES["webshop-demo"](), RECIPES["webshop-demo-grpo"]()
    assert isinstance(shop.env, WebShop)
    assert shop.policy.model is None and shop.env.data is None
    assert (shop.method, shop.loop) == (demo().method, "rspo")
    assert (alone.method, alone.env, alone.loop) == (shop.method, shop.env, "on_policy")
