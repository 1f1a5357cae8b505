"""The search against the original's own rankings (`../shared`, skipped without)."""

import json
import lzma
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from rewardswap.envs.webshop.search import SearchIndex

SHARED = Path(__file__).parents[3] / "shared" / "webshop"
PRODUCTS = SHARED / "items_shuffle_1000.json"
GOLDEN = SHARED / "golden_search.jsonl.xz"

pytestmark = pytest.mark.skipif(
    not (PRODUCTS.is_file() and GOLDEN.is_file()),
    reason="needs WebShop's products and golden searches in ../shared/webshop",
)


def documents() -> Iterator[tuple[str, str]]:
    for product in json.loads(PRODUCTS.read_text(encoding="utf-8")):
        bullets = product["small_description"]
        if not isinstance(bullets, list):
            bullets = [bullets]
        first = bullets[0] if bullets else ""
        name, description = product["name"], product["full_description"]
        contents = f"{name} {description} {first} {options(product)}".lower()
        yield product["asin"], contents


def options(product: dict) -> str:
    entries = []
    for name, values in (product["customization_options"] or {}).items():
        if values is not None:
            texts = (value["value"].strip().replace("/", " | ").lower() for value in values)
            entries.append(f"{name.lower()}: {', '.join(texts)}")
    return ", and ".join(entries)


@pytest.fixture(scope="module")
def index() -> SearchIndex:
    return SearchIndex.build(documents())


@pytest.fixture(scope="module")
def golden() -> list[dict]:
    with lzma.open(GOLDEN, "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def as_printed(scores: list[float]) -> list[float]:
    """What the original's front end makes of scores: four decimals, ties set apart by 1e-6.

    The rounding is in double, the rest in float32; the file has six decimals of the result.
    """
    printed: list[np.float32] = []
    ties = 0
    for score in np.array(scores, dtype=np.float32):
        shown = np.float32(math.floor(float(score) * 1e4 + 0.5) / 1e4)
        if printed and printed[-1] - shown <= np.float32(1e-4):
            ties += 1
            shown -= np.float32(1e-6) * np.float32(ties)
        else:
            ties = 0
        printed.append(shown)
    return [round(float(score), 6) for score in printed]


def test_every_ranking_is_the_original_one(index: SearchIndex, golden: list[dict]) -> None:
    assert len(golden) == 465
    for case in golden:
        assert [asin for asin, _ in index.search(case["q"])] == case["asins"], case["q"]


def test_every_score_is_the_original_one(index: SearchIndex, golden: list[dict]) -> None:
    for case in golden:
        scores = [score for _, score in index.search(case["q"])]
        assert as_printed(scores) == case["scores"], case["q"]
