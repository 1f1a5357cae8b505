"""How long the shop's index takes to build, how much memory, and how fast it searches.

    python benchmarks/webshop_search.py [PRODUCTS ...] [--plot FILE]

PRODUCTS are numbers of synthetic products, by default 1000 10000 100000; 1000000 takes minutes.
Words are drawn from a vocabulary with Zipf's law, as many per product as in WebShop, whose most
frequent term is in 45 % of the products.
"""

import argparse
import multiprocessing
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import psutil

from rewardswap.envs.webshop.search import SearchIndex

SIZES = (1_000, 10_000, 100_000)
VOCABULARY = 1_000_000
EXPONENT = 1.1
FLATTENING = 20
"""Added to the rank of a word: with stop words left out, the first words are not so frequent."""
WORDS = 75
QUERIES = 200
FREQUENT = 60
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
    """By kind: like an instruction, short, and only frequent words."""
    stream = np.random.default_rng(1)

    def made(size: int) -> str:
        return " ".join(words[place] for place in draw(stream, bounds, size))

    def frequent() -> str:
        return " ".join(words[place] for place in stream.permutation(FREQUENT)[:15])

    return {
        "18 words": [made(18) for _ in range(QUERIES)],
        "3 words": [made(3) for _ in range(QUERIES)],
        "15 frequent": [frequent() for _ in range(QUERIES)],
    }


def times(index: SearchIndex, asked: list[str]) -> np.ndarray:
    """Milliseconds per query."""
    taken = []
    for query in asked:
        start = time.perf_counter()
        index.search(query)
        taken.append(1e3 * (time.perf_counter() - start))
    return np.array(taken)


def memory() -> float:
    return psutil.Process().memory_info().rss / 2**20


def peak() -> float:
    status = Path("/proc/self/status")
    if not status.is_file():
        return float("nan")
    lines = dict(line.split(":", 1) for line in status.read_text().splitlines())
    return int(lines["VmHWM"].split()[0]) / 2**10


def measure(count: int) -> dict[str, float]:
    """Runs in a process of its own, so that memory can be told."""
    words, bounds = vocabulary(), frequencies()
    before = memory()
    start = time.perf_counter()
    for _ in products(count, words, bounds):
        pass
    drawing = time.perf_counter() - start
    start = time.perf_counter()
    index = SearchIndex.build(products(count, words, bounds))
    building = time.perf_counter() - start - drawing
    most = peak() - before
    fingerprint = index.fingerprint
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "index")
        index.save(path)
        size = path.stat().st_size / 2**20
        start = time.perf_counter()
        mapped = SearchIndex.load(path, fingerprint)
        loading = 1e3 * (time.perf_counter() - start)
        assert mapped is not None
        print(
            f"{count:,} products: built in {building:.1f} s with at most {most:,.0f} MB more, "
            f"{size:,.0f} MB on disk, loaded in {loading:.1f} ms"
        )
        result = {"products": count, "build s": building, "memory MB": most, "disk MB": size}
        for kind, asked in queries(words, bounds).items():
            assert [mapped.search(query) for query in asked[:5]] == [
                index.search(query) for query in asked[:5]
            ]
            taken = times(index, asked)
            middle, high = np.median(taken), np.percentile(taken, 95)
            print(
                f"  {kind}: {middle:.2f} ms in the middle, {high:.2f} ms at 95 %, "
                f"{taken.max():.2f} ms at most"
            )
            result[kind] = float(middle)
    return result


def plot(results: list[dict[str, float]], path: Path) -> None:
    from matplotlib import pyplot

    sizes = [result["products"] for result in results]
    figure, (left, right) = pyplot.subplots(1, 2, figsize=(9, 3.5), layout="constrained")
    for kind in ("18 words", "3 words", "15 frequent"):
        left.loglog(sizes, [result[kind] for result in results], "o-", label=kind)
    left.set(xlabel="products", ylabel="median search time, ms")
    for kind in ("build s", "memory MB", "disk MB"):
        right.loglog(sizes, [result[kind] for result in results], "o-", label=kind)
    right.set(xlabel="products", ylabel="index")
    left.legend()
    right.legend()
    figure.savefig(path)
    print(f"plot: {path}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("products", nargs="*", type=int, default=SIZES)
    parser.add_argument("--plot", type=Path, default=Path("webshop_search.png"))
    arguments = parser.parse_args()
    context = multiprocessing.get_context("spawn")
    results = []
    for count in arguments.products:
        with context.Pool(1) as pool:
            results.append(pool.apply(measure, (count,)))
    try:
        plot(results, arguments.plot)
    except ImportError:
        print("no plot: matplotlib is not installed")


if __name__ == "__main__":
    main()
