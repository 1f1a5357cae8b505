"""Prices, goals, matching and the reward, worked out by hand."""

from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from small_shop import MUG, SHIRT, small_catalogue

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.goals import draw_limit
from rewardswap.envs.webshop.matching import common_length, plain_colour, token_set_ratio
from rewardswap.envs.webshop.prices import parse_prices
from rewardswap.envs.webshop.reward import count_options, title_score, type_factor


@pytest.fixture(scope="module")
def shop() -> Catalogue:
    return small_catalogue()


@pytest.mark.parametrize(
    ("listing", "prices"),
    [
        ("$5", (5.0,)),
        ("$1,007.50 - $2,000", (1007.5, 2000.0)),
        ("from $3 to $4 or $5", (3.0, 4.0)),
    ],
)
def test_prices_are_the_numbers_after_dollars(listing: str, prices: tuple[float, ...]) -> None:
    assert parse_prices(listing) == prices


def test_a_limit_is_one_of_the_next_steps_and_never_the_first() -> None:
    limits = {draw_limit(12.5, Random(seed)) for seed in range(200)}
    assert {limit.dollars for limit in limits} == {30.0, 40.0, 50.0}
    assert {limit.text for limit in limits} >= {", and price lower than 30.00 dollars"}
    assert draw_limit(975.0, Random(0)).dollars == 990.0
    assert draw_limit(980.0, Random(0)) == (1000000, "")


def test_goals_cross_all_options_by_name(shop: Catalogue) -> None:
    assert [goal["goal_options"] for goal in shop.goals] == [
        {"color": "dark blue", "size": "small"},
        {"color": "dark blue", "size": "10 | 12 ounce"},
        {"color": "red", "size": "small"},
        {"color": "red", "size": "10 | 12 ounce"},
    ]
    text, limit = shop.goals[3]["instruction_text"], shop.goals[3]["price_upper"]
    assert text == (
        "Find me easy clean mugs with color: red, and size: 10 | 12 ounce"
        f", and price lower than {limit:.2f} dollars"
    )
    assert {goal["weight"] for goal in shop.goals} == {0.25}


@pytest.mark.parametrize(
    ("a", "b", "ratio"),
    [
        ("large", "('size', 'large')", 100),  # one set of words contains the other
        ("Easy-Clean!", "clean EASY", 100),
        ("", "large", 0),
        ("!!!", "!!!", 0),
        ("abc", "abd", 67),  # 1 - 2 edits / 6 letters
        ("red cup", "red cap", 86),  # 1 - 2 / 14
        ("blau", "bl\xfcau", 100),  # characters 128 to 255 are dropped
        ("cup 中", "cup 文", 80),  # 1 - 2 / 10
        ("cups 中文字", "cups x", 80),  # the common word against "cups x": 1 - 2 / 10
    ],
)
def test_similarity_of_word_sets(a: str, b: str, ratio: int) -> None:
    assert token_set_ratio(a, b) == token_set_ratio(b, a) == ratio


@settings(max_examples=50, deadline=None)
@given(st.text("ab", max_size=8), st.text("ab", max_size=8))
def test_common_length_is_that_of_the_plain_recursion(a: str, b: str) -> None:
    rows = [[0] * (len(b) + 1) for _ in range(len(a) + 1)]
    for i, x in enumerate(a, 1):
        for j, y in enumerate(b, 1):
            longest = max(rows[i - 1][j], rows[i][j - 1])
            rows[i][j] = rows[i - 1][j - 1] + 1 if x == y else longest
    assert common_length(a, b) == rows[-1][-1]


@settings(max_examples=50, deadline=None)
@given(st.text(max_size=20), st.text(max_size=20))
def test_similarity_is_symmetric_and_within_bounds(a: str, b: str) -> None:
    assert token_set_ratio(a, b) == token_set_ratio(b, a)
    assert 0 <= token_set_ratio(a, b) <= 100
    assert token_set_ratio(a, a) in (0, 100)


