"""Against the official games and the stock engine's own words (`../shared`, skipped without)."""

import json
import lzma
import tarfile
from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from rewardswap.envs.alfworld.engine import NOTHING_HAPPENS, TextEngine
from rewardswap.envs.alfworld.game import TASK_TYPES, Game, display_name, game_id
from rewardswap.envs.alfworld.oracle import solve
from rewardswap.envs.alfworld.pddl import parse_game, read_game
from rewardswap.envs.alfworld.wording import FIXED_WORDS, plain_words, shorten
from rewardswap.envs.alfworld.world import AlfworldWorld

SHARED = Path(__file__).parents[3] / "shared" / "alfworld"
TAR = SHARED / "json_2.1.1.tar.xz"
GOLDEN = SHARED / "golden_play.jsonl.xz"
STRIDE = 13
"""Of every split and task type, each 13th game is in the sample: 323 of 4,027."""

pytestmark = pytest.mark.skipif(
    not (TAR.is_file() and GOLDEN.is_file()),
    reason="needs ALFWorld's game set and golden play in ../shared/alfworld",
)


@pytest.fixture(scope="session")
def episodes() -> list[dict]:
    with lzma.open(GOLDEN, "rt") as lines:
        return [json.loads(line) for line in lines]


def official_files() -> Iterator[tuple[str, bytes]]:
    """Path below `json_2.1.1` and content of every official game, in the archive's order."""
    with tarfile.open(TAR, "r|xz") as archive:
        for member in archive:
            if member.name.endswith("/game.tw-pddl"):
                content = archive.extractfile(member)
                assert content is not None
                yield member.name.split("/", 1)[1], content.read()


