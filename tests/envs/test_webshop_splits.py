"""Task ids by content, and splits that share no product."""

import json
from collections import Counter
from hashlib import sha256
from itertools import cycle

import pytest
from small_shop import MUG, SHIRT, small_catalogue
from stocked_shop import PLAIN_MUGS, stocked_catalogue

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.goals import Goal
from rewardswap.envs.webshop.splits import (
    SHARES,
    UPSTREAM_VALID,
    check_disjoint,
    distinct_goals,
    goal_id,
    split_by_position,
    split_by_product,
    split_of,
)
from rewardswap.envs.webshop.synthetic import synthetic_catalogue


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return stocked_catalogue()


@pytest.fixture(scope="module")
def goal(catalogue: Catalogue) -> Goal:
    return catalogue.goals[0]


def test_an_id_is_the_hash_of_what_makes_the_goal(goal: Goal) -> None:
    text = "Find me easy clean mugs with color: dark blue, and size: small"
    assert goal["instruction_text"] == f"{text}, and price lower than 50.00 dollars"
    content = (
        '{"asin":"B000000001","attributes":["easy clean"],'
        '"options":{"color":"dark blue","size":"small"},"price_upper":50.0,'
        f'"text":"{text}, and price lower than 50.00 dollars"}}'
    )
    assert goal_id(goal) == sha256(content.encode()).hexdigest()[:16]


@pytest.mark.parametrize(
    "change",
    [
        {"asin": SHIRT},
        {"instruction_text": "Find me mugs"},
        {"attributes": []},
        {"goal_options": {"color": "dark blue"}},
        {"goal_options": ["dark blue", "small"]},
        {"price_upper": 60.0},
    ],
)
def test_a_change_of_the_goal_changes_the_id(goal: Goal, change: dict) -> None:
    assert goal_id({**goal, **change}) != goal_id(goal)


def test_what_the_goal_does_not_ask_for_does_not_change_the_id(goal: Goal) -> None:
    swapped = dict(reversed(goal["goal_options"].items()))
    other = {**goal, "weight": 0.5, "query": "cups", "goal_options": swapped, "price_upper": 50}
    assert json.dumps(other) != json.dumps(goal)
    assert goal_id(other) == goal_id(goal)


def test_of_equal_goals_the_first_is_kept_and_ids_are_sorted(catalogue: Catalogue) -> None:
    numbers = distinct_goals(catalogue.goals)
    ids = [goal_id(goal) for goal in catalogue.goals]
    assert ids[14] == ids[15]
    assert sorted(numbers.values()) == [n for n in range(22) if n != 15]
    assert list(numbers) == sorted(set(ids))


def test_a_product_is_in_the_split_of_its_hash() -> None:
    # the first 8 bytes of sha256("B000000010") are .8444 of 2**64, of sha256("B000000013") .8732
    found = [split_of(asin) for asin in (MUG, SHIRT, *PLAIN_MUGS)]
    assert "".join(split[1] for split in found) == "rraraerarrra"  # tRain, vAlid, tEst


def test_about_the_named_shares_of_many_products_are_in_each_split() -> None:
    counts = Counter(split_of(f"B{n:09}") for n in range(10_000))
    # 4 standard deviations of a share of .7 and .15 of 10,000
    assert abs(counts["train"] - 7000) < 184
    assert abs(counts["valid"] - 1500) < 143
    assert counts.total() == 10_000


def test_splits_by_product_hold_every_goal_once_and_share_no_product(catalogue: Catalogue) -> None:
    numbers = distinct_goals(catalogue.goals)
    splits = split_by_product(catalogue.goals, numbers)
    assert [len(splits[name]) for name in ("train", "valid", "test")] == [15, 5, 1]
    assert sorted(id for members in splits.values() for id in members) == sorted(numbers)
    homes = {
        (catalogue.goals[n]["asin"], split) for split in splits for n in splits[split].values()
    }
    assert len(homes) == 12
    assert all(list(members) == sorted(members) for members in splits.values())


def test_a_product_stays_in_its_split_when_others_come(catalogue: Catalogue) -> None:
    some = [goal for goal in catalogue.goals if goal["asin"] != PLAIN_MUGS[0]]
    before = split_by_product(catalogue.goals, distinct_goals(catalogue.goals))
    after = split_by_product(some, distinct_goals(some))
    assert after["train"].keys() == before["train"].keys()
    assert before["valid"].keys() - after["valid"].keys() == {
        goal_id(goal) for goal in catalogue.goals[10:12]
    }


def test_a_split_without_goals_is_refused_with_the_way_out() -> None:
    goals = small_catalogue().goals
    with pytest.raises(ValueError, match=r"'valid' is empty: .* \(1\); .* 40 or more"):
        split_by_product(goals, distinct_goals(goals))


def test_a_product_in_two_splits_is_named(catalogue: Catalogue) -> None:
    numbers = list(distinct_goals(catalogue.goals).items())
    mug = [item for item in numbers if item[1] < 4]
    rest = dict(item for item in numbers if item[1] >= 4)
    check_disjoint(catalogue.goals, {"train": dict(mug), "valid": rest})
    with pytest.raises(ValueError, match=f"product '{MUG}' is in splits 'train' and 'valid'"):
        check_disjoint(catalogue.goals, {"train": dict(mug[:2]), "valid": rest | dict(mug[2:])})


def test_splits_by_product_are_checked(
    catalogue: Catalogue, monkeypatch: pytest.MonkeyPatch
) -> None:
    turns = cycle(SHARES)
    monkeypatch.setattr("rewardswap.envs.webshop.splits.split_of", lambda asin: next(turns))
    with pytest.raises(ValueError, match=r"product 'B0000000\d\d' is in splits"):
        split_by_product(catalogue.goals, distinct_goals(catalogue.goals))


def test_the_split_by_position_cuts_the_list() -> None:
    goals = synthetic_catalogue(0, 150).goals
    numbers = distinct_goals(goals)
    assert len(goals) > UPSTREAM_VALID == 500
    splits = split_by_position(goals, numbers)
    assert {goal_id(goal) for goal in goals[:500]} == splits["valid"].keys()
    assert {goal_id(goal) for goal in goals[500:]} == splits["train"].keys()
    assert list(splits["valid"]) == sorted(splits["valid"])


def test_the_split_by_position_needs_more_goals_than_it_holds_out() -> None:
    goals = synthetic_catalogue(0, 150).goals
    with pytest.raises(ValueError, match="first 500 goals out, but the catalogue has 500"):
        split_by_position(goals[:500], distinct_goals(goals[:500]))
    assert len(split_by_position(goals[:501], distinct_goals(goals[:501]))["train"]) == 1
