"""Pages and actions in a hand-made shop; the original's own words are in the golden test."""

from random import Random

import pytest
from small_shop import MUG, SHIRT, small_catalogue

from rewardswap.envs.webshop.actions import parse_action
from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.pages import Node
from rewardswap.envs.webshop.shop import TextShop
from rewardswap.envs.webshop.wording import words


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return small_catalogue()


def played(catalogue: Catalogue, *actions: str, mode: str = "text") -> TextShop:
    shop = TextShop(catalogue, mode)
    shop.reset(0)
    for action in actions:
        shop.step(action)
    return shop


def seen(shop: TextShop) -> str:
    """The present page, which an action that means nothing shows again."""
    page, reward, done = shop.step("look")
    assert (reward, done) == (0.0, False)
    return page


@pytest.mark.parametrize(
    ("action", "parsed"),
    [
        ("search[Blue Mug]", ("search", "blue mug")),
        ("click[a[b]]c", ("click[a", "b]")),
        ("click[x]\nsearch[y]", ("click", "x")),
        ("click[x\n]", ("", "")),
        ("\nclick[x]", ("", "")),
        ("click[]", ("", "")),
        ("click[]]", ("click", "]")),
        ("[x]", ("", "")),
        ("[[x]", ("[", "x")),
        ("x]y[", ("", "")),
        (" Click [x]", (" Click ", "x")),
        ("", ("", "")),
        ("]", ("", "")),
    ],
)
def test_actions_are_read_as_the_greedy_pattern_does(action: str, parsed: tuple[str, str]) -> None:
    assert parse_action(action) == parsed


def test_the_first_page(catalogue: Catalogue) -> None:
    shop = TextShop(catalogue)
    text = catalogue.goals[0]["instruction_text"]
    assert shop.reset(0) == f"WebShop [SEP] Instruction: [SEP] {text} [SEP] Search"
    assert (shop.clickables, shop.has_search_bar) == (["search"], True)
    assert shop.step("click[search]")[0] == shop.reset(0)


def test_results_turn_pages_without_end(catalogue: Catalogue) -> None:
    shop = played(catalogue, "search[mug]")
    assert "Page 1 (Total results: 11) [SEP] Next > [SEP] B000000001 [SEP] Blue Mug" in seen(shop)
    assert "$12.5 to $14.0" in seen(shop)
    assert shop.clickables[:2] == ["back to search", "next >"] and len(shop.clickables) == 12
    assert not shop.has_search_bar
    shop.step("click[Next >]")
    assert seen(shop).endswith("Page 2 (Total results: 11) [SEP] < Prev [SEP] Next > "
                               "[SEP] B000000019 [SEP] Mug Number 9 [SEP] $9.0")  # fmt: skip
    shop.step("click[next >]")
    assert seen(shop).endswith("Page 3 (Total results: 11) [SEP] < Prev [SEP] Next >")
    assert shop.clickables == ["back to search", "< prev", "next >"]
    shop.step("click[< prev]")
    assert shop.clickables[-1] == "b000000019"


def test_nothing_found(catalogue: Catalogue) -> None:
    shop = played(catalogue, "search[zebra]")
    assert "Page 1 (Total results: 0) [SEP] Next >" in seen(shop)


def test_an_item_s_page_and_what_lies_below(catalogue: Catalogue) -> None:
    shop = played(catalogue, "search[blue mug]", f"click[{MUG}]")
    item = seen(shop)
    assert item.endswith(
        "Back to Search [SEP] < Prev [SEP] size [SEP] small [SEP] 10 | 12 ounce [SEP] color "
        "[SEP] dark blue [SEP] red [SEP] Blue Mug [SEP] Price: $12.5 to $14.0 [SEP] Rating: N.A. "
        "[SEP] Description [SEP] Features [SEP] Reviews [SEP] Buy Now"
    )
    shop.step("click[description]")
    assert seen(shop).endswith("Back to Search [SEP] < Prev [SEP] All about Blue Mug.")
    shop.step("click[< prev]")
    shop.step("click[features]")
    assert seen(shop).endswith("< Prev [SEP] Made with care. [SEP] Easy to clean.")
    shop.step("click[< prev]")
    shop.step("click[reviews]")
    assert seen(shop).endswith("Back to Search [SEP] < Prev")
    shop.step("click[< prev]")
    assert seen(shop) == item


def test_options_live_until_the_product_is_left(catalogue: Catalogue) -> None:
    way = ("search[blue mug]", f"click[{MUG}]", "click[dark blue]", "click[small]")
    kept = played(catalogue, *way, "click[features]", "click[< prev]")
    assert kept.step("click[buy now]")[1:] == (1.0, True)
    for leave in ("click[< prev]", "search[blue mug]"):
        left = played(catalogue, *way, leave, f"click[{MUG}]")
        assert left.step("click[buy now]")[1:] == (0.5, True)


