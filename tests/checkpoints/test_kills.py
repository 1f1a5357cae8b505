"""A run that is killed at any moment and goes on ends in the same bits."""

import os
import random
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from killed import PLACES, Kill, counted, elsewhere, execute, record
from rewardswap.checkpoints.config import CheckpointConfig
from rewardswap.configuration import Run
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.gigpo import GiGPO
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.ppo import PPO
from rewardswap.recipes import demo
from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.sources import RewardConfig

SMALL = replace(
    demo(),
    env=Alfworld(turn_limit=10, generated_games=60, evaluation_tasks=4),
    batch=Batch(tasks=4, group_size=4),
    swap=RewardSwap(2, 2, 1 / 4),
    checkpoint=CheckpointConfig(every=2),
    budget=5,
)
FITTED = RewardConfig(trajectories=64, group_size=4, model=ProcessRewardConfig(epochs=3))
RUNS: Mapping[str, Run] = {
    "grpo": replace(SMALL, loop="on_policy", method=GRPO()),
    "rspo": replace(SMALL, reward=FITTED),
    "ppo": replace(
        SMALL,
        method=PPO(),
        swap=RewardSwap(2, 2, 1 / 4, explorer_critic="fresh", harvest="during"),
        reward=RewardConfig(dense="novelty"),
    ),
    "everything": replace(
        SMALL,
        method=GiGPO(),
        swap=RewardSwap(
            2,
            2,
            1 / 4,
            harvest="both",
            reuse_first_batch=True,
            adaptive_alpha=True,
            replay_ages=True,
            on_hacking="shorten",
            harvest_temperatures=(0.7, 1.0, 1.3),
        ),
        reward=replace(FITTED, online=True, noise=0.1),
        checkpoint=CheckpointConfig(every=1, keep=1),
    ),
}


class Course:
    """An undisturbed run: what it left, how long it took, where it came by."""

    def __init__(self, name: str, folder: Path) -> None:
        self.name = name
        self.run = RUNS[name]
        started = time.monotonic()
        self.counts = counted(elsewhere(self.run, folder / name), folder / f"{name}.counts")
        self.seconds = time.monotonic() - started
        self.left = record(folder / name)

    def drawn(self, random: random.Random) -> Kill:
        """A moment of the run."""
        if random.random() < 0.4:
            return Kill(after=random.uniform(0.1, self.seconds))
        place = random.choice([place for place in PLACES if self.counts.get(place)])
        return Kill(place, random.randint(1, self.counts[place]))


def survive(course: Course, kills: list[Kill], folder: Path) -> int:
    """Kill a run again and again, then let it end; how many of the kills came in time."""
    run = elsewhere(course.run, folder)
    died = 0
    for kill in kills:
        there = (folder / "config.toml").exists()
        code = execute(run, resume=there, kill=kill)
        if code == 0:
            break
        assert code == -9
        died += 1
        if (folder / "report.html").exists() and not list(folder.glob("checkpoints/0*")):
            break  # killed when everything was done
        if not there and not (folder / "config.toml").exists():  # killed before it had begun
            run = elsewhere(course.run, folder.with_name(f"{folder.name}-again-{died}"))
            folder = run.output or folder
    else:
        assert execute(run, resume=(folder / "config.toml").exists()) == 0
    assert_equal(record(folder), course.left, kills)
    return died


def assert_equal(found: Mapping[str, Any], wanted: Mapping[str, Any], kills: list[Kill]) -> None:
    assert found.keys() == wanted.keys(), kills
    for name, content in wanted.items():
        assert found[name] == content, (name, kills)


def test_a_run_that_is_killed_goes_on_to_the_same_bits(tmp_path: Path) -> None:
    places = ("record", "restore", "tensors of a checkpoint", "optimizer step", "evaluation")
    kills = [Kill(place) for place in places]
    course = Course("rspo", tmp_path)
    assert survive(course, kills, tmp_path / "killed") == len(kills)


@pytest.mark.slow
@pytest.mark.parametrize("name", RUNS)
def test_kills_at_drawn_moments(name: str, tmp_path: Path) -> None:
    """REWARDSWAP_KILLS kills of each run, 20 unless it is set."""
    random_ = random.Random(name)
    course = Course(name, tmp_path)
    wanted, died, attempt = int(os.environ.get("REWARDSWAP_KILLS", "20")), 0, 0
    while died < wanted:
        kills = [course.drawn(random_) for _ in range(random_.randint(1, 4))]
        died += survive(course, kills, tmp_path / f"killed-{attempt}")
        attempt += 1
    print(f"{name}: {died} kills survived in {attempt} runs")
