"""Runs as TOML: what is written comes back, what is wrong is said in one line."""

from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from rewardswap.configuration import Run
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.env_config.webshop import WebShop
from rewardswap.methods import METHODS
from rewardswap.methods.base import Method
from rewardswap.recipes import RECIPES
from rewardswap.rewards.sources import RewardConfig
from rewardswap.settings import read_run, write_run


@pytest.mark.parametrize("name", RECIPES)
def test_every_recipe_comes_back_from_its_file(name: str, tmp_path: Path) -> None:
    run = replace(RECIPES[name](), seed=7, output=tmp_path / "run")
    write_run(run, tmp_path / "config.toml")
    back = read_run(tmp_path / "config.toml")
    if run.loop == "rspo":
        assert back == run
    else:  # the sections that the loop does not read are not written
        assert replace(back, swap=run.swap, reward=run.reward) == run


def others(hint: Any, value: Any) -> list[Any]:
    """Further values of a setting's type."""
    if type(None) in get_args(hint):
        return [1.5 if value is None else None]
    if get_origin(hint) is Literal:
        return [choice for choice in get_args(hint) if choice != value]
    if isinstance(value, bool):
        return [not value]
    if isinstance(value, int | float):
        return [value + 1, value / 2 + 0.125] if isinstance(value, float) else [value + 1]
    return [value[::-1]]


def changed(kind: type[Method]) -> list[Method]:
    """The method with each setting changed on its own, but for values that it refuses."""
    found = []
    for setting in fields(kind):
        for value in others(get_type_hints(kind)[setting.name], setting.default):
            with suppress(ValueError):
                method = kind(**{**NEEDED.get(setting.name, {}), setting.name: value})
                found.append(run_of(method).method)
    return found


NEEDED: dict[str, dict[str, Any]] = {
    "kl_estimator": {"kl_coefficient": 0.1},
    "kl_placement": {"kl_coefficient": 0.1},
    "kl_on_replay": {"kl_coefficient": 0.1},
    "importance_maximum": {"importance_cap": "mask"},
    "average_tokens": {"average": "constant"},
}
"""Settings without which another one does nothing."""


def run_of(method: Method) -> Run:
    """A run with the method, in the loop that reads all of its settings."""
    credit: Any = "sum" if method.signed_returns else "reward_to_go"
    return Run("x", method=method, reward=RewardConfig(dense_credit=credit))


@pytest.mark.parametrize("kind", METHODS.values(), ids=METHODS)
def test_every_method_comes_back_from_its_file(kind: type[Method], tmp_path: Path) -> None:
    variants = changed(kind)
    assert len(variants) > 10
    for method in (kind(), *variants):
        write_run(run_of(method), tmp_path / "config.toml")
        back = read_run(tmp_path / "config.toml").method
        assert (type(back), back) == (kind, method)


@pytest.mark.parametrize(
    "env",
    [
        Alfworld(),
        Alfworld("s", "t", 3, 4, "verl_agent", 5, games=Path("games"), wording="short"),
        Alfworld(thinking="kept", action_format="tools", generated_games=7, generated_seed=8),
        WebShop(),
        WebShop("s", "t", 3, 4, "verl_agent", seed=5, products=6, mode="text_rich"),
        WebShop(
            data=Path("d"),
            size="full",
            upstream_draw=True,
            instructions="human",
            upstream_split=True,
        ),
    ],
    ids=str,
)
def test_every_environment_comes_back_from_its_file(env: EnvironmentConfig, tmp_path: Path) -> None:
    write_run(Run("x", env=env), tmp_path / "config.toml")
    back = read_run(tmp_path / "config.toml").env
    assert (type(back), back) == (type(env), env)


@pytest.mark.parametrize(
    ("text", "env"),
    [
        ("", Alfworld()),
        ("[env]\nturn_limit = 3", Alfworld(turn_limit=3)),
        ("[env]\nname = 'webshop'\nturn_limit = 3", WebShop(turn_limit=3)),
        ("env = 'webshop'", WebShop()),
        ("env = 'alfworld'", Alfworld()),
    ],
)
def test_an_environment_without_a_name_is_alfworld(
    text: str, env: EnvironmentConfig, tmp_path: Path
) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"recipe = 'x'\n{text}\n")
    assert read_run(path).env == env


