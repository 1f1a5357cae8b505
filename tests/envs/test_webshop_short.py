"""Pages in few words, worked out by hand, and that they keep what a goal needs."""

from random import Random

import pytest
from small_shop import MUG, small_catalogue

from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.products import Product
from rewardswap.envs.webshop.shop import TextShop
from rewardswap.envs.webshop.short import ShortPages, short_price


@pytest.fixture(scope="module")
def catalogue() -> Catalogue:
    return small_catalogue()


def told(catalogue: Catalogue, *actions: str) -> list[str]:
    """The pages of a visit for goal 0, one per action after the first page."""
    shop = TextShop(catalogue)
    shop.reset(0)
    pages = ShortPages(catalogue, shop.goal)
    texts = [pages.tell(shop.place)]
    for action in actions:
        shop.step(action)
        texts.append(pages.tell(shop.place))
    return texts


def test_the_pages_of_a_visit(catalogue: Catalogue) -> None:
    asin = MUG.lower()
    pages = told(
        catalogue,
        "search[blue]",
        f"click[{asin}]",
        "click[features]",
        "click[< prev]",
        "click[red]",
        "click[small]",
        "click[buy now]",
    )
    assert pages[0].startswith("find me easy clean mugs with color: dark blue, and size: ")
    assert "price lower than $" in pages[0]
    assert pages[1:] == [
        f"page 1 of 1 ; blue mug $13 to $14 {asin}",
        f"{asin} blue mug $13 to $14 ; size : small , 10 | 12 ounce ; color : dark blue , red",
        "features : made with care.  ; easy to clean. ",
        "product again",
        "chosen red",
        "chosen red small",
        f"bought {asin}",
    ]


def test_a_page_that_comes_again_is_only_named(catalogue: Catalogue) -> None:
    pages = told(
        catalogue,
        "search[mug]",
        "click[next >]",
        "click[< prev]",
        f"click[{MUG.lower()}]",
        "look",
        "click[description]",
        "look",
        "click[back to search]",
        "search[mug]",
        "search[shirt]",
    )
    assert pages[1].startswith("page 1 of 2 ; ")
    assert pages[2].startswith("page 2 of 2 ; ")
    assert pages[3] == "page 1 of 2 again"
    assert pages[5] == "product again"
    assert pages[6] == "description : all about blue mug."
    assert pages[7] == "description again"
    assert pages[8] == pages[0]
    assert pages[9] == "page 1 of 2 again"
    assert pages[10].startswith("page 1 of 1 ; ")


def test_another_visit_tells_everything_anew(catalogue: Catalogue) -> None:
    assert told(catalogue, "search[mug]") == told(catalogue, "search[mug]")


def test_a_rounded_price_is_within_a_limit_exactly_when_the_price_is() -> None:
    random = Random(0)
    for _ in range(2000):
        price, limit = round(random.uniform(1, 100), 2), 10 * random.randint(1, 10)
        product = Product(
            asin="A", name="", category="", query="", product_category="", description="",
            bullets=(), options={}, attributes=(), pricing=(price,),
        )  # fmt: skip
        assert (int(short_price(product).removeprefix("$")) <= limit) == (price <= limit)
