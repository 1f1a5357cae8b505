"""Runs as TOML: what is written comes back, what is wrong is said in one line."""

from dataclasses import replace
from pathlib import Path

import pytest

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
