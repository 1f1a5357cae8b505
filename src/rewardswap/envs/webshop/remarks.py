"""What a reader of results on WebShop must know, in sentences."""

from collections import Counter
from collections.abc import Collection

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.ceiling import unreachable
from rewardswap.envs.webshop.splits import UPSTREAM_VALID

MOST_NAMED = 20
"""Products that a remark names at most; of more the first, by asin."""


def size_remark(catalogue: Catalogue, split: str, numbers: Collection[int]) -> str:
    """How many goals and products a split has, and how few products hold half of the goals."""
    counts = Counter(catalogue.goals[number]["asin"] for number in numbers)
    largest = products_with_half(counts)
    return (
        f"{split}: {count_of(len(numbers), 'goal')} on {count_of(len(counts), 'product')}; "
        f"{count_of(largest, 'product')} hold{'s' if largest == 1 else ''} half of the goals"
    )


def ceiling_remark(catalogue: Catalogue, split: str, numbers: Collection[int]) -> str:
    """How many goals of a split cannot be reached, and on which products."""
    lost = unreachable(catalogue, numbers)
    ceiling = 1 - len(lost) / len(numbers)
    asins = sorted({catalogue.goals[number]["asin"] for number in lost})
    named = ", ".join(asins[:MOST_NAMED]) + (", ..." if len(asins) > MOST_NAMED else "")
    where = f" ({count_of(len(asins), 'product')}: {named})" if lost else ""
    return (
        f"{split}: {len(lost)} of {count_of(len(numbers), 'goal')} cannot score 1 on their own "
        f"product even with the right options{where}; the ceiling of success is {ceiling:.1%}"
    )


def duplicates_remark(catalogue: Catalogue, kept: int) -> list[str]:
    """How many goals of the catalogue were left out because another is equal; none: no remark."""
    left_out = len(catalogue.goals) - kept
    if not left_out:
        return []
    return [
        f"all splits: {count_of(left_out, 'goal')} of {len(catalogue.goals)} left out, being equal "
        "to another in content"
    ]


def overlap_remark(
    catalogue: Catalogue, held_out: Collection[int], trained_on: Collection[int]
) -> str:
    """How far the split by position holds nothing out, here and in verl-agent."""
    products = {catalogue.goals[number]["asin"] for number in trained_on}
    seen = sum(catalogue.goals[number]["asin"] in products for number in held_out)
    one, two = (trained_share(len(catalogue.goals), workers) for workers in (1, 2))
    return (
        f"valid: {seen} of {count_of(len(held_out), 'goal')} ({seen / len(held_out):.1%}) are on "
        "products that are trained on; in verl-agent, whose workers each shuffle with their own "
        "seed before the cut, a validation goal is in some worker's training pool with probability "
        f"{one:.1%} (1 worker) or {two:.2%} (2 workers)"
    )


def trained_share(goals: int, workers: int) -> float:
    """The chance that a goal is trained on by some of `workers` that hold out their own draw."""
    return float(1 - (UPSTREAM_VALID / goals) ** workers)


def products_with_half(counts: Counter[str]) -> int:
    """The smallest number of products that hold at least half of the goals."""
    held, half = 0, counts.total() / 2
    for place, (_, count) in enumerate(counts.most_common(), 1):
        held += count
        if held >= half:
            return place
    return 0


def count_of(number: int, thing: str) -> str:
    """`1 goal`, `2 goals`."""
    return f"{number} {thing}{'' if number == 1 else 's'}"
