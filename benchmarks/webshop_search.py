"""How long the shop's index takes to build, how much memory, and how fast it searches.

    python benchmarks/webshop_search.py [PRODUCTS ...] [--plot FILE]

PRODUCTS are numbers of synthetic products, by default 1000 10000 100000 1000000; the last takes
five minutes and 3 GB. Words are drawn from a vocabulary with Zipf's law, as many per product as in
WebShop, whose most frequent term is in 45 % of the products. Every size is searched with and
without skipping what cannot be among the best 50; the two must find the same.
"""

import argparse
import gc
import multiprocessing
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import psutil
from circumstances import circumstances
from matplotlib import rc_context
from matplotlib.figure import Figure

from rewardswap.envs.webshop import ranking
from rewardswap.envs.webshop.progress import watched
from rewardswap.envs.webshop.search import SearchIndex

SIZES = (1_000, 10_000, 100_000, 1_000_000)
VOCABULARY = 1_000_000
EXPONENT = 1.1
FLATTENING = 20
"""Added to the rank of a word: with stop words left out, the first words are not so frequent."""
WORDS = 75
QUERIES = 200
COMPARED = 40
"""Queries of a kind that are also answered by scoring everything."""
FREQUENT, MIDDLING = slice(0, 60), slice(80, 140)
"""Places of the most frequent words, and of those just too rare for bounds in bytes."""
LETTERS = np.array(list("bcdfghjklmnpqrtvwxz"))


def vocabulary() -> list[str]:
    """Words without vowels, so that the stemmer keeps them apart."""
    places = np.arange(VOCABULARY)[:, None] // len(LETTERS) ** np.arange(5) % len(LETTERS)
    return ["".join(word) for word in LETTERS[places]]


def frequencies() -> np.ndarray:
    weights = 1 / (np.arange(VOCABULARY) + FLATTENING) ** EXPONENT
    return np.cumsum(weights / weights.sum())


def draw(stream: np.random.Generator, bounds: np.ndarray, size: int) -> np.ndarray:
    return np.minimum(np.searchsorted(bounds, stream.random(size)), VOCABULARY - 1)


def products(count: int, words: list[str], bounds: np.ndarray) -> Iterator[tuple[str, str]]:
    """Ids and contents; the lengths differ as those of real products do."""
    stream = np.random.default_rng(0)
    for number in range(count):
        size = int(stream.lognormal(np.log(WORDS), 0.6)) + 5
        drawn = draw(stream, bounds, size).tolist()
        yield f"B{number:09d}", " ".join([words[place] for place in drawn])


def queries(words: list[str], bounds: np.ndarray) -> dict[str, list[str]]:
    """By kind: like an instruction, short, long, and only words that are in many products."""
    stream = np.random.default_rng(1)

    def made(size: int) -> list[str]:
        drawn = draw(stream, bounds, QUERIES * size).reshape(QUERIES, size)
        return [" ".join(words[place] for place in places) for places in drawn]

    def among(places: slice) -> list[str]:
        known = np.arange(VOCABULARY)[places]
        return [" ".join(words[p] for p in stream.permutation(known)[:15]) for _ in range(QUERIES)]

    return {
        "18 words": made(18),
        "3 words": made(3),
        "40 words": made(40),
        "15 most frequent": among(FREQUENT),
        "15 middling": among(MIDDLING),
    }


def times(
    index: SearchIndex, asked: list[str], clock: Callable[[], float] = time.perf_counter
) -> np.ndarray:
    """Milliseconds per query."""
    taken = []
    for query in asked:
        start = clock()
        index.search(query)
        taken.append(1e3 * (clock() - start))
    return np.array(taken)


def exhaustive(
    index: SearchIndex, asked: list[str]
) -> tuple[np.ndarray, list[list[tuple[str, float]]]]:
    """Milliseconds of the processor per query, and what is found, where all are scored."""
    few, ranking.FEW = ranking.FEW, 2**62
    try:
        return times(index, asked, time.process_time), [index.search(query) for query in asked]
    finally:
        ranking.FEW = few


def memory() -> float:
    return psutil.Process().memory_info().rss / 2**20


def peak() -> float:
    status = Path("/proc/self/status")
    if not status.is_file():
        return float("nan")
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 2**10


@dataclass(frozen=True)
class Measured:
    """What one size needs."""

    products: int
    build: float
    """Seconds, less those for drawing the words."""
    memory: float
    """Most megabytes while building, with the index."""
    disk: float
    """Megabytes."""
    load: float
    """Milliseconds from the file, its checksums included."""
    searches: dict[str, np.ndarray]
    """Milliseconds of every query by kind: the first time by the wall clock; then again, its terms
    known, by the processor's; and so scoring everything, for the first COMPARED of them."""
    worst: str


