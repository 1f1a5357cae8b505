"""Generated games: the same by seed, solvable, never won at the start, official affordances."""

from collections import Counter

import pytest

from rewardswap.envs.alfworld.affordances import ACCEPTS, CAN_CONTAIN, FURNITURE, MOVABLES
from rewardswap.envs.alfworld.engine import TextEngine
from rewardswap.envs.alfworld.game import TASK_TYPES, game_id
from rewardswap.envs.alfworld.generator import GeneratedWorld, RoomSize, fresh_games, generate_game


def test_same_seed_same_game():
    assert generate_game(5) == generate_game(5)
    assert game_id(generate_game(5)) != game_id(generate_game(6))


def test_a_pinned_game():
    """Changes of the generator that change existing games must be seen."""
    assert game_id(generate_game(0)) == "d9ef244a9e3ff962"


def test_three_hundred_games_are_solved_by_their_walkthrough():
    for seed in range(300):
        game = generate_game(seed)
        engine = TextEngine(game)
        engine.reset()
        assert not engine.won
        for command in game.walkthrough:
            assert engine.is_admissible(command), (seed, command)
            engine.step(command)
        assert engine.won, seed


def test_all_task_types_are_about_equally_frequent():
    counts = Counter(generate_game(seed).goal.task_type for seed in range(600))
    assert set(counts) == set(TASK_TYPES)
    assert min(counts.values()) > 60  # 100 expected, standard deviation 9


def test_no_wanted_object_starts_in_a_receptacle_of_the_goal_kind():
    for seed in range(300):
        game = generate_game(seed)
        kinds = {r.id: r.kind for r in game.receptacles}
        starts = [kinds[o.receptacles[0]] for o in game.objects if o.kind == game.goal.object_kind]
        assert starts and game.goal.receptacle_kind not in starts


def test_every_object_starts_where_it_may_lie():
    for seed in range(200):
        game = generate_game(seed)
        kinds = {r.id: r.kind for r in game.receptacles}
        for thing in game.objects:
            if thing.kind != "DeskLamp":
                assert thing.kind in ACCEPTS[kinds[thing.receptacles[0]]]


def test_room_size_bounds_hold():
    size = RoomSize(receptacles=(7, 9), objects=(10, 12), most_of_a_kind=4)
    for seed in range(50):
        game = generate_game(seed, size)
        assert 7 <= len(game.receptacles) <= 9
        assert len(game.objects) <= 12


@pytest.mark.parametrize("task_type", TASK_TYPES)
def test_a_task_type_can_be_asked_for(task_type):
    assert {generate_game(seed, None, task_type).goal.task_type for seed in range(5)} == {task_type}


def test_a_type_that_no_room_has_is_refused():
    with pytest.raises(ValueError, match="none of the rooms"):
        generate_game(0, RoomSize(rooms=("bathroom",)), "pick_heat_then_place_in_recep")


@pytest.mark.parametrize(
    "wrong", [{"receptacles": (6, 4)}, {"objects": (0, 2)}, {"rooms": ("attic",)}]
)
def test_an_impossible_room_size_is_refused(wrong):
    with pytest.raises(ValueError, match="room"):
        RoomSize(**wrong)


def test_the_splits_of_a_world_share_no_game():
    world = GeneratedWorld(3, train=60, held_out=40)
    train = {task.id for task in world.tasks("train")}
    held_out = {task.id for task in world.tasks("held_out")}
    assert (len(train), len(held_out)) == (60, 40)
    assert not train & held_out


def test_more_training_games_leave_the_held_out_games_as_they_are():
    few = GeneratedWorld(3, train=5, held_out=20).tasks("held_out")
    many = GeneratedWorld(3, train=50, held_out=20).tasks("held_out")
    assert list(few) == list(many)


def test_fresh_games_leave_out_what_was_seen():
    seen = {game_id(game) for game in fresh_games(1, 3)}
    assert not {game_id(game) for game in fresh_games(1, 3, None, set(seen))} & seen


def test_the_tables_name_each_other():
    assert all(place in ACCEPTS for room in FURNITURE.values() for place in room)
    accepted = {kind for _, kind in CAN_CONTAIN}
    assert all(kind in accepted for kinds in MOVABLES.values() for kind in kinds)


def test_rooms_with_too_few_different_games_are_refused():
    size = RoomSize((3, 3), (3, 3), 1, ("bathroom",))
    with pytest.raises(ValueError, match="different games"):
        fresh_games(0, 1, size, Everything())


class Everything(set):
    """A set that holds whatever is asked for."""

    def __contains__(self, item):
        return True