def test_back_returns_to_the_same_page_of_results(catalogue: Catalogue) -> None:
    shop = played(catalogue, "search[mug]", "click[next >]")
    page = seen(shop)
    shop.step("click[b000000019]")
    assert "$9.0" in seen(shop)
    assert shop.step("click[< prev]")[0] == page
    assert "Page 1 " in shop.step("search[mug]")[0]


def test_the_last_page(catalogue: Catalogue) -> None:
    shop = played(catalogue, "search[blue mug]", f"click[{MUG}]", "click[small]", "click[red]")
    page, reward, done = shop.step("click[BUY NOW]")
    assert (reward, done, shop.clickables, shop.has_search_bar) == (0.75, True, [], False)
    assert page.startswith("Thank you for shopping with us! [SEP] Your code: [SEP] None [SEP] ")
    assert '[SEP] {"color": "red", "size": "small"} [SEP]' in page  # by name
    assert "Your score (min 0.0, max 1.0) [SEP] 0.75 [SEP]" in page
    assert shop.step("click[buy now]") == (page, 0.0, False)
    assert "Page 1" in shop.step("search[mug]")[0]


def test_values_that_read_like_something_else(catalogue: Catalogue) -> None:
    way = ("search[linen]", f"click[{SHIRT}]")
    shop = played(catalogue, *way)
    assert shop.clickables[-4:] == ["buy now", "same", "search", '5"']
    assert "{}" in played(catalogue, *way).step("click[buy now]")[0]  # the button
    assert shop.step("click[search]")[0] == seen(shop)  # never clickable
    shop.step("click[same]")
    assert '{"bottom": "same"}' in shop.step("click[buy now]")[0]  # the last name wins
    assert '{"bottom": "5\\""}' in played(catalogue, *way, 'click[5"]').step("click[buy now]")[0]


def test_markup_in_data_is_text(catalogue: Catalogue) -> None:
    assert "Linen Shirt <b>&" in seen(played(catalogue, "search[linen]"))


def test_rich_pages_mark_what_was_clicked(catalogue: Catalogue) -> None:
    shop = played(catalogue, "search[blue mug]", f"click[{MUG}]", "click[red]", mode="text_rich")
    page = seen(shop)
    assert page.startswith("You have clicked red.\nInstruction:\n")
    assert (
        "color\n  [button] dark blue [button_]\n  [clicked button] red [clicked button_]\n" in page
    )
    shop.step("click[small]")
    assert seen(shop).startswith("You have clicked red.\nYou have clicked small.\nInstruction:\n")
    shop.step("click[< prev]")
    assert f"\n\n[clicked button] {MUG} [clicked button_]\nBlue Mug\n$12.5 to $14.0\n" in seen(shop)
    shop.step("click[back to search]")
    assert seen(shop).startswith("WebShop\nInstruction: \nFind me")
    shop.step("search[blue mug]")
    assert f"\n\n[button] {MUG} [button_]\n" in seen(shop)


def test_rich_pages_take_quotes_as_the_original_does(catalogue: Catalogue) -> None:
    """A quoted word of the query counts as chosen, a value with a quote in it never does."""
    way = (f"click[{SHIRT}]", 'click[5"]')
    assert "clicked" not in seen(played(catalogue, "search[linen]", *way, mode="text_rich"))
    page = seen(played(catalogue, 'search[linen "same"]', *way, mode="text_rich"))
    assert page.startswith("You have clicked same.\nYou have clicked same.\nInstruction:")


@pytest.mark.parametrize(
    ("text", "plain", "rich"),
    [
        ("", "a [SEP] b", "a\nb\n"),
        (" \t", "a [SEP]  [SEP] b", "a\n \nb\n"),
        (" \n ", "a [SEP] b", "a\nb\n"),
        (" x\n", "a [SEP] x [SEP] b", "a\n x\n\nb\n"),
        ("\xa0\n", "a [SEP]  [SEP] b", "a\n\xa0\n\nb\n"),
    ],
)
def test_white_space(text: str, plain: str, rich: str) -> None:
    nodes = [Node("a"), Node(text), Node("b")]
    assert (words(nodes, "text"), words(nodes, "text_rich")) == (plain, rich)


