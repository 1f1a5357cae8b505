"""Game files, product files, and action texts for every environment that ships."""

import json
import shutil
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any
from unittest.mock import patch

from fuzzed_values import as_json, changed, damaged, spoiled, text

from rewardswap.envs.alfworld import pddl
from rewardswap.envs.alfworld.game_writer import problem_text
from rewardswap.envs.alfworld.generator import GeneratedWorld
from rewardswap.envs.alfworld.world import AlfworldWorld
from rewardswap.envs.base import Environment, World
from rewardswap.envs.corridor import CorridorWorld
from rewardswap.envs.webshop import load_catalogue
from rewardswap.envs.webshop.synthetic import synthetic_catalogue, write_catalogue
from rewardswap.envs.webshop.world import ShopWorld

DOMAIN = "(define (domain made-up))"
GRAMMAR = '{"intro": [{"rhs": "Your task is to: %s"}]}'
GAMES = 12
PRODUCTS = 30


@cache
def _games() -> list[dict[str, Any]]:
    """Generated games in the form of ALFWorld's files, with a domain and a grammar of our own."""
    world = GeneratedWorld(seed=0, train=GAMES, held_out=2)
    games = [world.game(task) for task in world.tasks("train")]
    return [
        {
            "pddl_domain": DOMAIN,
            "grammar": GRAMMAR % game.task,
            "pddl_problem": problem_text(game),
            "solvable": True,
            "walkthrough": list(game.walkthrough),
        }
        for game in games
    ]


def _spoiled_game(random: Random) -> bytes:
    game = dict(random.choice(_games()))
    draw = random.random()
    if draw < 0.5:  # inside the problem
        key = random.choice(("pddl_problem", "pddl_problem", "pddl_problem", "grammar"))
        lines = game[key].split("\n")
        for _ in range(random.choice((1, 1, 2, 4))):
            _spoil_line(lines, random)
        game[key] = "\n".join(lines)
        return as_json(game)
    if draw < 0.7:
        problem = damaged(str(game["pddl_problem"]).encode(), random)
        return as_json({**game, "pddl_problem": problem.decode("utf-8", "replace")})
    return spoiled(game, random)


def _spoil_line(lines: list[str], random: Random) -> None:
    place = random.randrange(len(lines))
    kind = random.randrange(5)
    if kind == 0 and len(lines) > 1:
        del lines[place]
    elif kind == 1:
        lines.insert(place, random.choice(lines))
    elif kind == 2:
        lines.insert(place, f"({random.choice(list(pddl.PREDICATES))} {text(random)} Mug_bar_1)")
    else:
        parts = lines[place].split(" ")
        parts[random.randrange(len(parts))] = random.choice((text(random), "Mug_bar_9", "x"))
        lines[place] = " ".join(parts)


def game_files(random: Random, folder: Path) -> None:
    """A folder of official form with one spoiled game; if it is taken, it is played."""
    path = folder / "games" / "train" / "pick" / "trial_1" / "game.tw-pddl"
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_spoiled_game(random))
    digests = {
        "DOMAIN": pddl._domain_digest(DOMAIN),
        "GRAMMAR": pddl._grammar_digest(GRAMMAR.replace('"rhs": "Your task is to: %s"', "")),
    }
    with patch.multiple(pddl, **digests):
        world = AlfworldWorld(folder / "games", style=random.choice(("full", "short")))
        tasks = world.tasks("train")
    play(world, tasks[0], random, turns=12)


def play(world: World, task: Any, random: Random, turns: int) -> None:
    """Play a task by what is offered and by strange texts; checks each answer's types."""
    environment = world.make()
    seen = environment.reset(task)
    for _ in range(turns):
        offered = list(seen.admissible)
        action = random.choice(offered) if offered and random.random() < 0.7 else said(random)
        step = act(environment, action)
        if step.terminated:
            break
        seen = step.observation
    environment.close()


def act(environment: Environment, action: str) -> Any:
    """One action; what comes back keeps the contract."""
    step = environment.step(action)
    seen = step.observation
    assert type(seen.text) is str and type(seen.state_key) is str
    assert all(type(command) is str for command in seen.admissible)
    assert all(type(flag) is bool for flag in (step.valid, step.terminated, step.success))
    assert 0.0 <= step.outcome <= 1.0 and 0.0 <= seen.progress <= 1.0
    return step


@cache
def _shop() -> dict[str, Any]:
    """The files of a generated shop, by name."""
    with TemporaryDirectory(dir=".") as name:
        write_catalogue(Path(name), 0, PRODUCTS)
        return {path.name: json.loads(path.read_bytes()) for path in Path(name).iterdir()}


def product_files(random: Random, folder: Path) -> None:
    """The folder of a generated shop, a file spoiled or gone; if it is taken, it is played."""
    data = folder / "data"
    shutil.rmtree(data, ignore_errors=True)
    data.mkdir()
    victim = random.choice(sorted(_shop()))
    for name, content in _shop().items():
        if name != victim:
            (data / name).write_bytes(as_json(content))
        elif random.random() < 0.95:
            (data / name).write_bytes(_spoiled_shop(content, random))
    instructions = random.choice(("synthetic", "human"))
    world = ShopWorld(load_catalogue(data, instructions=instructions, cache="off"))
    for task in world.tasks("train")[:2]:
        play(world, task, random, turns=6)
    for split in ("train", "valid"):
        world.remarks(split)


def _spoiled_shop(content: Any, random: Random) -> bytes:
    if random.random() < 0.6:  # inside one product
        key = random.choice(list(content) if isinstance(content, dict) else range(len(content)))
        whole = dict(content) if isinstance(content, dict) else list(content)
        whole[key] = changed(content[key], random)
        return as_json(whole)
    return spoiled(content, random)


@cache
def _worlds() -> list[World]:
    shop = synthetic_catalogue(seed=0, products=60)
    return [
        GeneratedWorld(seed=0, train=20, held_out=2, style="full"),
        GeneratedWorld(seed=0, train=20, held_out=2, style="short"),
        CorridorWorld(),
        *(ShopWorld(shop, mode=mode) for mode in ("text", "text_rich", "short")),
    ]


def said(random: Random) -> str:
    """A text that a model might say."""
    draw = random.random()
    strange = text(random)
    if draw < 0.4:
        return strange
    if draw < 0.6:
        return random.choice((f"search[{strange}]", f"click[{strange}]", f"go to {strange}"))
    if draw < 0.7:
        return random.choice((f"take {strange} from {strange}", f"move {strange} to shelf 1"))
    if draw < 0.72:
        return random.choice(("a", "\x00", "search[", "click[x", "go to ", "\U0001f600")) * 200_000
    return "".join(chr(random.randint(0, 0x10FFFF)) for _ in range(random.randint(0, 40)))


def action_texts(random: Random, folder: Path) -> None:
    """Strange actions for a world that ships: what it does not admit changes no state."""
    world = random.choice(_worlds())
    tasks = world.tasks("train")
    environment = world.make()
    seen = environment.reset(random.choice(tasks[:20]))
    for _ in range(random.randint(0, 3)):
        if seen.admissible:
            step = environment.step(random.choice(seen.admissible))
            if step.terminated:
                return
            seen = step.observation
    action = said(random)
    step = act(environment, action)
    if not step.valid:
        assert step.observation.state_key == seen.state_key, "a refused action changed the state"
    environment.close()
