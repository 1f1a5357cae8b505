"""Which goals are for training and which are held out."""

import hashlib
import json
from collections.abc import Mapping, Sequence

from rewardswap.envs.webshop.goals import Goal

TRAIN, VALID, TEST = "train", "valid", "test"

SHARES = {TRAIN: 0.7, VALID: 0.15, TEST: 0.15}
"""Share of the products of each split, in expectation; of the goals it may be another (ours)."""

UPSTREAM_VALID = 500
"""Goals at the head of the shuffled list that the original and verl-agent validate on."""

Numbers = dict[str, int]
"""Places in a catalogue's list of goals by task id, sorted by id."""


def goal_id(goal: Goal) -> str:
    """16 hex digits of the hash of what makes a goal: equal goals of any catalogue share it."""
    content = {
        "asin": goal["asin"],
        "text": goal["instruction_text"],
        "attributes": goal["attributes"],
        "options": goal["goal_options"],
        "price_upper": float(goal["price_upper"]),
    }
    text = json.dumps(content, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def distinct_goals(goals: Sequence[Goal]) -> Numbers:
    """Of goals that are equal in content the first."""
    numbers: Numbers = {}
    for number, goal in enumerate(goals):
        numbers.setdefault(goal_id(goal), number)
    return dict(sorted(numbers.items()))


def split_of(asin: str) -> str:
    """The split of a product, by its asin alone: other products do not change it."""
    digest = hashlib.sha256(asin.encode("utf-8", "surrogatepass")).digest()
    place = int.from_bytes(digest[:8], "big") / 2**64
    if place < SHARES[TRAIN]:
        return TRAIN
    return VALID if place < SHARES[TRAIN] + SHARES[VALID] else TEST


def split_by_product(goals: Sequence[Goal], numbers: Numbers) -> dict[str, Numbers]:
    """Goals by split, no product in two of them; raises ValueError for a split without goals."""
    splits: dict[str, Numbers] = {split: {} for split in SHARES}
    for id, number in numbers.items():
        splits[split_of(goals[number]["asin"])][id] = number
    check_disjoint(goals, splits)
    empty = [split for split, members in splits.items() if not members]
    if empty:
        products = len({goal["asin"] for goal in goals})
        raise ValueError(
            f"split {empty[0]!r} is empty: the goals are on too few products ({products}); take a "
            "catalogue where 40 or more have goals (a third of generated ones: env.products 150)"
        )
    return splits


def split_by_position(goals: Sequence[Goal], numbers: Numbers) -> dict[str, Numbers]:
    """The original's splits: the first UPSTREAM_VALID goals of the list are held out.

    Both splits have goals of the same products. Raises ValueError for a list that is not longer.
    """
    if len(goals) <= UPSTREAM_VALID:
        raise ValueError(
            f"upstream_split holds the first {UPSTREAM_VALID} goals out, but the catalogue has "
            f"{len(goals)}; take a larger one or the split by product"
        )
    splits: dict[str, Numbers] = {TRAIN: {}, VALID: {}}
    for id, number in numbers.items():
        splits[VALID if number < UPSTREAM_VALID else TRAIN][id] = number
    return splits


def check_disjoint(goals: Sequence[Goal], splits: Mapping[str, Numbers]) -> None:
    """Raises ValueError if two splits have goals of one product."""
    home: dict[str, str] = {}
    for split, members in splits.items():
        for asin in {goals[number]["asin"] for number in members.values()}:
            if home.setdefault(asin, split) != split:
                raise ValueError(
                    f"product {asin!r} is in splits {home[asin]!r} and {split!r}; what is trained "
                    "on must not be held out"
                )
