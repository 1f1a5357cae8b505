"""Reading a folder of WebShop's data: what is kept, and what is said of data that is wrong."""

import json
from pathlib import Path

import pytest
from small_shop import (
    ATTRIBUTES,
    HUMAN,
    INSTRUCTIONS,
    ITEMS,
    MUG,
    NAMES,
    NOUNS,
    RECORDS,
    SHIRT,
    record,
    write_folder,
)

from rewardswap.envs.webshop import Catalogue, TextShop, load_catalogue
from rewardswap.envs.webshop.files import NOUNS_SOURCE
from rewardswap.envs.webshop.reading import read_products


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_folder(tmp_path)


def write(path: Path, content: object) -> None:
    path.write_text(json.dumps(content), encoding="utf-8")


def refused(folder: Path, path: str, *words: str, **settings: str) -> None:
    """The error names the file, what is wrong, and a way out."""
    with pytest.raises(ValueError) as caught:
        load_catalogue(folder, **settings)
    message = str(caught.value)
    assert str(folder / path) in message
    for word in (*words, "; "):
        assert word in message


def test_a_folder_becomes_a_shop(folder: Path) -> None:
    catalogue = load_catalogue(str(folder), seed=3)
    assert list(catalogue.products) == [entry["asin"] for entry in RECORDS]
    assert len(catalogue.goals) == 4
    shop = TextShop(catalogue)
    shop.reset(0)
    shop.step("search[blue mug]")
    assert MUG.lower() in shop.clickables


def test_what_is_kept_of_a_product(folder: Path) -> None:
    product = load_catalogue(folder).products[MUG]
    assert product.query == "mugs"
    assert dict(product.options) == {
        "size": ("small", "10 | 12 ounce"),
        "color": ("dark blue", "red"),
    }
    assert product.attributes == ("easy clean", "dishwasher safe")
    assert product.price_tag == "$12.5 to $14.0"
    assert product.contents == (
        "blue mug all about blue mug. made with care.  "
        "size: small, 10 | 12 ounce, and color: dark blue, red"
    )
    shirt = load_catalogue(folder).products[SHIRT]
    assert shirt.bullets == ("",) and shirt.instruction is None
    assert (shirt.pricing, shirt.price_tag) == ((100.0,), "$100.0")
    assert load_catalogue(folder).products["B000000010"].attributes == ("DUMMY_ATTR",)


def test_entries_that_are_no_products_are_passed_over() -> None:
    strange = [
        record("nan", "No Number"),
        record("B0000000011", "Too Long"),
        {"asin": "12345678901", "name": None},
        record(MUG, "First"),
        record(MUG, "Second"),
    ]
    products = read_products(strange, {}, Path("items"), Path("attributes"))
    assert [product.name for product in products.values()] == ["First"]


def test_the_full_set_is_taken_where_there_is_no_small_one(folder: Path) -> None:
    (folder / ITEMS).rename(folder / "items_shuffle.json")
    refused(folder, "", "has items_shuffle.json without items_ins_v2.json", "setup.sh")
    (folder / ATTRIBUTES).rename(folder / "items_ins_v2.json")
    assert len(load_catalogue(folder).products) == 12
    refused(folder, "", "has none of items_shuffle_1000.json; get it", size="small")


def test_a_folder_with_both_sets_needs_a_size(folder: Path) -> None:
    write(folder / "items_shuffle.json", RECORDS[:5])
    write(folder / "items_ins_v2.json", INSTRUCTIONS)
    both = "has both items_shuffle_1000.json and items_shuffle.json; choose the size, small or full"
    refused(folder, "", both)
    sizes = {size: len(load_catalogue(folder, size=size).products) for size in ("small", "full")}
    assert sizes == {"small": 12, "full": 5}
    with pytest.raises((ValueError, TypeError), match="tiny"):
        load_catalogue(folder, size="tiny")


def test_human_goals(folder: Path) -> None:
    catalogue = load_catalogue(folder, instructions="human")
    (goal,) = catalogue.goals
    assert goal["instruction_text"].startswith("i want a linen shirt, and price lower than 1")
    assert (goal["goal_options"], goal["attributes"], goal["weight"]) == (["same"], ["linen"], 1)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (ITEMS, "has none of items_shuffle_1000.json, items_shuffle.json"),
        (ATTRIBUTES, "has items_shuffle_1000.json without items_ins_v2_1000.json"),
        (NOUNS, "has no name_nouns*.json"),
    ],
)
def test_a_missing_file_is_named(folder: Path, name: str, words: str) -> None:
    (folder / name).unlink()
    refused(folder, "", words)


def test_missing_human_instructions_and_a_missing_folder(folder: Path) -> None:
    (folder / HUMAN).unlink()
    refused(folder, HUMAN, "cannot be read", "setup.sh", instructions="human")
    refused(folder / "nowhere", "", "is no folder")


@pytest.mark.parametrize("name", [ITEMS, ATTRIBUTES, NOUNS, HUMAN])
@pytest.mark.parametrize(
    ("content", "words"),
    [
        (b"", "0 bytes"),
        (b'[{"asin": "B0', "cut short"),
        (b"\xff\xfe\x00", "no UTF-8 text at byte 0"),
        (b"[" * 100_000, ""),
        (b"7", "holds a int"),
        (b"null", "holds a NoneType"),
    ],
)
def test_a_broken_file_is_named(folder: Path, name: str, content: bytes, words: str) -> None:
    (folder / name).write_bytes(content)
    refused(folder, name, words, instructions="human")