@pytest.fixture(scope="session")
def folder(episodes: list[dict], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The golden games and the sample, unpacked."""
    golden = {episode["game"] for episode in episodes}
    target = tmp_path_factory.mktemp("alfworld") / "json_2.1.1"
    seen: Counter[str] = Counter()
    for name, content in official_files():
        stratum = name.split("-", 1)[0]
        if seen[stratum] % STRIDE == 0 or name in golden:
            (target / name).parent.mkdir(parents=True)
            (target / name).write_bytes(content)
        seen[stratum] += 1
    assert seen.total() == 4027
    return target


@pytest.fixture(scope="session")
def games(folder: Path) -> dict[str, Game]:
    paths = sorted(folder.glob("*/*/*/game.tw-pddl"))
    return {path.relative_to(folder).as_posix(): read_game(path) for path in paths}


def test_golden_play_is_equal_word_for_word(episodes: list[dict], games: dict[str, Game]) -> None:
    assert len(episodes) == 180
    commands = 0
    for episode in episodes:
        engine = TextEngine(games[episode["game"]])
        for step in episode["steps"]:
            command = step["command"]
            answer = engine.reset() if command is None else engine.step(command)
            place = (episode["game"], episode["mode"], command)
            assert answer == step["feedback"], place
            assert engine.admissible == step["admissible"], place
            assert engine.won == step["won"], place
            commands += command is not None
    assert commands == 3210


def test_golden_play_has_a_short_form_without_loss(episodes: list[dict]) -> None:
    """All numbered names and their order survive, and nothing but fixed words is added."""
    for episode in episodes:
        for step in episode["steps"]:
            short = shorten(step["feedback"])
            full, task = plain_words(step["feedback"]), ""
            if step["command"] is None:
                _, _, task = full.partition("task is to : ")
            rest = [word for word in short.split() if word not in FIXED_WORDS]
            known = full.split()
            assert all(word in known for word in rest)
            assert short.endswith(task)
            assert set(numbered(full)) == set(numbered(short))


def numbered(text: str) -> list[tuple[str, str]]:
    words = text.split()
    return [(a, b) for a, b in pairwise(words) if b.isdigit()]


def play(game: Game, commands: list[str]) -> None:
    """Every command is admissible, progress never falls, and 1 is exactly `won`."""
    engine = TextEngine(game)
    progress = [engine.progress]
    for command in commands:
        assert not engine.won
        assert engine.is_admissible(command)
        assert engine.step(command) != NOTHING_HAPPENS
        progress.append(engine.progress)
        assert (engine.progress == 1.0) == engine.won
    assert engine.won
    assert progress[0] == 0.0 and progress == sorted(progress)


def check(game: Game) -> None:
    play(game, list(game.walkthrough))
    plan = solve(game)
    play(game, plan)
    assert len(plan) <= len(game.walkthrough)


def test_walkthrough_and_oracle_win_a_sample(games: dict[str, Game]) -> None:
    assert len(games) >= 323
    strata = Counter((name.split("/")[0], game.goal.task_type) for name, game in games.items())
    assert len(strata) == 4 * len(TASK_TYPES)
    for game in games.values():
        check(game)


@pytest.mark.slow
def test_walkthrough_and_oracle_win_every_game() -> None:
    ids = set()
    for _, content in official_files():
        game = parse_game(json.loads(content))
        ids.add(game_id(game))
        check(game)
    assert len(ids) == 4027


def test_random_play_keeps_the_engine_s_promises(games: dict[str, Game]) -> None:
    """Equal keys have equal admissible lists, lists are sorted and say what `step` accepts."""
    for k, game in enumerate(list(games.values())[::25]):
        engine = TextEngine(game)
        lists: dict[str, list[str]] = {}
        for turn in range(60):
            commands = engine.admissible
            assert commands == sorted(set(commands))
            assert lists.setdefault(engine.state_key, commands) == commands
            command = commands[(k + 7 * turn * turn) % len(commands)]
            answer = engine.step(command)
            assert answer != NOTHING_HAPPENS
            assert shorten(answer)


def test_the_world_lists_every_file_once_in_sorted_order(
    folder: Path, games: dict[str, Game]
) -> None:
    world = AlfworldWorld(folder)
    for split in ("train", "valid_seen", "valid_unseen", "valid_train"):
        expected = [game for name, game in games.items() if name.startswith(f"{split}/")]
        tasks = world.tasks(split)
        assert [task.id for task in tasks] == [game_id(game) for game in expected]
        assert [task.family for task in tasks] == [g.goal.task_type for g in expected]
        assert world.left_out[split] == {}
    split = "valid_unseen"
    assert AlfworldWorld(folder.parent).tasks(split) == world.tasks(split)


def test_the_path_s_task_type_is_the_goal_s(games: dict[str, Game]) -> None:
    for name, game in games.items():
        assert name.split("/")[1].split("-")[0] == game.goal.task_type


def test_the_facts_of_one_game(games: dict[str, Game]) -> None:
    game = games[
        "train/pick_and_place_simple-Statue-None-CoffeeTable-228/"
        "trial_T20190906_185513_812051/game.tw-pddl"
    ]
    assert game.task == "put some statue on coffeetable."
    assert (game.goal.object_kind, game.goal.receptacle_kind) == ("Statue", "CoffeeTable")
    kinds = Counter(place.kind for place in game.receptacles)
    assert kinds == {
        **{"CoffeeTable": 1, "DiningTable": 1, "Drawer": 1, "GarbageCan": 1},
        **{"SideTable": 2, "Sofa": 2},
    }
    assert [place.kind for place in game.receptacles if place.openable] == ["Drawer"]
    (statue,) = [thing for thing in game.objects if thing.kind == "Statue"]
    assert display_name(statue.receptacles[0]) == "sidetable"
    assert statue.affordances == {"pickupable"}
    assert ("CoffeeTable", "Statue") in game.can_contain
    assert ("Drawer", "Statue") not in game.can_contain
    assert len(game.walkthrough) == 4


@pytest.fixture
def content(folder: Path) -> dict:
    path = next(iter(sorted(folder.glob("valid_seen/pick_heat*/*/game.tw-pddl"))))
    return json.loads(path.read_bytes())


def test_spaces_comments_and_order_of_a_file_do_not_matter(content: dict) -> None:
    game = parse_game(content)
    domain = content["pddl_domain"].replace("\n", "\n ; a remark\n")
    problem = content["pddl_problem"].replace("\n", " ; (openable Moon)\n")
    assert parse_game({**content, "pddl_domain": domain, "pddl_problem": problem}) == game


def replaced(content: dict, key: str, old: str, new: str) -> dict:
    assert old in content[key]
    return {**content, key: content[key].replace(old, new, 1)}


@pytest.mark.parametrize(
    ("key", "old", "new", "message"),
    [
        ("pddl_domain", "(not (holdsAny ?a))", "(holdsAny ?a)", "domain is not ALFWorld's"),
        ("grammar", "move {o} to {r}", "put {o} in/on {r}", "grammar is not that of ALFWorld 0.4"),
        ("pddl_problem", "(isHot ?o)", "(isSliced ?o)", "unknown form of goal"),
        ("pddl_problem", "(openable ", "(isBroken ", r"unknown fact \(isBroken"),
        ("pddl_problem", "(receptacleType ", "(canContain ", "lacks a type or a location"),
        ("pddl_problem", "(:init", "(:start", r"no '\(:init'"),
    ],
)
def test_other_content_is_refused(
    content: dict, key: str, old: str, new: str, message: str
) -> None:
    with pytest.raises(ValueError, match=message):
        parse_game(replaced(content, key, old, new))


def test_a_second_place_of_one_thing_is_refused(content: dict) -> None:
    agent = "(atLocation agent1 "
    twice = replaced(content, "pddl_problem", agent, f"(atLocation agent1 loc_bar_moon) {agent}")
    with pytest.raises(ValueError, match="'agent1' has 2 facts 'atLocation', expected one"):
        parse_game(twice)