def measure(count: int) -> Measured:
    """Runs in a process of its own, so that memory can be told."""
    words, bounds = vocabulary(), frequencies()
    before, start = memory(), time.perf_counter()
    for _ in products(count, words, bounds):
        pass
    drawing, start = time.perf_counter() - start, time.perf_counter()
    index = SearchIndex.build(watched(products(count, words, bounds), f"{count:,}", count))
    building, most = time.perf_counter() - start - drawing, peak() - before
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "index")
        index.save(path)
        size, start = path.stat().st_size / 2**20, time.perf_counter()
        mapped = SearchIndex.load(path, index.fingerprint)
        loading = 1e3 * (time.perf_counter() - start)
        assert mapped is not None
        searches, worst = {}, (0.0, "")
        gc.freeze()  # the vocabulary is no part of a shop, but collecting garbage walks through it
        for kind, asked in queries(words, bounds).items():
            times(mapped, asked[:5])
            taken = times(mapped, asked)
            worst = max(worst, (float(taken.max()), f"{kind}: {asked[int(taken.argmax())]}"))
            plain, answers = exhaustive(mapped, asked[:COMPARED])
            assert answers == [index.search(query) for query in asked[:COMPARED]]
            plain = np.pad(plain, (0, QUERIES - COMPARED), constant_values=np.nan)
            searches[kind] = np.stack([taken, times(mapped, asked, time.process_time), plain])
    return Measured(
        count, building, most, size, loading, searches, f"{worst[0]:.1f} ms, {worst[1]}"
    )


def report(results: list[Measured]) -> None:
    """Tables in Markdown."""
    print("| products | build | memory of the build | on disk | loading, checked |")
    print("|---|---|---|---|---|")
    for r in results:
        disk = f"{r.disk:,.1f} MB" if r.disk < 10 else f"{r.disk:,.0f} MB"
        cells = f"{r.build:,.1f} s | {r.memory:,.0f} MB | {disk} | {r.load:,.1f} ms"
        print(f"| {r.products:,} | {cells} |")
    print(
        "\n| products | query | median | 95 % | 99 % | most | again, most | all, median | ratio |"
    )
    print("|---|---|---|---|---|---|---|---|---|")
    for r in results:
        for kind, (wall, processor, plain) in r.searches.items():
            middle, high, higher, most = np.percentile(wall, [50, 95, 99, 100])
            everything = np.nanmedian(plain)
            cells = (middle, high, higher, most, processor.max(), everything)
            shown = " | ".join(f"{cell:.2f}" for cell in cells)
            ratio = everything / np.median(processor[:COMPARED])
            print(f"| {r.products:,} | {kind} | {shown} | {ratio:.1f} |")
    print("\nMilliseconds. The slowest query of each size:\n")
    for r in results:
        print(f"- {r.products:,}: {r.worst}")


def plot(results: list[Measured], path: Path) -> None:
    sizes = [r.products for r in results]
    figure = Figure(figsize=(9, 3.6), layout="constrained")
    left, right = figure.subplots(1, 2)
    for kind in results[0].searches:
        (line,) = left.loglog(sizes, [np.median(r.searches[kind][0]) for r in results], "o-")
        line.set_label(kind)
        left.loglog(
            sizes, [r.searches[kind][0].max() for r in results], ":", color=line.get_color()
        )
    left.axhline(50, color="grey", linewidth=1)
    left.set(xlabel="products", ylabel="ms: median (line), slowest (dots)", title="search")
    left.set_ylim(bottom=0.02)
    right.loglog(sizes, [r.build for r in results], "o-", label="build, s")
    right.loglog(sizes, [r.memory for r in results], "o-", label="memory of the build, MB")
    right.loglog(sizes, [r.disk for r in results], "o-", label="on disk, MB")
    right.set(xlabel="products", title="index")
    for axes in (left, right):
        axes.legend(fontsize="small", frameon=False, loc="lower right")
        axes.spines[["top", "right"]].set_visible(False)
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "webshop-search"}):
        figure.savefig(path, metadata={"Date": None} if path.suffix == ".svg" else None)
    print(f"\nplot: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("products", nargs="*", type=int, default=SIZES)
    parser.add_argument("--plot", type=Path, default=Path("webshop-search.svg"))
    arguments = parser.parse_args()
    print(circumstances() + "\n")
    context = multiprocessing.get_context("spawn")
    results = []
    for count in arguments.products:
        with context.Pool(1) as pool:
            results.append(pool.apply(measure, (count,)))
    report(results)
    plot(results, arguments.plot)


if __name__ == "__main__":
    main()
