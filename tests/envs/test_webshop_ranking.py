"""How the best are found without scoring everything: bounds of frequent terms, and who is scored.

That rankings and scores are right is tested in test_webshop_search.
"""

import random

import numpy as np
import pytest

from rewardswap.envs.webshop import ranking
from rewardswap.envs.webshop.bm25 import Saturation, score
from rewardswap.envs.webshop.frequent import SHARE, STEPS
from rewardswap.envs.webshop.postings import Collector, Postings
from rewardswap.envs.webshop.ranking import QueryTerm, kth_highest, rank

SIZE = 4000


def collected(documents: list[str]) -> Postings:
    collector = Collector()
    for contents in documents:
        collector.add(contents)
    return collector.finish([f"{number:05d}" for number in range(len(documents))])[1]


@pytest.fixture(scope="module")
def postings() -> Postings:
    """Words w0q to w39q, the first in most documents, of very different lengths."""
    stream = random.Random(5)
    weights = [1 / rank for rank in range(1, 41)]
    words = [f"w{number}q" for number in range(40)]
    sizes = stream.choices((1, 3, 6, 12, 700), (30, 30, 20, 18, 2), k=SIZE)
    return collected([" ".join(stream.choices(words, weights, k=size)) for size in sizes])


def query(postings: Postings, *words: str) -> list[QueryTerm]:
    terms = []
    for weight, word in enumerate(words, start=1):
        number = postings.terms.find(word)
        assert number is not None
        documents, codes = postings.of(number)
        parts, peak = postings.frequent.find(number), postings.peaks[number : number + 1]
        terms.append(QueryTerm(documents, codes, parts, peak, np.float32(weight)))
    return terms


def test_what_is_frequent(postings: Postings) -> None:
    counts = np.diff(postings.starts)
    assert 0 < len(postings.frequent.terms) < len(counts)
    for number, count in enumerate(counts):
        assert (postings.frequent.find(number) is not None) == (count * SHARE > SIZE)
    assert postings.frequent.find(len(counts)) is None


def test_a_part_bounds_the_score_and_is_close_to_it(postings: Postings) -> None:
    saturation = Saturation(postings.mean_length)
    for number in postings.frequent.terms.tolist():
        parts = postings.frequent.find(number)
        documents, codes = postings.of(number)
        assert parts is not None
        assert sorted(np.flatnonzero(parts).tolist()) == documents.tolist()
        for weight in np.float32([0.013, 1.0, 7.77]):
            most = score(postings.peaks[number : number + 1], weight).item()
            bound = parts[documents].astype(np.float64) * most / STEPS
            reached = score(saturation(codes), weight)
            assert (bound >= reached).all()
            assert (bound <= reached + 1.02 * most / STEPS).all()
        assert parts.max() == STEPS


def test_parts_by_hand() -> None:
    """Two lengths: 1 and 3 terms, mean 2; `x` is in both documents, once."""
    found = collected(["x", "x y z"])
    number = found.terms.find("x")
    assert number is not None
    parts = found.frequent.find(number)
    assert parts is not None
    # 1 - 1 / (1 + 1 / (0.9 * (0.6 + 0.4 * length / 2))): 0.58140 and 0.48077, a share of 0.8269
    assert parts.tolist() == [255, 211]


def test_only_few_are_scored(postings: Postings, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "FEW", 0)
    terms = query(postings, *(f"w{number}q" for number in range(12)))
    saturation = Saturation(postings.mean_length)
    k = 10
    chosen, scores = rank(terms, SIZE, saturation, k)
    everything = np.zeros(SIZE)
    for term in terms:
        everything[term.documents] += score(saturation(term.codes), term.weight)
    bar = kth_highest(everything.astype(np.float32), k)
    assert set(np.flatnonzero(everything.astype(np.float32) >= bar)) <= set(chosen.tolist())
    assert (scores == everything[chosen].astype(np.float32)).all()
    assert k <= len(chosen) < 10 * k


@pytest.mark.parametrize("k", [1, 7, 3999, 4000, 5000])
def test_all_that_tie_with_the_last_are_kept(k: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ranking, "FEW", 0)
    same = collected(["red shoe"] * SIZE)
    chosen, scores = rank(query(same, "red", "shoe"), SIZE, Saturation(same.mean_length), k)
    assert chosen.tolist() == list(range(SIZE))
    assert len(set(scores.tolist())) == 1


def test_kth_highest() -> None:
    values = np.array([3.0, 1.0, 2.0])
    assert [kth_highest(values, k) for k in (1, 2, 3, 4)] == [3.0, 2.0, 1.0, 0.0]
