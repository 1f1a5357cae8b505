"""Experiments as values: what they refuse, and in which order their runs come."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pretended import from_weak, two_arms

from rewardswap.comparison.results import settings_digest
from rewardswap.experiments.experiment import Arm, Experiment, Job
from rewardswap.experiments.places import Places
from rewardswap.experiments.registry import EXPERIMENTS, named_experiment
from rewardswap.experiments.store import digest
from rewardswap.recipes import demo, demo_grpo
from rewardswap.settings import read_run

RUN = demo()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": "A"}, "arm 'A' cannot name a folder"),
        ({"name": "../x"}, "cannot name a folder"),
        ({"name": ""}, "cannot name a folder"),
        ({"name": ".x"}, "cannot name a folder"),
        ({"seeds": ()}, "needs seeds"),
        ({"seeds": (1, 1)}, "each once"),
        ({"seeds": (0, -1)}, "0 or more"),
        ({"run": replace(RUN, seed=1)}, "sets output or seed"),
        ({"run": replace(RUN, output=Path("x"))}, "sets output or seed"),
        (
            {"needs": "b", "run": replace(RUN, policy=replace(RUN.policy, model="m"))},
            "policy.model of arm 'a' does nothing beside `needs`",
        ),
    ],
)
def test_bad_arms_are_refused(settings: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Arm(**({"name": "a", "run": RUN, "seeds": (0,)} | settings))


@pytest.mark.parametrize(
    ("arms", "message"),
    [
        ([{}, {}], "'a' of experiment 'x' is there twice"),
        ([{"baseline": "a"}], "its own baseline"),
        ([{"baseline": "c"}, {"name": "b"}], "unknown arm of x 'c'"),
        ([{"needs": "b"}, {"name": "b"}], "needs 'b', which is no arm before it"),
        ([{"needs": "a"}], "no arm before it"),
        ([{}, {"name": "b", "baseline": "a", "seeds": (0, 2)}], r"seeds \[2\] that its baseline"),
    ],
)
def test_bad_experiments_are_refused(arms: list[dict[str, Any]], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        Experiment(
            "x", "", tuple(Arm(**({"name": "a", "run": RUN, "seeds": (0,)} | a)) for a in arms)
        )


def test_a_block_gives_every_arm_its_first_seed_before_any_its_second() -> None:
    base, more = {"run": RUN, "block": "base"}, {"run": RUN, "block": "more"}
    experiment = Experiment(
        "x",
        "",
        (
            Arm("a", seeds=(0, 1, 2), **base),
            Arm("b", seeds=(0, 1), **base),
            Arm("c", seeds=(5, 4), **more),
            Arm("d", seeds=(0,), **more),
        ),
    )
    keys = [job.key for job in experiment.jobs()]
    first = [("a", 0), ("b", 0), ("a", 1), ("b", 1), ("a", 2)]
    assert keys == [*first, ("c", 5), ("d", 0), ("c", 4)]
    assert [job.key for job in experiment.jobs(["d", "a"], [7])] == [("a", 7), ("d", 7)]
    with pytest.raises(ValueError, match="unknown arm of x 'e'"):
        experiment.jobs(["e"])


def test_a_run_takes_its_seed_and_the_checkpoint_that_its_arm_needs(tmp_path: Path) -> None:
    experiment = from_weak()
    job = experiment.jobs(["grown"])[1]
    needed = experiment.needed(job)
    assert needed is not None and needed.key == ("weak", 3)
    places = Places(tmp_path, experiment)
    places.write_config(job)
    run = read_run(tmp_path / "grown" / "seed-1.toml")
    assert (run.seed, run.policy.model) == (1, str(tmp_path / "weak" / "seed-3" / "checkpoint"))


def test_the_digest_of_an_arm_holds_that_of_the_arm_it_starts_from() -> None:
    experiment = from_weak()
    weak, grown, apart = experiment.arms
    assert digest(experiment, weak) == settings_digest(weak.run)
    assert digest(experiment, grown) != digest(experiment, apart)  # of equal settings
    for changed in (replace(weak, seeds=(4, 3)), replace(weak, run=replace(weak.run, budget=9))):
        other = replace(experiment, arms=(changed, grown, apart))
        assert digest(other, grown) != digest(experiment, grown)
        assert digest(other, apart) == digest(experiment, apart)


@pytest.mark.parametrize("name", EXPERIMENTS)
def test_arms_of_built_in_experiments_come_back_from_their_files(name: str, tmp_path: Path) -> None:
    experiment = named_experiment(name)
    assert (experiment.name, bool(experiment.summary)) == (name, True)
    places = Places(tmp_path, experiment)
    for job in (Job(arm, arm.seeds[-1]) for arm in experiment.arms):
        places.write_config(job)
        read = read_run(places.config(job))
        assert read.seed == job.seed
        if job.arm.needs is None:
            assert settings_digest(read) == settings_digest(job.arm.run)


def test_an_arm_compares_with_the_baseline_of_equal_settings() -> None:
    swapped, alone = two_arms().arms[1].run, two_arms().arms[0].run
    assert (swapped.loop, alone.loop) == ("rspo", "on_policy")
    assert settings_digest(demo_grpo()) == settings_digest(replace(swapped, loop="on_policy"))
