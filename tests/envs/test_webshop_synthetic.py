"""The generated shop: every goal can be reached, and decoys differ in one thing."""

from itertools import islice, pairwise
from pathlib import Path

import pytest

from rewardswap.envs.webshop import Catalogue, TextShop, load_catalogue
from rewardswap.envs.webshop.oracle import solve
from rewardswap.envs.webshop.synthetic import (
    SyntheticProduct,
    synthetic_catalogue,
    synthetic_products,
    write_catalogue,
)


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return synthetic_catalogue(seed=1, products=300)


@pytest.mark.parametrize("seed", [0, 7])
def test_the_oracle_reaches_every_goal_by_playing(seed: int) -> None:
    catalogue = synthetic_catalogue(seed, products=400)
    shop = TextShop(catalogue)
    assert len(catalogue.goals) > 1000
    for number, goal in enumerate(catalogue.goals):
        shop.reset(number)
        steps = [shop.step(action) for action in solve(catalogue, goal)]
        assert [done for _, _, done in steps] == [False] * (len(steps) - 1) + [True]
        assert steps[-1][1] == 1.0, goal


def family(members: list[SyntheticProduct]) -> tuple[SyntheticProduct, list[SyntheticProduct]]:
    """What the instruction asks for, and its decoys."""
    (wanted,) = [member for member in members if "instruction" in member.attributes]
    return wanted, [member for member in members if member is not wanted]


def test_a_decoy_differs_in_one_attribute_one_option_or_the_price() -> None:
    products = list(synthetic_products(seed=0, products=600))
    kinds = {"attributes": 0, "options": 0, "price": 0}
    for start in range(0, 600, 3):
        wanted, decoys = family(products[start : start + 3])
        for decoy in decoys:
            differing = [
                name
                for name, same in (
                    (
                        "attributes",
                        decoy.attributes["attributes"] == wanted.attributes["attributes"],
                    ),
                    (
                        "options",
                        decoy.record["customization_options"]
                        == wanted.record["customization_options"],
                    ),
                    ("price", decoy.record["pricing"] == wanted.record["pricing"]),
                )
                if not same
            ]
            assert len(differing) == 1, (wanted, decoy)
            kinds[differing[0]] += 1
            assert decoy.record["query"] == wanted.record["query"]
            assert decoy.record["name"] != wanted.record["name"]
    assert min(kinds.values()) > 80, kinds  # 400 decoys of three sorts


def test_a_decoy_cannot_do_for_every_goal_of_its_family(catalogue: Catalogue) -> None:
    products = list(catalogue.products.values())
    goals: dict[str, list[dict]] = {}
    for goal in catalogue.goals:
        goals.setdefault(goal["asin"], []).append(goal)
    for start in range(0, 300, 3):
        members = products[start : start + 3]
        (wanted,) = [member for member in members if member.instruction]
        for decoy in members:
            if decoy is wanted:
                continue
            scores = [
                catalogue.reward(
                    decoy,
                    goal,
                    catalogue.prices[decoy.asin],
                    {
                        name: value
                        for name, value in goal["goal_options"].items()
                        if value in decoy.options[name]
                    },
                )
                for goal in goals[wanted.asin]
            ]
            assert min(scores) < 1.0, (wanted, decoy)


def test_the_same_seed_gives_the_same_shop_and_a_smaller_one_begins_a_larger() -> None:
    large = list(synthetic_products(seed=5, products=50))
    assert list(synthetic_products(seed=5, products=50)) == large
    assert list(synthetic_products(seed=5, products=20)) == large[:20]
    other = list(synthetic_products(seed=6, products=50))
    assert [product.record for product in other] != [product.record for product in large]


def test_asins_are_ten_signs_and_each_comes_once() -> None:
    asins = [product.asin for product in islice(synthetic_products(3, 10**6), 20_000)]
    assert len(set(asins)) == len(asins)
    assert {len(asin) for asin in asins} == {10}
    assert any(a > b for a, b in pairwise(asins))  # they tell nothing of the order


def test_attributes_help_a_search(catalogue: Catalogue) -> None:
    """The kind alone seldom finds a product first; its attributes beside it mostly do."""
    goals = {goal["asin"]: goal for goal in catalogue.goals}.values()

    def share(words: bool) -> float:
        found = 0
        for goal in goals:
            query = [*(goal["attributes"] if words else ()), goal["query"]]
            found += goal["asin"] in catalogue.search(" ".join(query))[:3]
        return found / len(goals)

    assert share(words=True) > share(words=False) + 0.3


def test_written_files_are_the_same_shop(tmp_path: Path) -> None:
    write_catalogue(tmp_path / "shop", seed=2, products=60)
    read, made = load_catalogue(tmp_path / "shop", seed=2), synthetic_catalogue(2, 60)
    assert read.prices == made.prices
    assert read.goals == made.goals
    for goal in made.goals[::10]:
        assert read.search(goal["query"]) == made.search(goal["query"])
        own = made.products[goal["asin"]], goal, made.prices[goal["asin"]], goal["goal_options"]
        assert read.reward(*own) == made.reward(*own) == 1.0


def test_goals_in_the_words_of_people_can_be_reached_too(tmp_path: Path) -> None:
    write_catalogue(tmp_path, seed=2, products=60)
    shop = load_catalogue(tmp_path, seed=2, instructions="human")
    assert len(shop.goals) == 20
    visitor = TextShop(shop)
    for number, goal in enumerate(shop.goals):
        visitor.reset(number)
        *_, (_, reward, done) = [visitor.step(action) for action in solve(shop, goal)]
        assert (reward, done) == (1.0, True)


@pytest.mark.parametrize("products", [0, -1, 10**6 + 1])
def test_a_size_that_no_shop_has_is_refused(products: int) -> None:
    with pytest.raises(ValueError, match=f"products is {products}"):
        synthetic_catalogue(0, products)


def test_a_folder_with_files_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "mine.txt").write_text("precious")
    with pytest.raises(ValueError, match="no empty folder"):
        write_catalogue(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]


def test_the_oracle_says_why_a_goal_cannot_be_reached(catalogue: Catalogue) -> None:
    goal = catalogue.goals[0]
    with pytest.raises(ValueError, match=r"is worth 0\.\d+, not 1"):
        solve(catalogue, {**goal, "price_upper": 0.0})
    empty = Catalogue(
        catalogue.products,
        catalogue.prices,
        catalogue.goals,
        {},
        type("None", (), {"search": lambda *_: []})(),
    )
    with pytest.raises(ValueError, match="not among the results"):
        solve(empty, goal)
