"""What is told of a split: its size, its ceiling, what was left out, and an overlap."""

from collections import Counter
from pathlib import Path

import pytest
from stocked_shop import PLAIN_MUGS, stocked_catalogue

from rewardswap.envs.webshop import Catalogue, ShopWorld, load_catalogue
from rewardswap.envs.webshop.ceiling import is_reachable, own_options, unreachable
from rewardswap.envs.webshop.remarks import ceiling_remark, products_with_half, trained_share
from rewardswap.envs.webshop.synthetic import synthetic_catalogue

SHARED = Path(__file__).parents[3] / "shared" / "webshop"

official = pytest.mark.skipif(
    not (SHARED / "items_shuffle_1000.json").is_file(),
    reason="needs WebShop's small set in ../shared/webshop",
)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return stocked_catalogue()


@pytest.fixture(scope="module")
def original() -> Catalogue:
    return load_catalogue(SHARED, seed=42, upstream_draw=True)


def test_a_split_with_a_goal_out_of_reach(catalogue: Catalogue) -> None:
    assert ShopWorld(catalogue).remarks("valid") == [
        "valid: 5 goals on 4 products; 2 products hold half of the goals",
        "valid: 1 of 5 goals cannot score 1 on their own product even with the right options "
        f"(1 product: {PLAIN_MUGS[0]}); the ceiling of success is 80.0%",
        "all splits: 1 goal of 22 left out, being equal to another in content",
        f"all splits: source of the nouns of product names: {catalogue.nouns_source}",
    ]


def test_a_split_of_one_goal(catalogue: Catalogue) -> None:
    assert ShopWorld(catalogue).remarks("test")[:2] == [
        "test: 1 goal on 1 product; 1 product holds half of the goals",
        "test: 0 of 1 goal cannot score 1 on their own product even with the right options; the "
        "ceiling of success is 100.0%",
    ]


def test_nothing_is_said_of_duplicates_where_there_are_none() -> None:
    remarks = ShopWorld(synthetic_catalogue(0, 150)).remarks("train")
    assert [remark.partition(":")[0] for remark in remarks] == ["train", "train", "all splits"]
    assert (
        remarks[2] == "all splits: source of the nouns of product names: the generator's own words"
    )


def test_remarks_on_an_unknown_split_name_the_splits(catalogue: Catalogue) -> None:
    with pytest.raises(ValueError, match=r"'moon', this world has \['test', 'train', 'valid'\]"):
        ShopWorld(catalogue).remarks("moon")


def test_what_is_out_of_reach_is_found_by_the_reward(catalogue: Catalogue) -> None:
    # "red1" counts as red when bought, and "color red1" is not the same as "red"
    assert unreachable(catalogue, range(22)) == [10]
    assert unreachable(catalogue, [11, 12]) == []


def test_more_than_twenty_products_are_not_all_named(catalogue: Catalogue) -> None:
    goal, product = catalogue.goals[10], catalogue.products[PLAIN_MUGS[0]]
    asins = [f"X{n:02}" for n in range(21)]
    many = Catalogue(
        dict.fromkeys(asins, product),
        dict.fromkeys(asins, 0.0),
        [{**goal, "asin": asin} for asin in asins],
        {asin: ["mug"] for asin in (*asins, product.asin)},
        catalogue,  # never asked
    )
    remark = ceiling_remark(many, "valid", range(21))
    assert f"(21 products: {', '.join(asins[:20])}, ...);" in remark
    assert f"(20 products: {', '.join(asins[:20])});" in ceiling_remark(many, "valid", range(20))
    assert remark.endswith("the ceiling of success is 0.0%")


def test_a_human_goal_names_values_alone(catalogue: Catalogue) -> None:
    goal = {**catalogue.goals[0], "goal_options": ["small", "red"]}
    assert own_options(goal) == {"small": "small", "red": "red"}
    assert is_reachable(catalogue, goal)
    assert own_options(catalogue.goals[0]) == {"color": "dark blue", "size": "small"}


@pytest.mark.parametrize(
    ("counts", "number"),
    [({"a": 1}, 1), ({"a": 2, "b": 1, "c": 1}, 1), ({"a": 2, "b": 2, "c": 1}, 2), ({}, 0)],
)
def test_the_fewest_products_that_hold_half(counts: dict[str, int], number: int) -> None:
    assert products_with_half(Counter(counts)) == number


def test_the_chance_that_a_held_out_goal_is_trained_on() -> None:
    assert trained_share(1000, 1) == 0.5
    assert trained_share(1000, 2) == 0.75
    assert trained_share(2000, 2) == 1 - 1 / 16


def test_the_split_by_position_tells_its_overlap() -> None:
    catalogue = synthetic_catalogue(0, 150)
    world = ShopWorld(catalogue, upstream_split=True)
    trained_on = {goal["asin"] for goal in catalogue.goals[500:]}
    seen = sum(goal["asin"] in trained_on for goal in catalogue.goals[:500])
    assert 0 < seen < 500
    one = 1 - 500 / len(catalogue.goals)
    remark = world.remarks("valid")[-1]
    assert remark.startswith(f"valid: {seen} of 500 goals ({seen / 5:.1f}%) are on products that ")
    assert f"with probability {one:.1%} (1 worker)" in remark
    assert not any("worker" in remark for remark in world.remarks("train"))


@official
def test_the_original_ceiling_and_its_large_products(original: Catalogue) -> None:
    lost = unreachable(original, range(6910))
    asins = {original.goals[number]["asin"] for number in lost}
    assert (len(lost), len(asins)) == (458, 17)
    remark = ceiling_remark(original, "all", range(6910))
    assert remark.startswith("all: 458 of 6910 goals cannot")
    assert f"(17 products: {', '.join(sorted(asins))}); the ceiling of success is 93.4%" in remark
    assert products_with_half(Counter(goal["asin"] for goal in original.goals)) == 17


@official
def test_the_original_splits(original: Catalogue) -> None:
    world = ShopWorld(original)
    sizes = {split: len(world.tasks(split)) for split in ("train", "valid", "test")}
    assert sizes == {"train": 5013, "valid": 1193, "test": 695}
    assert sum(sizes.values()) == 6910 - 9
    said = [remark for split in sizes for remark in world.remarks(split)]
    assert said[2] == "all splits: 9 goals of 6910 left out, being equal to another in content"
    lost = [int(remark.split()[1]) for remark in said[1::4]]
    assert lost == [348, 94, 12]  # 4 of the 458 are among the nine


@official
def test_the_original_overlap(original: Catalogue) -> None:
    world = ShopWorld(original, upstream_split=True)
    assert len(world.tasks("valid")) == 500
    assert len(world.tasks("train")) == 6401
    remark = world.remarks("valid")[-1]
    assert remark.startswith("valid: 481 of 500 goals (96.2%) are on products that are trained on")
    # 1 - 500/6910 and 1 - (500/6910)**2
    assert remark.endswith("probability 92.8% (1 worker) or 99.48% (2 workers)")
