"""Keys of states: equal exactly where nothing that the shop can still show differs."""

from collections import Counter, deque
from collections.abc import Iterator
from copy import copy
from typing import Any

import pytest
from small_shop import MUG
from stocked_shop import PLAIN_MUGS, stocked_catalogue

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.shop import TextShop

SEARCHES = ("search[blue mug]", "search[mug blue]", 'search[red "red" mug]')
"""The first two find the same, the last finds it too but makes an option look chosen."""
OPENED = (MUG.lower(), PLAIN_MUGS[9].lower())
"""Of the products only these are opened: one of the first page of results and one of the second."""
LAST_PAGE = 2
PATHS = 2
"""Paths to a place that are compared."""

Answer = tuple[str, float, tuple[str, ...]]
"""What an action leads to: page without the instruction, reward, and what can be clicked."""


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return stocked_catalogue()


def reached(catalogue: Catalogue, path: tuple[str, ...], mode: str = "text", goal: int = 0) -> Any:
    """The shop after some actions."""
    shop = TextShop(catalogue, mode)
    shop.reset(goal)
    for action in path:
        shop.step(action)
    return shop


def key(catalogue: Catalogue, *path: str, mode: str = "text", goal: int = 0) -> str:
    return reached(catalogue, path, mode, goal).place.key


def actions_of(shop: TextShop) -> Iterator[str]:
    yield "look"  # shows the present page again
    yield from SEARCHES
    for name in shop.clickables:
        if name.startswith("b0000000") and name not in OPENED:
            continue
        if name != "next >" or shop.place.number < LAST_PAGE:
            yield f"click[{name}]"


def twin_of(shop: TextShop) -> TextShop:
    """A visitor at the same place."""
    twin = copy(shop)
    twin._options, twin._visited = dict(shop._options), set(shop._visited)
    return twin


def answer(shop: TextShop, action: str) -> tuple[Answer, str]:
    """What an action leads to, and the key of where it leads."""
    page, reward, _ = shop.step(action)
    page = page.replace(shop.goal["instruction_text"], "...")
    return (page, reward, tuple(shop.clickables)), shop.place.key


Explored = dict[str, dict[str, tuple[Answer, str]]]


def explore(catalogue: Catalogue, mode: str, goal: int = 0) -> Explored:
    """Answers by key and action, checked to be the same by whatever path the key was reached."""
    found: Explored = {}
    waiting: deque[tuple[str, ...]] = deque([()])
    looked: Counter[str] = Counter()
    while waiting:
        path = waiting.popleft()
        here = reached(catalogue, path, mode, goal)
        place = here.place.key
        if looked[place] == PATHS:
            continue
        looked[place] += 1
        answers = {}
        for action in actions_of(here):
            answers[action] = answer(twin_of(here), action)
            if action != "click[buy now]" and looked[answers[action][1]] < PATHS:
                waiting.append((*path, action))
        assert found.setdefault(place, answers) == answers, path
    return found


def classes(explored: Explored) -> int:
    """How many states differ in what some sequence of actions shows: split until none is."""
    block = dict.fromkeys(explored, 0)
    while True:
        looks = {
            place: tuple((a, shown, block.get(to, to)) for a, (shown, to) in answers.items())
            for place, answers in explored.items()
        }
        names = {look: n for n, look in enumerate(dict.fromkeys(looks.values()))}
        finer = {place: names[look] for place, look in looks.items()}
        if len(set(finer.values())) == len(set(block.values())):
            return len(names)
        block = finer


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_equal_keys_are_equal_states_and_other_keys_other_states(
    catalogue: Catalogue, mode: str
) -> None:
    explored = explore(catalogue, mode)
    assert len(explored) > 30
    assert classes(explored) == len(explored)


def test_goals_that_share_pages_share_their_keys(catalogue: Catalogue) -> None:
    path = (SEARCHES[0], f"click[{OPENED[0]}]", "click[red]", "click[features]")
    for length in range(len(path) + 1):
        mine, other = (reached(catalogue, path[:length], goal=goal) for goal in (0, 3))
        assert mine.goal != other.goal
        assert mine.place.key == other.place.key


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_a_chosen_option_is_in_the_key_though_text_does_not_show_it(
    catalogue: Catalogue, mode: str
) -> None:
    item = (SEARCHES[0], f"click[{OPENED[0]}]")
    plain, red = (reached(catalogue, (*item, *more), mode) for more in ((), ("click[red]",)))
    assert (plain.step("look") == red.step("look")) == (mode == "text")
    assert plain.place.key != red.place.key
    size = "click[small]"
    assert key(catalogue, *item, "click[red]", size) == key(catalogue, *item, size, "click[red]")


def test_two_queries_that_find_the_same_lead_to_one_state(catalogue: Catalogue) -> None:
    assert key(catalogue, SEARCHES[0]) == key(catalogue, SEARCHES[1])
    assert key(catalogue, SEARCHES[0]) != key(catalogue, "search[linen shirt]")
    quoted = [key(catalogue, query, mode="text_rich") for query in SEARCHES]
    assert quoted[0] == quoted[1] != quoted[2]


def test_the_page_of_the_results_is_in_the_key(catalogue: Catalogue) -> None:
    one, two = (SEARCHES[0],), (SEARCHES[0], "click[next >]")
    assert key(catalogue, *one) != key(catalogue, *two)
    assert key(catalogue, *one) == key(catalogue, *two, "click[< prev]")
    # also below the results, where it is the page that leads back to them
    shop = reached(catalogue, (*two, f"click[{OPENED[1]}]"))
    assert shop.place.number == 2
    shop.step("click[features]")
    assert shop.place.number == 2


def test_after_buying_only_what_was_bought_is_left(catalogue: Catalogue) -> None:
    def bought(query: str, *options: str) -> str:
        return key(catalogue, query, f"click[{OPENED[0]}]", *options, "click[buy now]")

    assert bought(SEARCHES[0]) == bought("search[blue]")
    assert bought(SEARCHES[0]) != bought(SEARCHES[0], "click[red]")


def test_links_that_look_visited_are_in_the_key_where_they_show(catalogue: Catalogue) -> None:
    back = (SEARCHES[0], f"click[{OPENED[0]}]", "click[< prev]")
    for mode in ("text", "text_rich"):
        same = key(catalogue, *back, mode=mode) == key(catalogue, SEARCHES[0], mode=mode)
        assert same == (mode == "text")
    # the first page forgets them
    anew = (*back, "click[back to search]", SEARCHES[0])
    assert key(catalogue, *anew, mode="text_rich") == key(catalogue, SEARCHES[0], mode="text_rich")


def test_a_key_before_the_first_page_is_refused(catalogue: Catalogue) -> None:
    with pytest.raises(ValueError, match=r"call reset\(goal_index\) first"):
        _ = TextShop(catalogue).place
