"""Experiments from files: the keys of the command line, and mistakes by file, arm and key."""

from dataclasses import replace
from pathlib import Path

import pytest

from rewardswap.env_config.webshop import WebShop
from rewardswap.experiments.registry import named_experiment
from rewardswap.methods.gigpo import GiGPO
from rewardswap.recipes import demo, demo_grpo

TEXT = """
summary = "does alpha matter?"
seeds = [0, 1, 2]

[arms.grpo]
recipe = "demo-grpo"
block = "first"

[arms.quarter]
recipe = "demo"
baseline = "grpo"
seeds = [0, 2]
swap.alpha = 0.25
policy.betas = [0.8, 0.9]

[arms.gigpo]
recipe = "demo"
loop = "on_policy"
method = "gigpo"
needs = "grpo"

[arms.gigpo-kl.method]
name = "gigpo"
kl-coefficient = 0.5

[arms.gigpo-kl]
recipe = "demo"
env = "webshop"
env_thinking = 1
"""


def written(folder: Path, text: str) -> str:
    path = folder / "mine.toml"
    path.write_text(text)
    return str(path)


def test_a_file_is_what_the_command_line_would_run(tmp_path: Path) -> None:
    text = TEXT.replace("env_thinking = 1\n", "policy.lora_rank = 'none'\n")
    experiment = named_experiment(written(tmp_path, text))
    assert (experiment.name, experiment.summary) == ("mine", "does alpha matter?")
    grpo, quarter, gigpo, with_kl = experiment.arms
    assert (grpo.run, grpo.seeds, grpo.block) == (demo_grpo(), (0, 1, 2), "first")
    start = demo()
    assert quarter.run == replace(
        start,
        swap=replace(start.swap, alpha=0.25),
        policy=replace(start.policy, betas=(0.8, 0.9)),
    )
    assert (quarter.baseline, quarter.seeds) == ("grpo", (0, 2))
    assert gigpo.run == replace(start, loop="on_policy", method=GiGPO())
    assert gigpo.needs == "grpo"
    assert with_kl.run == replace(start, env=WebShop(), method=GiGPO(kl_coefficient=0.5))


def test_the_example_of_the_page_is_an_experiment(tmp_path: Path) -> None:
    page = (Path(__file__).parents[2] / "docs" / "experiments.md").read_text(encoding="utf-8")
    text = page.partition("```toml\n")[2].partition("```")[0]
    experiment = named_experiment(written(tmp_path, text))
    assert [arm.name for arm in experiment.arms] == ["grpo", "alpha-1-8", "alpha-1-4", "gigpo"]
    assert experiment.arm("alpha-1-4").run.swap.alpha == 0.25
    assert [job.key for job in experiment.jobs()][-1] == ("gigpo", 0)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("arms = ", "mine.toml cannot be read as an experiment"),
        ("summry = 'x'", "unknown key 'summry'; did you mean 'summary'"),
        ("summary = 'x'", "has no arms"),
        ("[arms.a]\nseeds = [0]", "arm 'a' needs a recipe: demo,"),
        ("[arms.a]\nrecipe = 'demi'", "arm 'a': unknown recipe 'demi'; did you mean 'demo'"),
        ("[arms.a]\nrecipe = 'demo'\nseeds = 3", "seeds of arm 'a' must be a list"),
        ("[arms.a]\nrecipe = 'demo'\nseeds = [true]", "seeds of arm 'a' must be a list"),
        ("[arms.a]\nrecipe = 'demo'\nbaseline = 3", "baseline of arm 'a' must be a word"),
        ("[arms.a]\nrecipe = 'demo'\nswap.alpa = .25", "cannot be read"),
        ("[arms.a]\nrecipe = 'demo'\nswap.alpa = 0.25", "did you mean '--swap.alpha'"),
        ("[arms.a]\nrecipe = 'demo'\nswap.alpha = -1", "alpha must be between 0 and 1/2"),
        ("[arms.a]\nrecipe = 'demo'\nbudget = 'much'", "budget must be a whole number"),
        ("[arms.a]\nrecipe = 'demo'\nseed = 3", "sets output or seed"),
        (
            "[arms.a]\nrecipe = 'demo-grpo'\nswap.alpha = 0.25",
            "arm 'a': swap.alpha does nothing in loop 'on_policy'",
        ),
        (
            "[arms.a]\nrecipe = 'demo'\nswap.explore-steps = 0\nreward.noise = 0.1",
            "arm 'a': reward.noise does nothing in a loop that does not explore",
        ),
        (
            "[arms.a]\nrecipe = 'demo'\nreward.dense = 'progress'\nreward.model.head = 'linear'",
            "arm 'a': reward.model.head does nothing in dense reward 'progress'",
        ),
        ("[arms.a]\nrecipe = 'demo'\nbaseline = 'b'", "unknown arm of mine 'b'"),
    ],
)
def test_mistakes_name_the_file_the_arm_and_the_key(
    text: str, message: str, tmp_path: Path
) -> None:
    with pytest.raises(ValueError, match=message) as caught:
        named_experiment(written(tmp_path, text))
    assert "mine.toml" in str(caught.value)


def test_names_and_files_that_are_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="unknown experiment 'smok'; did you mean 'smoke'"):
        named_experiment("smok")
    with pytest.raises(ValueError, match=r"none\.toml cannot be read"):
        named_experiment(str(tmp_path / "none.toml"))
