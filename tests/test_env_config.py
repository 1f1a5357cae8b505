"""Environments as values: what is decided, what is refused, and the worlds that they make."""

import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, get_args

import pytest

from rewardswap.configuration import Run
from rewardswap.env_config import ENVIRONMENTS, base, environment_name, model_of
from rewardswap.env_config.alfworld import Alfworld, TaskType
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.env_config.own import Own
from rewardswap.env_config.webshop import WebShop
from rewardswap.envs.alfworld.game import TASK_TYPES
from rewardswap.envs.base import World
from rewardswap.envs.verl_agent import VERL_AGENT
from rewardswap.envs.webshop.catalogue import Catalogue
from rewardswap.envs.webshop.synthetic import synthetic_catalogue
from rewardswap.models import loading
from rewardswap.models.loading import SMALL_AGENTS
from rewardswap.policy_config import PolicyConfig
from rewardswap.rollout.formats import make_format
from rewardswap.rollout.prompting import CHAT
from rewardswap.rollout.thinking import Thinking

FOLDER = Path("data")


@pytest.mark.parametrize(
    ("env", "split", "turns"),
    [
        (Alfworld(), "held_out", 12),
        (Alfworld(games=FOLDER), "valid_seen", 50),
        (Alfworld(games=FOLDER, split="valid_unseen", turn_limit=7), "valid_unseen", 7),
        (WebShop(), "valid", 15),
        (WebShop(data=FOLDER, split="test", turn_limit=9), "test", 9),
    ],
    ids=str,
)
def test_what_is_left_open_is_decided(env: EnvironmentConfig, split: str, turns: int) -> None:
    decided = env.decided("full")
    assert (decided.split, decided.turn_limit) == (split, turns) == (env.panel_split, env.turns)
    assert decided.decided("short") == decided, "what is decided stays"


def test_the_models_wording_decides_alfworlds() -> None:
    assert [Alfworld().decided(w).wording for w in ("short", "full")] == ["short", "full"]
    assert Alfworld(wording="full").decided("short").wording == "full"


