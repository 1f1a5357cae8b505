"""A hundred thousand random actions: no crash, and what is not offered changes nothing."""

from collections.abc import Iterator
from random import Random

import pytest

from rewardswap.envs.webshop import TextShop
from rewardswap.envs.webshop.synthetic import synthetic_catalogue
from rewardswap.envs.webshop.world import ShopWorld

STRANGE = (
    "",
    " ",
    "\x00",
    "click[\x00]",
    "search[\x00]",
    "search[]",
    "click[]",
    "search[[[[[]]]]]",
    "click[a[b[c]d]e]",
    "search[\n]",
    "click[buy now]\nsearch[x]",
    "\n\n\r\t",
    "search[😀🛒👍🏽]",
    "click[😀]",
    "search[手机壳 携帯 شراء סל हिन्दी ไทย]",
    "click[购买]",
    "search[" + "a" * 100_000 + "]",
    "search[" + "red shirt " * 10_000 + "]",
    "[" * 100_000,
    "]" * 100_000,
    "click[" * 20_000 + "]" * 20_000,
    "x" * 100_000,
    "search[ﬁ ß İ ı ſ \u200b\u202e\ufeff]",
    "search[\ud800]",
    "CLICK[BUY NOW]",
    "Search[shirt]",
    "click[search]",
    "click[b0sw999999]",
    "click[B000000000]",
    "search[<r> 0]",
    "search[<a>]",
    "think[a]",
    '{"action": "click"}',
    "search[color:red size:(small OR large)^2 ~ * ?]",
)


def random_actions(random: Random, offered: list[str], words: list[str]) -> Iterator[str]:
    """Half of them strange or not offered, half offered or sensible searches."""
    while True:
        draw = random.random()
        if draw < 0.05:
            yield random.choice(STRANGE[:16]) if draw < 0.0499 else random.choice(STRANGE)
        elif draw < 0.25:
            yield f"click[{random.choice(words)}]"
        elif draw < 0.3:
            yield "".join(
                random.choices("searchclick[] \n<>|aeiou0123🙂é", k=random.randint(0, 40))
            )
        elif draw < 0.5:
            yield f"search[{' '.join(random.choices(words, k=random.randint(1, 4)))}]"
        else:
            yield f"click[{random.choice(offered)}]" if offered else "search[shirts]"


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_fifty_thousand_random_actions(mode: str) -> None:
    catalogue = synthetic_catalogue(seed=0, products=200)
    words = sorted({w for p in catalogue.products.values() for w in p.contents.split()})
    random = Random(mode)
    shop = TextShop(catalogue, mode)
    offered: list[str] = []
    actions = random_actions(random, offered, words)
    page, done, bought = "", True, 0
    for _ in range(50_000):
        if done:
            page = shop.reset(random.randrange(len(catalogue.goals)))
        offered[:] = shop.clickables
        action = next(actions)
        accepted = shop.accepts(action)
        seen, reward, done = shop.step(action)
        assert isinstance(seen, str)
        assert 0.0 <= reward <= 1.0
        assert accepted or (seen, reward, done) == (page, 0.0, False), action
        bought += done
        page = seen
    assert bought > 300


@pytest.mark.parametrize("action", STRANGE, ids=range(len(STRANGE)))
@pytest.mark.parametrize("mode", ["text", "text_rich", "short"])
def test_strange_actions_on_every_kind_of_page(action: str, mode: str) -> None:
    world = ShopWorld(synthetic_catalogue(seed=0, products=60), mode=mode)
    environment = world.make()
    task = world.tasks("train")[0]
    goal = world.catalogue.goals[world.goal_number(task)]
    path = [f"search[{goal['query']}]", None, "click[description]"]
    for length in range(len(path) + 1):
        before = environment.reset(task)
        for place in path[:length]:
            first = next((a for a in before.admissible if a.startswith("click[b0sw")), "")
            before = environment.step(place or first).observation
        step = environment.step(action)
        assert not step.terminated or action.startswith("click[buy now]")
        if not step.valid:
            assert step.observation.state_key == before.state_key
            assert step.observation.admissible == before.admissible