def test_colours() -> None:
    assert plain_colour("dark blue") == "blue"  # the list's order, not the text's
    assert plain_colour("5 inch") == "5 inch"
    assert plain_colour(("color", "red")) == "red"  # an element that equals a colour
    assert plain_colour(("color", "dark blue")) == ("color", "dark blue")


def test_options_of_goals_by_name_and_by_value() -> None:
    assert count_options(["red plaid"], [("color", "red")]) == 1
    assert count_options(["dark blue"], ["navy blue"]) == 1
    assert count_options(["small"], [("size", "small"), ("color", "red")]) == 1
    assert count_options([], ["small"]) == 0


def test_a_colour_of_two_words_is_missed_in_a_goal_by_name() -> None:
    """The artefact: "dark blue" is bought as "blue", the goal's pair keeps both words."""
    assert count_options(["blueberry"], [("color", "blueberry")]) == 0


def test_a_title_s_score_counts_duplicates_in_the_total_only() -> None:
    assert title_score(["mug", "blue"], ["mug", "mug", "cup"]) == 1 / 3
    assert title_score([], ["mug"]) == 0.0
    assert title_score(["mug"], []) == 0.2


def test_the_type_factor_s_four_values(shop: Catalogue) -> None:
    mug, goal = shop.products[MUG], shop.goals[0]
    other = {**goal, "query": "plates", "product_category": "Toys › Games"}

    def factor(goal: dict, *wanted: str) -> float:
        return type_factor(mug, goal, {MUG: ("blue", "mug"), "goal": wanted})

    many = tuple(f"word{k}" for k in range(9))
    assert factor({**other, "asin": "goal"}, "mug") == 1.0  # alike by title
    assert factor({**other, "asin": "goal"}, "mug", *many[:5]) == 0.5
    assert factor({**goal, "asin": "goal"}, "mug", *many[:5]) == 1.0  # alike by query
    twice = {**other, "product_category": "Dining › Mugs", "asin": "goal"}
    assert factor(twice, "mug", *many[:5]) == 1.0  # two categories
    assert factor({**goal, "asin": "goal"}, "mug", *many, *many) == 0.1  # in spite of the query
    assert factor({**goal, "asin": "goal"}, "cup") == 0.0
    assert factor({**other, "asin": "goal"}) == 0.5  # no nouns: 0.2, which is not above 0.2


def test_the_reward_is_the_share_of_what_was_asked(shop: Catalogue) -> None:
    mug, goal = shop.products[MUG], shop.goals[2]
    price, chosen = shop.prices[MUG], {"color": "red", "size": "small"}
    assert shop.reward(mug, goal, price, chosen) == 1.0
    assert shop.reward(mug, goal, price, {"color": "red"}) == 0.75
    assert shop.reward(mug, goal, 1000.0, {"color": "red"}) == 0.5
    assert shop.reward(mug, {**goal, "attributes": ["sharp"]}, price, chosen) == 0.75
    assert shop.reward(mug, {**goal, "attributes": ["made with care"]}, price, chosen) == 1.0
    assert shop.reward(shop.products[SHIRT], goal, price, chosen) == 0.0


def test_a_product_in_the_original_s_form(shop: Catalogue) -> None:
    ours, goal = shop.products[MUG], shop.goals[2]
    record = {
        "asin": MUG,
        "Title": ours.name,
        "query": ours.query,
        "product_category": ours.product_category,
        "Description": ours.description,
        "BulletPoints": list(ours.bullets),
        "Attributes": list(ours.attributes),
    }
    chosen = {"color": "red", "size": "small"}
    assert shop.reward(record, goal, 12.5, chosen) == 1.0
    with pytest.raises(ValueError, match="'BulletPoints' is a str, expected a list of texts"):
        shop.reward({**record, "BulletPoints": "x"}, goal, 12.5, chosen)


def test_an_unknown_product_is_refused(shop: Catalogue) -> None:
    goal = {**shop.goals[0], "asin": "B999999999"}
    with pytest.raises(ValueError, match="no nouns are known for product 'B999999999'"):
        shop.reward(shop.products[MUG], goal, 1.0, {})