@pytest.mark.parametrize("part", [0.1, 0.5, 0.99])
@pytest.mark.parametrize("name", [ITEMS, ATTRIBUTES, NOUNS])
def test_a_cut_file_is_named(folder: Path, name: str, part: float) -> None:
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(len(content) * part)])
    refused(folder, name, "cut short", "copy the file again")


@pytest.mark.parametrize(
    ("fields", "words"),
    [
        ({"asin": 5}, "'asin' is a int, expected a text"),
        ({"name": None}, "'name' is a NoneType"),
        ({"query": ["mugs"]}, "'query' is a list"),
        ({"full_description": {}}, "'full_description' is a dict"),
        ({"small_description": [1]}, "'small_description' is a list, expected a list of texts"),
        ({"customization_options": "red"}, "'customization_options' is a str"),
        ({"customization_options": {"Color": "red"}}, "option 'Color'"),
        ({"customization_options": {"Color": [{}]}}, "'value' is missing"),
        ({"pricing": "12.50"}, "'pricing' is '12.50', expected a number after each '$'"),
        ({"pricing": "$1.2.3"}, "'pricing' is '$1.2.3'"),
        ({"pricing": "$" + "9" * 400}, "'pricing' is '$999"),
        ({"pricing": 12.5}, "'pricing' is a float"),
    ],
)
def test_a_wrong_field_is_named(folder: Path, fields: dict, words: str) -> None:
    write(folder / ITEMS, [RECORDS[0], {**record("B000000099", "Odd"), **fields}])
    refused(folder, ITEMS, "entry 1: ", words)


@pytest.mark.parametrize(
    ("entry", "words"),
    [
        ([], "is a list, expected an object"),
        ({"attributes": "easy"}, "'attributes' is a str"),
        ({"attributes": [], "instruction": "Find"}, "'instruction_attributes' is missing"),
        (
            {"attributes": [], "instruction": "Find", "instruction_attributes": []},
            "asks for no attribute",
        ),
        (
            {"attributes": [], "instruction": 1, "instruction_attributes": ["a"]},
            "'instruction' is a int",
        ),
    ],
)
def test_wrong_attributes_are_named(folder: Path, entry: object, words: str) -> None:
    write(folder / ATTRIBUTES, {MUG: entry})
    refused(folder, ATTRIBUTES, words)


def test_other_shapes_are_named(folder: Path) -> None:
    write(folder / ITEMS, [])
    refused(folder, ITEMS, "the list of products is empty")
    write(folder / ITEMS, [7])
    refused(folder, ITEMS, "entry 0 is a int, expected an object")
    write(folder / ITEMS, [record("nan", "Nothing")])
    refused(folder, ITEMS, "no entry is a product")
    write(folder / ITEMS, {MUG: RECORDS[0]})
    refused(folder, ITEMS, "holds a dict, expected a list of products")


def test_a_shop_without_instructions_is_refused(folder: Path) -> None:
    write(folder / ATTRIBUTES, {asin: {"attributes": ["a"]} for asin in INSTRUCTIONS})
    refused(folder, ATTRIBUTES, "has no instruction for any of the 12 products", ITEMS)
    write(folder / HUMAN, {})
    refused(folder, HUMAN, "has no instruction", instructions="human")
    write(folder / HUMAN, {MUG: [{"instruction": "a mug"}]})
    refused(folder, HUMAN, f"product '{MUG}'", instructions="human")
    write(folder / HUMAN, {MUG: 1})
    refused(folder, HUMAN, "has no list of instructions", instructions="human")


def test_nouns_must_be_there_for_every_product(folder: Path) -> None:
    write(folder / NOUNS, {**NAMES, SHIRT: "linen"})
    way_out = f"`rewardswap data prepare webshop --data {folder}`"
    refused(folder, NOUNS, f"no list of nouns for product '{SHIRT}'", "spaCy", way_out)
    (folder / NOUNS).unlink()
    refused(folder, "", "has no name_nouns*.json", way_out)
    write(folder / NOUNS, NAMES)
    write(folder / "name_nouns_other.json", NAMES)
    refused(folder, "", "has several name_nouns*.json (name_nouns_other.json, name_nouns_small")


def test_where_the_nouns_are_from_is_said(folder: Path) -> None:
    assert load_catalogue(folder).nouns_source == f"unknown ({NOUNS} does not say)"
    write(folder / NOUNS, {NOUNS_SOURCE: "a person", **NAMES})
    assert load_catalogue(folder).nouns_source == "a person"
    write(folder / NOUNS, {NOUNS_SOURCE: ["a person"], **NAMES})
    refused(folder, NOUNS, "'_source_of_nouns' is no text", "rewardswap data prepare")


def test_instructions_of_an_unknown_kind_are_refused(folder: Path) -> None:
    with pytest.raises((ValueError, TypeError), match="made up"):
        load_catalogue(folder, instructions="made up")


def test_the_same_seed_gives_the_same_shop(folder: Path) -> None:
    def facts(catalogue: Catalogue) -> tuple[object, object]:
        return catalogue.prices, catalogue.goals

    assert facts(load_catalogue(folder, 5)) == facts(load_catalogue(folder, 5))
    assert facts(load_catalogue(folder, 5)) != facts(load_catalogue(folder, 6))
    assert facts(load_catalogue(folder, 5)) != facts(load_catalogue(folder, 5, upstream_draw=True))
