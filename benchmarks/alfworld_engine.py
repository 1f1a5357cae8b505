"""How fast the ALFWorld engine plays and how little memory it takes.

    python benchmarks/alfworld_engine.py [GAMES_FOLDER]

GAMES_FOLDER is $ALFWORLD_DATA/json_2.1.1. Without it the archive in ../shared/alfworld is used if
there, else generated games. If the `alfworld` package is installed and the games are official ones,
the stock engine plays some of the same episodes for comparison.
"""

import importlib.util
import itertools
import json
import random
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import psutil

from rewardswap.envs.alfworld.engine import TextEngine
from rewardswap.envs.alfworld.game import Game
from rewardswap.envs.alfworld.generator import generate_game
from rewardswap.envs.alfworld.pddl import parse_game

ARCHIVE = Path(__file__).parents[2] / "shared" / "alfworld" / "json_2.1.1.tar.xz"
ENVIRONMENTS = 300
TURNS = 50
STOCK_EPISODES = 3


def contents(folder: Path | None) -> Iterator[bytes]:
    """The official game files of a folder or of the archive."""
    if folder is not None:
        for path in sorted(folder.glob("*/*/*/game.tw-pddl")):
            yield path.read_bytes()
    elif ARCHIVE.is_file():
        with tarfile.open(ARCHIVE, "r|xz") as archive:
            for member in archive:
                content = archive.extractfile(member)
                if content is not None and member.name.endswith("game.tw-pddl"):
                    yield content.read()


def play(engine: TextEngine, stream: random.Random) -> None:
    engine.reset()
    for _ in range(TURNS):
        engine.step(stream.choice(engine.admissible))
        if engine.won:
            return


def memory() -> float:
    return psutil.Process().memory_info().rss / 2**20


def measure(games: list[Game]) -> float:
    """Prints and returns steps per second, `admissible` and `won` read at every step."""
    before = memory()
    engines = [TextEngine(game) for game in games]
    for engine in engines:
        play(engine, random.Random(0))
    print(f"{memory() - before:.1f} MB for {len(engines)} live environments")
    stream, steps = random.Random(1), 0
    start = time.perf_counter()
    for engine in engines:
        engine.reset()
    for _ in range(TURNS):
        for engine in engines:
            engine.step(stream.choice(engine.admissible))
            steps += 1
            if engine.won:
                engine.reset()
    rate = steps / (time.perf_counter() - start)
    print(f"{rate:,.0f} steps/s in one process ({steps:,} random steps)")
    return rate


def measure_stock(files: list[bytes]) -> float:
    """Steps per second of the engine in the `alfworld` package, loading not counted."""
    make = stock_maker()
    stream, steps, seconds = random.Random(1), 0, 0.0
    with tempfile.TemporaryDirectory() as folder:
        for k, content in enumerate(files):
            path = Path(folder, f"{k}.tw-pddl")
            path.write_bytes(content)
            environment = make()
            environment.load(str(path))
            state = environment.reset()
            start = time.perf_counter()
            for _ in range(TURNS):
                state, _, _ = environment.step(stream.choice(state["admissible_commands"]))
                steps += 1
            seconds += time.perf_counter() - start
    return steps / seconds


def stock_maker() -> Callable[[], object]:
    from alfworld.agents.environment.alfred_tw_env import AlfredDemangler
    from textworld import EnvInfos
    from textworld.envs.pddl import PddlEnv

    return lambda: AlfredDemangler(PddlEnv(EnvInfos(admissible_commands=True, won=True)))


def main() -> None:
    folder = Path(sys.argv[1]) if len(sys.argv) > 1 else None
    files = list(itertools.islice(contents(folder), ENVIRONMENTS))
    if files:
        games = [parse_game(json.loads(content)) for content in files]
        print(f"{len(games)} official games")
    else:
        games = [generate_game(seed) for seed in range(ENVIRONMENTS)]
        print(f"no official games at {folder or ARCHIVE}: {len(games)} generated games instead")
    rate = measure(games)
    if importlib.util.find_spec("alfworld") is None:
        print("stock engine: the `alfworld` package is not installed, no comparison")
    elif not files:
        print("stock engine: needs official game files, no comparison")
    else:
        stock = measure_stock(files[:STOCK_EPISODES])
        print(f"stock engine: {stock:.1f} steps/s; this one is {rate / stock:,.0f} times as fast")


if __name__ == "__main__":
    main()