STRANGE = [
    "",
    "[",
    "]",
    "[]",
    "][",
    "click",
    "click[",
    "click[]",
    "click[[]]",
    "Click[next >]",
    "click[next >",
    "click [next >]",
    "click[B999999999]",
    "click[b99999999\u0399]",
    "think[i should search]",
    "<a>",
    "click[\x00]",
    "click[\u043a\u0443\u043f\u0438\u0442\u044c]",
    "click[\U0001f6d2]",
    "click[next >]".replace(" ", "\n"),
    "click[next >]\x00"[::-1],
    "\ud800[\udfff]",
    "[" * 100_000,
    "]" * 100_000,
    "[]" * 50_000,
    "a[" * 50_000 + "]" * 50_000,
    "click[" + "x" * 100_000 + "]",
    "x" * 100_000,
    "\n" * 100_000,
]


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_strange_actions_change_nothing(catalogue: Catalogue, mode: str) -> None:
    ways = ((), ("search[mug]",), ("search[mug]", f"click[{MUG}]", "click[red]"))
    for way in (*ways, (*ways[2], "click[features]"), (*ways[2], "click[buy now]")):
        shop = played(catalogue, *way, mode=mode)
        page, texts = seen(shop), shop.clickables
        for action in STRANGE:
            assert shop.step(action) == (page, 0.0, False), action[:40]
            assert shop.clickables == texts


@pytest.mark.parametrize(
    "query",
    ["<r>", "<a> mug", "\x00", "]]mug", "\U0001f6d2 mug", "кружка", "\ud800", "mug " * 25_000],
)
def test_strange_queries_are_only_queries(catalogue: Catalogue, query: str) -> None:
    page, reward, done = played(catalogue).step(f"search[{query}]")
    assert "Page 1 (Total results: " in page
    assert (reward, done) == (0.0, False)


def test_a_goal_that_does_not_exist(catalogue: Catalogue) -> None:
    for place in (-1, 4, 10**9):
        with pytest.raises(ValueError, match=f"there is no goal {place}, expected 0 to 3"):
            TextShop(catalogue).reset(place)


def test_an_unknown_mode(catalogue: Catalogue) -> None:
    with pytest.raises((ValueError, TypeError), match="html"):
        TextShop(catalogue, "html")


def test_before_the_first_goal(catalogue: Catalogue) -> None:
    shop = TextShop(catalogue)
    assert shop.clickables == [] and not shop.has_search_bar
    with pytest.raises(ValueError, match=r"call reset\(goal_index\) before step"):
        shop.step("search[mug]")
    with pytest.raises(ValueError, match="no goal was started"):
        _ = shop.goal


def test_visitors_do_not_touch_each_other(catalogue: Catalogue) -> None:
    way = ("search[blue mug]", f"click[{MUG}]", "click[small]")
    one, two = played(catalogue, *way, mode="text_rich"), played(catalogue, mode="text_rich")
    for action in (way[0], way[1]):
        two.step(action)
    assert "clicked" not in seen(two) and "You have clicked small." in seen(one)
    assert one.reset(1) != two.reset(2)
    one.step(way[0])
    assert "clicked" not in seen(one)


QUERY_WORDS = ["mug", "blue", "linen", "9", '"']


def random_action(shop: TextShop, random: Random) -> str:
    """Mostly something that the page offers, sometimes broken or mixed up."""
    choice = random.random()
    if choice < 0.6 and shop.clickables:
        action = f"click[{random.choice(shop.clickables)}]"
    elif choice < 0.8:
        action = f"search[{' '.join(random.choices(QUERY_WORDS, k=2))}]"
    else:
        action = random.choice(STRANGE[:22])
    if random.random() < 0.1:
        place = random.randrange(len(action) + 1)
        action = action[:place] + random.choice('[]\n\x00"🛒k') + action[place:]
    return action.upper() if random.random() < 0.05 else action


@pytest.mark.parametrize("mode", ["text", "text_rich"])
def test_random_play_keeps_the_shop_s_promises(catalogue: Catalogue, mode: str) -> None:
    random = Random(0)
    shop, twin = TextShop(catalogue, mode), TextShop(catalogue, mode)
    bought = 0
    for _ in range(60):
        goal = random.randrange(len(catalogue.goals))
        assert shop.reset(goal) == twin.reset(goal)
        for _ in range(20):
            before = seen(shop)
            action = random_action(shop, random)
            page, reward, done = shop.step(action)
            assert (page, reward, done) == twin.step(action)
            assert page == seen(shop) and shop.clickables == twin.clickables
            assert 0.0 <= reward <= 1.0 and (done or reward == 0.0)
            assert len(set(shop.clickables)) == len(shop.clickables)
            assert shop.has_search_bar == (shop.clickables == ["search"])
            name, argument = parse_action(action)
            if name != "search" and (name != "click" or argument not in before.lower()):
                assert page == before
            bought += done
    assert bought > 3