@pytest.mark.parametrize(
    ("settings", "wording", "mode"),
    [
        ({}, "short", "short"),
        ({}, "full", "text_rich"),
        ({"prompt": "verl_agent"}, "full", "text"),
        ({"mode": "text"}, "short", "text"),
        ({"mode": "text_rich", "prompt": "verl_agent"}, "full", "text_rich"),
    ],
    ids=str,
)
def test_wording_and_prompt_decide_webshops_pages(
    settings: dict[str, Any], wording: Any, mode: str
) -> None:
    env = WebShop(products=60, **settings)
    assert env.decided(wording).mode == mode
    assert getattr(env.world(wording), "mode") == mode  # noqa: B009


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Alfworld(games=FOLDER, generated_games=5), "generated_games does nothing in off"),
        (lambda: Alfworld(games=FOLDER, generated_seed=5), "generated_seed does nothing in offic"),
        (lambda: Alfworld(generated_games=0), "generated_games must be at least 1, got 0"),
        (lambda: Alfworld(turn_limit=0), "turn_limit must be at least 1, got 0"),
        (lambda: WebShop(evaluation_tasks=0), "evaluation_tasks must be at least 1, got 0"),
        (
            lambda: Alfworld(window=3),
            "window does nothing in the chat prompt, which tells every tu",
        ),
        (lambda: WebShop(window=3, data=FOLDER), "window does nothing in the chat prompt"),
        (lambda: Alfworld(window=-1, prompt="verl_agent"), "window must be at least 0, got -1"),
        (
            lambda: Alfworld(prompt="verl_agent", thinking="kept", games=FOLDER),
            "thinking does nothing in the prompt verl_agent, which has its own",
        ),
        (
            lambda: WebShop(prompt="verl_agent", action_format="tools"),
            "action_format does nothing in the prompt verl_agent",
        ),
        (lambda: WebShop(products=0), "products must be at least 1, got 0"),
        (lambda: WebShop(seed=-1), "seed must be at least 0, got -1"),
        (lambda: WebShop(data=FOLDER, products=5), "products does nothing with a folder in env.d"),
        (lambda: WebShop(upstream_draw=True), "upstream_draw does nothing without a folder in"),
        (lambda: WebShop(size="full"), "size does nothing without a folder in env.data"),
        (lambda: WebShop(instructions="human"), "instructions does nothing without a folder"),
    ],
)
def test_settings_that_make_no_sense_or_do_nothing(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_settings_that_go_with_a_folder_or_without_one() -> None:
    WebShop(data=FOLDER, size="small", upstream_draw=True, instructions="human", seed=3)
    WebShop(products=5, seed=3, upstream_split=True)
    Alfworld(generated_games=5, generated_seed=3, thinking="kept", action_format="tools")
    Alfworld(prompt="verl_agent", window=0)


def test_the_choices_of_prompts_are_those_of_the_rollout() -> None:
    assert get_args(base.Thinking) == get_args(Thinking)
    for name in get_args(base.ActionFormat):
        make_format(name)
    assert {CHAT, VERL_AGENT} == set(get_args(base.Prompt))


@pytest.mark.parametrize("name", ENVIRONMENTS)
def test_every_environment_is_whole(name: str) -> None:
    env = ENVIRONMENTS[name]()
    assert environment_name(env) == name
    assert env.agent in (*SMALL_AGENTS, "")
    settings = {setting.name for setting in fields(env)}
    assert {idle for names in env.idle().values() for idle in names} <= settings


@pytest.mark.parametrize(
    "env", [Alfworld(generated_games=20, evaluation_tasks=5), WebShop(products=60)], ids=str
)
def test_the_worlds_have_what_was_asked_for(env: EnvironmentConfig) -> None:
    world = replace(env, turn_limit=7).world("short")
    assert isinstance(world, World)
    assert world.turn_limit == 7
    assert world.tasks(env.panel_split) and world.tasks(env.train_split)
    assert env.prompt == "chat" or env.prompt in world.prompt_styles


def test_alfworlds_settings_reach_its_world() -> None:
    env = Alfworld(generated_games=20, evaluation_tasks=5)
    tasks = env.world("short").tasks("train")
    assert len(tasks) == 20
    assert replace(env, generated_seed=1).world("short").tasks("train") != tasks
    assert len(env.world("short").tasks("held_out")) == 5


def test_a_folders_settings_reach_its_catalogue(monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[Any] = []

    def load(*arguments: Any) -> Catalogue:
        given.append(arguments)
        return synthetic_catalogue(0, 60)

    monkeypatch.setattr("rewardswap.envs.webshop.load_catalogue", load)
    WebShop(data=FOLDER).world("short")
    WebShop(data=FOLDER, seed=3, upstream_draw=True, instructions="human", size="full").world(
        "short"
    )
    assert given == [
        (FOLDER, 0, False, "synthetic", "auto"),
        (FOLDER, 3, True, "human", "full"),
    ]


def test_webshops_settings_reach_its_world() -> None:
    plain = WebShop(products=60).world("short")
    assert not WebShop().shares_origins
    assert WebShop(products=60, seed=1).world("short").tasks("valid") != plain.tasks("valid")
    products = {task.origin for split in ("train", "valid", "test") for task in plain.tasks(split)}
    assert products <= set(synthetic_catalogue(0, 60).products)
    upstream = WebShop(products=150, upstream_split=True)
    assert upstream.shares_origins
    tasks = {split: upstream.world("short").tasks(split) for split in ("train", "valid")}
    products = [{task.origin for task in tasks[split]} for split in tasks]
    assert products[0] & products[1]


def test_the_small_agent_of_the_environment_is_the_model_by_default() -> None:
    assert model_of(Alfworld(), None) == model_of(Alfworld(), "base-agent") == "base-agent"
    assert model_of(WebShop(), None) == model_of(WebShop(), "shop-agent") == "shop-agent"
    assert model_of(WebShop(), "folder") == "folder"
    with pytest.raises(ValueError, match=r"no model ships for environment own; give policy\.model"):
        Run("x", env=Own())
    with pytest.raises(ValueError, match="'base-agent' is the small agent of alfworld"):
        Run("x", env=WebShop(), policy=PolicyConfig(model="base-agent"))
    Run("x", env=WebShop())


def test_a_small_agent_that_is_not_there_is_said_as_any_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(loading, "files", lambda _: tmp_path)
    for name in SMALL_AGENTS:
        with pytest.raises(ValueError, match=f"{tmp_path}/assets/{name} does not exist; give"):
            loading.load_language_model(name)


def test_recipes_read_no_world() -> None:
    program = (
        "import sys, rewardswap.recipes, rewardswap.env_config\n"
        "print([m for m in sys.modules if m.startswith('rewardswap.envs.webshop')])"
    )
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]"


def test_generated_games_of_one_type() -> None:
    env = Alfworld(generated_games=6, generated_type="pick_two_obj_and_place", evaluation_tasks=4)
    world = env.world("short")
    tasks = [*world.tasks("train"), *world.tasks("held_out")]
    assert len({task.id for task in tasks}) == 10
    assert {task.family for task in tasks} == {"pick_two_obj_and_place"}
    assert sorted(get_args(TaskType)) == sorted(TASK_TYPES)
    with pytest.raises(ValueError, match="generated_type does nothing in official games"):
        Alfworld(games=FOLDER, generated_type="pick_two_obj_and_place")
