"""The shop's search: scores by hand, ties, the cut to the best, and the index file."""

import math
import random
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from rewardswap.envs.webshop import postings, ranking, search
from rewardswap.envs.webshop.analyzer import analyze
from rewardswap.envs.webshop.bm25 import (
    LENGTHS,
    byte_to_length,
    inverse_document_frequency,
    length_to_byte,
    lengths_to_bytes,
)
from rewardswap.envs.webshop.search import SearchIndex, fingerprint_of

THREE = [("b", "red shoe red"), ("c", "blue shoe"), ("a", "green hat for the garden")]


def exhaustive(
    documents: list[tuple[str, str]], query: str, k: int = 50
) -> list[tuple[str, float]]:
    """Every document scored the plain way, one float32 operation at a time."""
    return Plain(documents).search(query, k)


class Plain:
    def __init__(self, documents: list[tuple[str, str]]) -> None:
        self.terms = {name: Counter(analyze(contents)) for name, contents in documents}
        filled = [counts for counts in self.terms.values() if counts]
        self.filled = len(filled)
        self.containing = Counter(term for counts in filled for term in counts)
        mean = np.float32(sum(map(Counter.total, filled)) / self.filled)
        one, k1, b = np.float32([1, 0.9, 0.4])
        self.norms = {}
        for name, counts in self.terms.items():
            length = np.float32(byte_to_length(length_to_byte(counts.total())))
            self.norms[name] = one / (k1 * ((one - b) + b * length / mean))

    def search(self, query: str, k: int) -> list[tuple[str, float]]:
        one, totals = np.float32(1), Counter()
        for term, times in Counter(analyze(query)).items():
            idf = inverse_document_frequency(self.filled, self.containing[term])
            weight = np.float32(times) * idf
            for name, counts in self.terms.items():
                if counts[term]:
                    saturation = one + np.float32(counts[term]) * self.norms[name]
                    totals[name] += float(weight - weight / saturation)
        found = [(name, float(np.float32(total))) for name, total in totals.items()]
        return sorted(found, key=lambda entry: (-entry[1], entry[0]))[:k]


def made(count: int, seed: int, vocabulary: int = 60) -> list[tuple[str, str]]:
    """Documents with words of Zipf's law, many of them alike, in no order."""
    stream = random.Random(seed)
    names = [f"p{number:04d}" for number in range(count)]
    stream.shuffle(names)
    weights = [1 / rank for rank in range(1, vocabulary + 1)]
    letters = [f"w{number}q" for number in range(vocabulary)]
    return [
        (name, " ".join(stream.choices(letters, weights, k=stream.choice((0, 1, 3, 9, 40, 300)))))
        for name in names
    ]


def test_lengths_in_a_byte() -> None:
    assert [length_to_byte(length) for length in range(40)] == list(range(40))
    assert [byte_to_length(byte) for byte in range(40)] == list(range(40))
    # from 40 on four significant bits of (length - 24) are kept
    assert [byte_to_length(byte) for byte in range(40, 50)] == [
        40,
        42,
        44,
        46,
        48,
        50,
        52,
        54,
        56,
        60,
    ]
    assert [length_to_byte(length) for length in (40, 41, 42, 55, 56, 59, 60)] == [
        40, 40, 41, 47, 48, 48, 49,
    ]  # fmt: skip
    assert length_to_byte(2**31 - 1) == 255
    for byte in range(256):
        assert length_to_byte(byte_to_length(byte)) == byte
        assert byte == 0 or length_to_byte(byte_to_length(byte) - 1) == byte - 1
    lengths = np.array([0, 23, 24, 100, 1000, 12345, 2**31 - 1])
    assert lengths_to_bytes(lengths).tolist() == [length_to_byte(n) for n in lengths.tolist()]
    assert (np.diff(LENGTHS) > 0).all()


def test_scores_by_hand() -> None:
    """Three documents of 3, 2 and 3 terms; "for" and "the" are not counted."""
    index = SearchIndex.build(THREE)
    assert inverse_document_frequency(3, 1) == pytest.approx(math.log(1 + 2.5 / 1.5))
    mean = 8 / 3
    rare, common = math.log(1 + 2.5 / 1.5), math.log(1 + 1.5 / 2.5)
    of_three = 1 / (0.9 * (0.6 + 0.4 * 3 / mean))
    of_two = 1 / (0.9 * (0.6 + 0.4 * 2 / mean))

    def added(weight: float, times: int, norm: float) -> float:
        return weight - weight / (1 + times * norm)

    red_shoe = index.search("Red shoes!")
    assert [name for name, _ in red_shoe] == ["b", "c"]
    assert red_shoe[0][1] == pytest.approx(
        added(rare, 2, of_three) + added(common, 1, of_three), rel=1e-6
    )
    assert red_shoe[1][1] == pytest.approx(added(common, 1, of_two), rel=1e-6)
    assert index.search("hat hat") == [("a", pytest.approx(added(2 * rare, 1, of_three), rel=1e-6))]
    for query in ("red shoe", "hat", "shoe", "garden shoe blue red"):
        assert index.search(query) == exhaustive(THREE, query)


def test_nothing_to_find() -> None:
    index = SearchIndex.build(THREE)
    for query in ("", " ", "the of with", "purple", "\0", "_", "💯"):
        assert index.search(query) == []
    assert index.search("shoe", k=0) == []
    for documents in ([], [("a", "")], [("a", "the"), ("b", "")]):
        empty = SearchIndex.build(documents)
        assert len(empty) == len(documents)
        assert empty.search("shoe the") == []


