"""How fast the shop plays, how fast it starts an episode and how little memory a visitor takes.

    python benchmarks/webshop.py [DATA_FOLDER]

DATA_FOLDER is the folder data/ of WebShop's own set-up. Without it ../shared/webshop is used if
there. A generated shop of 1,000 products is always played too. Every line compares two numbers.
Times are the processor's, so that other programs on the machine count less.
"""

import json
import lzma
import sys
import time
import tracemalloc
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random
from statistics import median

import webshop_search
from circumstances import circumstances
from rich.console import Console
from rich.table import Table

from rewardswap.envs.webshop import Catalogue, ShopWorld, TextShop, load_catalogue
from rewardswap.envs.webshop.search import SearchIndex
from rewardswap.envs.webshop.synthetic import synthetic_catalogue

SHARED = Path(__file__).parents[2] / "shared" / "webshop"
PLAYED = "golden_traj.jsonl.xz"
ORIGINAL_STEPS = 38.0
"""Steps per second of the original in one process, as published (spec/webshop.md)."""
ORIGINAL_MEGABYTES = 250.0
"""The least that a process of the original takes, as published."""
EPISODES, TURNS = 400, 15
VISITORS = 256
REPEATS = 5
DOCUMENTS = 100_000

Episode = tuple[int, Sequence[str]]
"""A goal's place and the actions taken."""


def recorded(folder: Path) -> list[Episode]:
    """The original's own random episodes on the real small set."""
    with lzma.open(folder / PLAYED, "rt", encoding="utf-8") as lines:
        played = [json.loads(line) for line in lines]
    return [(p["goal_idx"], [s["action"] for s in p["steps"][1:]]) for p in played]


def made_up(catalogue: Catalogue) -> list[Episode]:
    """Random episodes with as many searches and impossible actions as the recorded ones have."""
    stream, shop, episodes = Random(0), TextShop(catalogue), []
    for number in stream.sample(range(len(catalogue.goals)), EPISODES):
        shop.reset(number)
        actions: list[str] = []
        while len(actions) < TURNS and (shop.clickables or not actions):
            actions.append(choose(shop, stream))
            if shop.step(actions[-1])[2]:
                break
        episodes.append((number, actions))
    return episodes


def choose(shop: TextShop, stream: Random) -> str:
    if stream.random() < 0.02:
        return "think[of something]"
    if shop.has_search_bar or stream.random() < 0.05:
        goal = shop.goal
        words = (goal["query"], f"{' '.join(goal['attributes'])} {goal['query']}", goal["name"])
        return f"search[{stream.choice(words)}]"
    return f"click[{stream.choice(shop.clickables)}]"


def seconds(work: Callable[[], object]) -> float:
    """Of the processor, the median of a few times after one that is not counted."""
    taken = []
    for _ in range(REPEATS + 1):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return median(taken[1:])


def steps_per_second(catalogue: Catalogue, mode: str, episodes: Sequence[Episode]) -> float:
    shop = TextShop(catalogue, mode)

    def play() -> None:
        for number, actions in episodes:
            shop.reset(number)
            for action in actions:
                shop.step(action)

    return sum(len(actions) for _, actions in episodes) / seconds(play)


def world_steps_per_second(catalogue: Catalogue) -> float:
    """Through the library's contract: admissible actions, keys of states and progress too."""
    world = ShopWorld(catalogue)
    tasks = world.tasks("train")[:EPISODES]
    steps = 0

    def play() -> None:
        nonlocal steps
        stream, environment, steps = Random(1), world.make(), 0
        for task in tasks:
            observation = environment.reset(task)
            for _ in range(TURNS):
                action = stream.choice(observation.admissible)
                if action.startswith("search"):
                    action = f"search[{task.family} {stream.choice(observation.text.split())}]"
                step = environment.step(action)
                steps += 1
                if step.terminated:
                    break
                observation = step.observation

    taken = seconds(play)
    return steps / taken


def reset_microseconds(catalogue: Catalogue) -> float:
    shop, count = TextShop(catalogue), min(len(catalogue.goals), 5000)
    return 1e6 / count * seconds(lambda: [shop.reset(number) for number in range(count)])


def visitors_megabytes(catalogue: Catalogue, mode: str, episodes: Sequence[Episode]) -> float:
    """Of visitors in the middle of an episode, on one catalogue, with all that is remembered."""
    tracemalloc.start()
    shops = []
    for number in range(VISITORS):
        goal, actions = episodes[number % len(episodes)]
        shops.append(TextShop(catalogue, mode))
        shops[-1].reset(goal)
        for action in actions[: len(actions) // 2]:
            shops[-1].step(action)
    used, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    return used / 1e6


def search_milliseconds() -> tuple[float, float]:
    """A query like an instruction: skipping what cannot be among the best, and scoring all."""
    words, bounds = webshop_search.vocabulary(), webshop_search.frequencies()
    index = SearchIndex.build(webshop_search.products(DOCUMENTS, words, bounds))
    queries = webshop_search.queries(words, bounds)["18 words"]
    webshop_search.times(index, queries)  # looks the terms up
    skipping = webshop_search.times(index, queries, time.process_time)
    everything, answers = webshop_search.exhaustive(index, queries)
    assert answers == [index.search(query) for query in queries]
    return float(skipping.mean()), float(everything.mean())


def rows(name: str, catalogue: Catalogue, episodes: Sequence[Episode]) -> list[tuple[str, ...]]:
    text, rich = (steps_per_second(catalogue, mode, episodes) for mode in ("text", "text_rich"))
    world = world_steps_per_second(catalogue)
    reset = reset_microseconds(catalogue)
    small, large = (visitors_megabytes(catalogue, m, episodes) for m in ("text", "text_rich"))
    original = f"the original: {ORIGINAL_STEPS:.0f}"
    memory = f"the original: {VISITORS} x {ORIGINAL_MEGABYTES:.0f} MB"
    return [
        (f"{name}: text", f"{text:,.0f} steps/s", original, f"{text / ORIGINAL_STEPS:,.0f} x"),
        (f"{name}: text_rich", f"{rich:,.0f} steps/s", "text", f"{rich / text:.2f} x"),
        (f"{name}: as a World", f"{world:,.0f} steps/s", "text", f"{world / text:.2f} x"),
        (f"{name}: reset", f"{reset:.1f} µs", "a step in text", f"{reset * text / 1e6:.2f} x"),
        (f"{name}: {VISITORS} visitors, text", f"{small:.1f} MB", memory, ratio(small)),
        (f"{name}: {VISITORS} visitors, text_rich", f"{large:.1f} MB", memory, ratio(large)),
    ]


def ratio(megabytes: float) -> str:
    return f"1 / {VISITORS * ORIGINAL_MEGABYTES / megabytes:,.0f}"


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else SHARED
    table = Table("what", "measured", "beside", "ratio", title=circumstances())
    generated = synthetic_catalogue(seed=0, products=1000)
    lines = rows("generated", generated, made_up(generated))
    if folder.is_dir():
        real = load_catalogue(folder, seed=42, upstream_draw=True)
        known = (folder / PLAYED).is_file()
        lines += rows("official", real, recorded(folder) if known else made_up(real))
    else:
        print(f"no official data at {folder}: the generated shop only")
    skipping, everything = search_milliseconds()
    beside = f"scoring all: {everything:.2f} ms"
    name = f"search in {DOCUMENTS:,} products"
    lines.append((name, f"{skipping:.2f} ms", beside, f"{everything / skipping:.1f} x as fast"))
    for line in lines:
        table.add_row(*line)
    Console(width=100).print(table)


if __name__ == "__main__":
    main()
