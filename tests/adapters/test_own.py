"""An environment of one's own by its name: in a run's settings, in worker processes, in TOML."""

import importlib
import sys
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from adapters import strange_environments as strange
from corridors import whole
from rewardswap.adapters.seeded import SeededWorld
from rewardswap.cli import main
from rewardswap.configuration import Run
from rewardswap.env_config.own import Own
from rewardswap.outside import name_of
from rewardswap.plan.lengths import wander
from rewardswap.policy_config import PolicyConfig
from rewardswap.rollout.config import RolloutConfig
from rewardswap.rollout.episodes import EpisodeRequest
from rewardswap.settings import read_run, write_run
from rewardswap.stage import make_stage
from walking import save_walker

HERE = "adapters.strange_environments"


def test_a_class_names_itself_and_makes_its_world() -> None:
    env = Own.of(strange.Count, train_tasks=7, evaluation_tasks=3, turn_limit=4)
    assert env.make == f"{HERE}:Count"
    world = env.world("full")
    assert isinstance(world, SeededWorld)
    assert len(world.tasks("train")) == 7 and len(world.tasks("held_out")) == 3
    assert world.turn_limit == env.turns == 4
    assert replace(env, turn_limit=None).world("full").turn_limit == 6
    assert len(Own.of(strange.Count).world("full").tasks("held_out")) == 100
    assert Own().turns == 20 and Own().panel_split == "held_out"
    assert Own(split="train").decided("full").split == "train"


def test_a_world_is_taken_as_it_is() -> None:
    env = Own(make=f"{HERE}:world")
    assert env.world("full") is strange.world
    assert Own(make="rewardswap.envs.corridor:CorridorWorld").world("full").turn_limit == 8
    with pytest.raises(ValueError, match=r"env\.train_tasks does nothing for CorridorWorld"):
        replace(env, train_tasks=5).world("full")


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (None, r"env\.make names no environment; give --env\.make MODULE:NAME"),
        ("Count", r"env\.make must be MODULE:NAME, got 'Count'"),
        ("no.such:Thing", r"env\.make 'no\.such:Thing' cannot be imported: ModuleNotFoundError"),
        (f"{HERE}:number", r"'adapters.strange_environments:number' is 7; name a class or a f"),
        (f"{HERE}:broken", r"broken\(\) raised RuntimeError: no display"),
    ],
)
def test_what_names_no_environment_is_said(make: str | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Own(make=make).world("full")


def test_what_cannot_be_found_by_name_is_refused() -> None:
    assert name_of(strange.broken) == f"{HERE}:broken"
    for thing in (lambda: 1, strange.Count(), test_a_world_is_taken_as_it_is.__code__):
        with pytest.raises(ValueError, match="cannot be found by name; define it by `def`"):
            name_of(thing)


def test_what_the_script_that_runs_defines_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def mine() -> None: ...

    mine.__module__, mine.__qualname__ = "__main__", "mine"
    monkeypatch.setattr(sys.modules["__main__"], "mine", mine, raising=False)
    with pytest.raises(ValueError, match="define it by `def` or `class` at the top of a module"):
        name_of(mine)


def test_it_is_in_the_record_of_a_run(tmp_path: Path) -> None:
    env = Own.of(strange.Told, train_tasks=9)
    run = Run("x", env=env, policy=PolicyConfig(model="folder"))
    write_run(run, tmp_path / "config.toml")
    assert read_run(tmp_path / "config.toml") == run


def test_worker_processes_find_it_and_play_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "walk_of_mine.py").write_text(
        "from rewardswap.envs.corridor import CorridorEnvironment, CorridorGame\n"
        "class Walk:\n"
        "    def reset(self, seed):\n"
        "        game = CorridorGame(1 + seed % 3, 5, 6)\n"
        "        self.task, self.live = game.task, CorridorEnvironment({game.task.id: game})\n"
        "        return self.live.reset(game.task).text\n"
        "    def step(self, action):\n"
        "        step = self.live.step(action)\n"
        "        return step.observation.text, float(step.success), step.terminated, False, {}\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    importlib.invalidate_caches()
    env = Own(make="walk_of_mine:Walk", train_tasks=4, evaluation_tasks=4, turn_limit=5)
    folder = save_walker(tmp_path / "model")
    played = []
    for workers in (0, 2):
        stage = make_stage(
            env,
            str(folder),
            device="cpu",
            temperature=1.0,
            action_tokens=2,
            rollout=RolloutConfig(workers=workers),
        )
        requests = [EpisodeRequest(task, 0) for task in stage.world.tasks("train")]
        with closing(stage):
            found = stage.play(requests, 0, 0, None)
        assert not found.failures
        played.append([whole(trajectory) for trajectory in found.trajectories])
    assert played[0] == played[1]
    del sys.modules["walk_of_mine"]


def test_lengths_are_measured_where_no_command_is_told() -> None:
    world = Own.of(strange.Count).world("full")
    (walk,) = wander(world, world.tasks("train")[:1], 3, 0)
    assert [action for _, action in walk] == ["look around"] * 3


def test_a_plan_says_what_makes_the_world(capsys: pytest.CaptureFixture[str]) -> None:
    env = ["--env", "own", "--env.make", "rewardswap.envs.corridor:CorridorWorld"]
    main(["plan", "demo-grpo", *env, "--policy.model", "Qwen2.5-0.5B-Instruct"])
    said = " ".join(capsys.readouterr().out.split())
    assert "own, made by rewardswap.envs.corridor:CorridorWorld," in said
