"""Against WebShop's own data and the original's own words (`../shared`, skipped without)."""

import json
import lzma
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from random import Random

import pytest

from rewardswap.envs.webshop import Catalogue, TextShop, load_catalogue

SHARED = Path(__file__).parents[3] / "shared" / "webshop"

pytestmark = pytest.mark.skipif(
    not (SHARED / "items_shuffle_1000.json").is_file(),
    reason="needs WebShop's small set and the golden output in ../shared/webshop",
)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return load_catalogue(SHARED, seed=42, upstream_draw=True)


def golden_lines(name: str) -> Iterator[dict]:
    with lzma.open(SHARED / name, "rt", encoding="utf-8") as lines:
        yield from map(json.loads, lines)


def test_prices_are_equal(catalogue: Catalogue) -> None:
    golden = json.loads((SHARED / "golden_prices_seed42.json").read_bytes())
    assert len(golden) == 1000
    assert catalogue.prices == golden


def test_goals_are_equal_in_every_field(catalogue: Catalogue) -> None:
    with lzma.open(SHARED / "golden_goals_seed42.json.xz") as content:
        golden = json.load(content)
    assert len(golden) == 6910
    assert catalogue.goals == golden
    assert len({goal["asin"] for goal in golden}) == 415


def test_rewards_are_equal(catalogue: Catalogue) -> None:
    cases = list(golden_lines("golden_rewards.jsonl.xz"))
    assert len(cases) == 612
    for case in cases:
        asked = case["goal"], case["price"], case["options"]
        assert catalogue.reward(case["product"], *asked) == case["reward"], case["id"]
        ours = catalogue.products[case["product"]["asin"]]
        assert catalogue.reward(ours, *asked) == case["reward"], case["id"]


def test_search_finds_the_same_products(catalogue: Catalogue) -> None:
    cases = list(golden_lines("golden_search.jsonl.xz"))
    assert len(cases) == 465
    for case in cases:
        assert catalogue.search(case["q"]) == case["asins"], case["q"]


def play(shop: TextShop, episode: dict) -> int:
    """Every step is equal; returns their number."""
    first, *steps = episode["steps"]
    assert shop.reset(episode["goal_idx"]) == first["obs"]
    for step in episode["steps"]:
        place = (episode["goal_idx"], step.get("action"))
        if step is not first:
            answer = shop.step(step["action"])
            assert answer == (step["obs"], step["reward"], step["done"]), place
        if "avail" in step:
            assert shop.clickables == step["avail"]["clickables"], place
            assert shop.has_search_bar == step["avail"]["has_search_bar"], place
    return len(steps)


def test_text_episodes_are_equal_at_every_step(catalogue: Catalogue) -> None:
    episodes = list(golden_lines("golden_traj.jsonl.xz"))
    assert len(episodes) == 250
    shop = TextShop(catalogue)
    assert sum(play(shop, episode) for episode in episodes) == 3262


def test_text_rich_episodes_are_equal_at_every_step(catalogue: Catalogue) -> None:
    episodes = list(golden_lines("golden_traj_rich.jsonl.xz"))
    assert len(episodes) == 20
    shop = TextShop(catalogue, mode="text_rich")
    assert sum(play(shop, episode) for episode in episodes) == 232


def test_what_no_purchase_can_win(catalogue: Catalogue) -> None:
    """An artefact of the colour rule: these goals stay below 1 on their own product."""
    lost = []
    for goal in catalogue.goals:
        asin, options = goal["asin"], goal["goal_options"]
        assert isinstance(options, dict)
        product, price = catalogue.products[asin], catalogue.prices[asin]
        if catalogue.reward(product, goal, price, options) != 1.0:
            lost.append(asin)
    assert (len(lost), len(set(lost))) == (458, 17)


def test_human_goals_are_those_of_the_file() -> None:
    catalogue = load_catalogue(SHARED, seed=1, instructions="human")
    table = json.loads((SHARED / "items_human_ins.json").read_bytes())
    written = [entry for entries in table.values() for entry in entries]
    kept = [entry for entry in written if entry["instruction_attributes"]]
    assert len(catalogue.goals) == len(kept) > 0
    assert {goal["asin"] for goal in catalogue.goals} <= set(table)


def test_other_seeds_draw_other_prices_within_the_range(catalogue: Catalogue) -> None:
    other = load_catalogue(SHARED, seed=7)
    ranges = [p for p in other.products.values() if len(p.pricing) == 2]
    assert len(ranges) == 93
    for product in ranges:
        low, high = sorted(product.pricing)
        assert low <= other.prices[product.asin] <= high
    assert any(other.prices[p.asin] != catalogue.prices[p.asin] for p in ranges)


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_256_visitors_take_under_20_megabytes(catalogue: Catalogue, mode: str) -> None:
    random = Random(0)
    tracemalloc.start()
    shops = [TextShop(catalogue, mode) for _ in range(256)]
    for place, shop in enumerate(shops):
        shop.reset(place)
        shop.step(f"search[{shop.goal['query']}]")
        for _ in range(6):
            if texts := shop.clickables:
                shop.step(f"click[{random.choice(texts)}]")
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert used < 20e6
