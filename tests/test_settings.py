"""Runs as TOML: what is written comes back, what is wrong is said in one line."""

from contextlib import suppress
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal, get_args, get_origin, get_type_hints

import pytest

from rewardswap.configuration import Run
from rewardswap.loops.rspo import RewardSwap
from rewardswap.methods import METHODS
from rewardswap.methods.base import Method
from rewardswap.recipes import RECIPES
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
    return Run("x", method=method, swap=RewardSwap(dense_credit=credit))


@pytest.mark.parametrize("kind", METHODS.values(), ids=METHODS)
def test_every_method_comes_back_from_its_file(kind: type[Method], tmp_path: Path) -> None:
    variants = changed(kind)
    assert len(variants) > 10
    for method in (kind(), *variants):
        write_run(run_of(method), tmp_path / "config.toml")
        back = read_run(tmp_path / "config.toml").method
        assert (type(back), back) == (kind, method)


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
        ("recipe = 'x'\n[reward.model]\nnoise = -1.0", "reward.model.noise is -1.0"),
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
