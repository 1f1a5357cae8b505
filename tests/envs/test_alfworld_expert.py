"""The expert: wins every game without noise, from what it was told alone."""

from random import Random

import pytest

from rewardswap.envs.alfworld.engine import TextEngine
from rewardswap.envs.alfworld.expert import Expert, Noise
from rewardswap.envs.alfworld.generator import generate_game
from rewardswap.envs.alfworld.world import GameWorld


def play(seed, noise, turns=50):
    game = generate_game(seed)
    world = GameWorld({"only": [game]}, style="short", turn_limit=turns)
    environment = world.make()
    observation = environment.reset(world.tasks("only")[0])
    expert = Expert(game.goal, Random(seed), noise)
    expert.begin(observation.text)
    steps = []
    for _ in range(turns):
        action = expert.act(observation.admissible)
        step = environment.step(action)
        observation = step.observation
        steps.append((action, step))
        if step.terminated:
            break
        expert.see(action, observation.text)
    return game, steps


def test_without_noise_it_wins_every_game_and_every_action_is_admissible():
    for seed in range(300):
        _, steps = play(seed, Noise())
        assert steps[-1][1].success, seed
        assert all(step.valid for _, step in steps), seed
        assert len(steps) <= 20, seed


def test_it_never_names_an_object_before_it_was_told_of_it():
    for seed in range(50):
        _, steps = play(seed, Noise())
        told = ""
        for action, step in steps:
            if action.startswith("take "):
                assert action[5:].split(" from ")[0] in told
            told += step.observation.text


def test_it_searches_where_it_has_not_looked():
    for seed in range(50):
        _, steps = play(seed, Noise())
        fetched = next(n for n, (action, _) in enumerate(steps) if action.startswith("take "))
        visits = [action for action, _ in steps[:fetched] if action.startswith("go ")]
        assert len(set(visits)) == len(visits), seed


def test_it_recovers_from_its_own_noise():
    won = [play(seed, Noise(rate=0.3))[1][-1][1].success for seed in range(100)]
    assert sum(won) >= 95


def test_forgetting_costs_turns_but_is_noticed():
    for seed in range(40):
        game = generate_game(seed, None, "pick_heat_then_place_in_recep")
        world = GameWorld({"only": [game]}, style="short", turn_limit=40)
        environment = world.make()
        observation = environment.reset(world.tasks("only")[0])
        expert = Expert(game.goal, Random(seed), Noise(forgets_process=True))
        expert.begin(observation.text)
        actions, success = [], False
        while not success and len(actions) < 40:
            actions.append(expert.act(observation.admissible))
            step = environment.step(actions[-1])
            observation, success = step.observation, step.success
            expert.see(actions[-1], observation.text)
        verbs = [action.split()[0] for action in actions]
        assert success
        assert verbs.index("move") < verbs.index("heat")


@pytest.mark.parametrize("seed", range(3))
def test_impossible_noise_is_impossible_but_well_formed(seed):
    _, steps = play(seed, Noise(rate=1.0, inadmissible=1.0), turns=30)
    assert sum(not step.valid for _, step in steps) > 15
    assert all(action.split()[0] in ("take", "move", "open", "use", "go") for action, _ in steps)


def test_it_reads_the_full_wording_too():
    game = generate_game(11)
    engine = TextEngine(game)
    expert = Expert(game.goal, Random(0))
    expert.begin(engine.reset())
    for _ in range(40):
        action = expert.act(())
        expert.see(action, engine.step(action))
        if engine.won:
            break
    assert engine.won