@pytest.mark.parametrize("name", METHODS)
def test_a_method_may_be_its_name_alone(name: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(f"recipe = 'x'\nloop = 'on_policy'\nmethod = '{name}'\n")
    assert read_run(path).method == METHODS[name]()


def test_none_is_written_as_a_word(tmp_path: Path) -> None:
    write_run(run_of(METHODS["ppo"](value_clip=None)), tmp_path / "config.toml")
    lines = (tmp_path / "config.toml").read_text().splitlines()
    assert lines[lines.index("[method]") + 1] == 'name = "ppo"'
    assert 'value_clip = "none"' in lines


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("recipe = 'x'\nsede = 3", "unknown key 'sede'; did you mean 'seed'"),
        ("recipe = 'x'\n[policy]\nlearning_rat = 1.0", "did you mean 'learning_rate'"),
        ("recipe = 'x'\nseed = 'three'", "seed must be of type int, got 'three'"),
        ("recipe = 'x'\nseed = true", "seed must be of type int, got True"),
        ("recipe = 'x'\nloop = 'rspa'", "loop must be one of"),
        ("recipe = 'x'\npolicy = 3", "policy must be a table"),
        ("recipe = 'x'\nloop = 'on_policy'\n[swap]\nalpha = 0.5", r"\[swap\] does nothing"),
        ("recipe = 'x'\nmethod = 'grpa'", "unknown method 'grpa'; did you mean 'grpo'"),
        ("recipe = 'x'\n[method]\nclip_low = 0.3", "method needs a name"),
        ("recipe = 'x'\nmethod = 3", "method must be a table of settings"),
        ("recipe = 'x'\nmethod = 'json:loads'", "not a subclass of"),
        (
            "recipe = 'x'\n[method]\nname = 'sapo'\nclip_low = 0.3",
            "config.toml: method.clip_low does nothing in SAPO",
        ),
        (
            "recipe = 'x'\n[method]\nname = 'grpo'\nclip_lo = 0.3",
            "unknown key 'clip_lo'; did you mean 'clip_low'",
        ),
        (
            "recipe = 'x'\n[method]\nname = 'ppo'\nvalue_clip = 'non'",
            "method.value_clip must be of type float, got 'non'",
        ),
        ("recipe = 'x'\n[reward]\nnoise = -1.0", "reward.noise must be at least 0, got -1.0"),
        ("recipe = 'x'\nenv = 'webshap'", "unknown environment 'webshap'; did you mean 'webshop'"),
        ("recipe = 'x'\nenv = 3", "env must be a table of settings"),
        ("recipe = 'x'\n[env]\nname = 3", "unknown environment '3'"),
        (
            "recipe = 'x'\n[env]\nevaluation_games = 3",
            "env: unknown key 'evaluation_games'; did you mean 'evaluation_tasks'",
        ),
        (
            "recipe = 'x'\n[env]\nname = 'webshop'\ngenerated_games = 3",
            "env: unknown key 'generated_games'",
        ),
        (
            "recipe = 'x'\n[env]\nname = 'webshop'\nupstream_draw = true",
            "env.upstream_draw does nothing without a folder in env.data",
        ),
        (
            "recipe = 'x'\nenv = 'webshop'\n[policy]\nmodel = 'base-agent'",
            "'base-agent' is the small agent of alfworld",
        ),
        ("seed = 3", "recipe"),
        ("recipe = ", "not a TOML file"),
        ("recipe = 'x'\n[policy]\nbetas = [0.1]", "betas must be of type"),
        ("recipe = 'x'\n[policy]\nlearning_rate = -1.0", "learning_rate must be above 0"),
        ("recipe = 'x'\n[batch]\ntasks = 12", "the nearest numbers of tasks"),
    ],
)
def test_bad_files_are_refused_with_the_reason(text: str, message: str, tmp_path: Path) -> None:
    path = tmp_path / "config.toml"
    path.write_text(text)
    with pytest.raises(ValueError, match=message):
        read_run(path)