def test_documents_without_terms_do_not_count() -> None:
    with_empty = SearchIndex.build([*THREE, ("d", ""), ("e", "the of")])
    assert len(with_empty) == 5
    assert with_empty.search("red shoe") == SearchIndex.build(THREE).search("red shoe")


def test_ties_by_id_and_more_wanted_than_found() -> None:
    names = ["b", "B", "é", "a", "💯", "10", "9", "z"]
    index = SearchIndex.build((name, "same words") for name in names)
    found = index.search("words")
    assert [name for name, _ in found] == sorted(names)
    assert len({score for _, score in found}) == 1
    assert index.search("words", k=3) == found[:3]
    assert index.search("words", k=1000) == found


def test_the_same_id_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="'a'"):
        SearchIndex.build([("a", "x"), ("b", "y"), ("a", "z")])


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("limits", [(2**20, 2500), (50, 0)])
def test_equal_to_scoring_everything(
    seed: int, limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever is skipped, and however small the batches are."""
    batch, few = limits
    monkeypatch.setattr(postings, "BATCH", batch)
    monkeypatch.setattr(postings, "WORDS_REMEMBERED", batch // 4)
    monkeypatch.setattr(ranking, "FEW", few)
    monkeypatch.setattr(ranking, "CHUNK", 70)
    documents = made(300, seed)
    index, plain = SearchIndex.build(documents), Plain(documents)
    stream = random.Random(seed)
    for _ in range(30):
        size = stream.choice((1, 2, 5, 20, 60))
        query = " ".join(f"w{stream.randrange(62)}q" for _ in range(size))
        k = stream.choice((1, 3, 10, 50, 400))
        assert index.search(query, k) == plain.search(query, k), (query, k)


def test_counts_beyond_a_byte() -> None:
    documents = [("a", "x " * 5000 + "y"), ("b", "x " * 300), ("c", "x y z")]
    index = SearchIndex.build(documents)
    for query in ("x", "y x", "z"):
        assert index.search(query) == exhaustive(documents, query)


def test_the_order_of_documents_does_not_matter() -> None:
    documents = made(120, 9)
    forward, backward = SearchIndex.build(documents), SearchIndex.build(documents[::-1])
    for query in ("w0q w1q w7q", "w3q", "w50q w2q"):
        assert forward.search(query) == backward.search(query)
    assert forward.fingerprint != backward.fingerprint


def test_the_file_gives_the_same_index(tmp_path: Path) -> None:
    path = tmp_path / "new" / "index"
    for documents in (made(200, 1), THREE, [], [("a", "")]):
        index = SearchIndex.build(documents)
        assert index.fingerprint == fingerprint_of(documents)
        index.save(path)
        loaded = SearchIndex.load(path, index.fingerprint)
        assert loaded is not None
        assert loaded.fingerprint == index.fingerprint
        assert len(loaded) == len(index)
        for query in ("w0q w5q", "w30q", "red shoe", "nothing"):
            assert loaded.search(query) == index.search(query)
    assert [entry.name for entry in path.parent.iterdir()] == ["index"]


def test_a_file_that_is_not_right_is_not_used(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = SearchIndex.build(THREE)
    right, path = tmp_path / "right", tmp_path / "index"
    index.save(right)
    content = right.read_bytes()

    def load(data: bytes) -> SearchIndex | None:
        path.write_bytes(data)
        return SearchIndex.load(path, index.fingerprint)

    assert load(content) is not None
    for size in range(len(content)):
        assert load(content[:size]) is None, size
    assert load(content + b"\0") is None
    assert load(b"x" + content[1:]) is None
    assert load(content.replace(b'"version": %d' % search.VERSION, b'"version": 0')) is None
    assert SearchIndex.load(tmp_path / "missing", index.fingerprint) is None
    assert SearchIndex.load(tmp_path, index.fingerprint) is None
    assert SearchIndex.load(right, fingerprint_of(THREE[:2])) is None
    monkeypatch.setattr(search, "VERSION", search.VERSION + 1)
    assert SearchIndex.load(right, index.fingerprint) is None


def test_the_cache_is_rebuilt_when_stale_cut_or_of_another_version(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index"
    builds = []
    build = SearchIndex.build
    monkeypatch.setattr(
        SearchIndex, "build", lambda documents: builds.append(1) or build(documents)
    )

    def red(documents: list[tuple[str, str]]) -> list[str]:
        return [name for name, _ in SearchIndex.cached(path, lambda: documents).search("red")]

    assert (red(THREE), len(builds)) == (["b"], 1)
    assert (red(THREE), len(builds)) == (["b"], 1)
    changed = [*THREE[:2], ("a", "red hat")]
    assert (red(changed), len(builds)) == (["b", "a"], 2)
    assert (red(changed), len(builds)) == (["b", "a"], 2)
    path.write_bytes(path.read_bytes()[:-1])
    assert (red(changed), len(builds)) == (["b", "a"], 3)
    monkeypatch.setattr(search, "VERSION", search.VERSION + 1)
    assert (red(changed), len(builds)) == (["b", "a"], 4)
    assert (red(changed), len(builds)) == (["b", "a"], 4)


def test_a_cache_that_cannot_be_written_is_done_without(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.warns(UserWarning, match="not kept"):
        index = SearchIndex.cached(tmp_path / "file" / "index", lambda: THREE)
    assert index.search("red")


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "index"
    index = SearchIndex.build(THREE)
    index.save(path)

    def full(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        SearchIndex.build(made(50, 0)).save(path)
    assert SearchIndex.load(path, index.fingerprint) is not None
    assert [entry.name for entry in tmp_path.iterdir()] == ["index"]
