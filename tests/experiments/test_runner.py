"""The runner: what it makes, in which order, what it does with failures, and how it goes on."""

import json
import signal
from dataclasses import replace
from pathlib import Path

import pytest
from pretended import Made, from_weak, pretend, two_arms

from rewardswap.experiments.command import HOLDERS
from rewardswap.experiments.process import start, training
from rewardswap.lock import locked

ALL = [("grpo", 0), ("rspo", 0), ("grpo", 1), ("rspo", 1)]


def test_every_run_is_made_once_and_a_second_call_makes_none(tmp_path: Path) -> None:
    made = Made(tmp_path, two_arms(), at_once=1)
    assert made.run() == []
    assert made.stored == ALL
    assert made.lines[:2] == [
        "started grpo seed 0",
        "done grpo seed 0: success 25.0% -> 50.0% in 10 s",
    ]
    again = Made(tmp_path, two_arms())
    assert again.run() == []
    assert again.lines == []
    assert made.places.log(two_arms().jobs()[0]).read_text() == "training demo-grpo, threads 1\n"


def test_two_at_once_make_the_same(tmp_path: Path) -> None:
    made = Made(tmp_path, two_arms(), at_once=2)
    made.run()
    assert sorted(made.stored) == sorted(ALL)
    assert sorted(made.lines[:2]) == ["started grpo seed 0", "started rspo seed 0"]


def test_a_failed_run_is_kept_and_starts_anew(tmp_path: Path) -> None:
    made = Made(tmp_path, two_arms(), {"grpo/seed-0": ["fail", "well"]}, at_once=1)
    assert made.run() == []
    assert made.stored == ALL
    kept = tmp_path / "runs" / "grpo" / "seed-0.stopped-1"
    failed = f"failed grpo seed 0 (exit code 1): rewardswap: it broke; kept in {kept}"
    assert made.lines[1:3] == [failed, "started grpo seed 0"]
    assert (kept / "metrics.jsonl").is_file()
    assert "it broke" in kept.with_name("seed-0.stopped-1.log").read_text()
    assert made.runner.skipped == set()


def test_an_arm_that_fails_twice_is_skipped_and_the_others_go_on(tmp_path: Path) -> None:
    made = Made(tmp_path, two_arms(), {"grpo/seed-0": ["fail"]}, at_once=1)
    left = made.run()
    assert made.stored == [("rspo", 0), ("rspo", 1)]
    assert [job.key for job in left] == [("grpo", 0), ("grpo", 1)]
    assert made.runner.skipped == {"grpo"}
    assert "arm grpo is skipped: it failed 2 times" in made.lines
    assert sorted(p.name for p in (tmp_path / "runs" / "grpo").iterdir()) == [
        "seed-0.stopped-1",
        "seed-0.stopped-1.log",
        "seed-0.stopped-2",
        "seed-0.stopped-2.log",
        "seed-0.toml",
    ]
    again = Made(tmp_path, two_arms(), at_once=1)
    assert again.run() == []
    assert sorted(again.stored) == sorted(ALL)


def test_what_a_stopped_runner_left_is_kept_aside(tmp_path: Path) -> None:
    folder = tmp_path / "runs" / "grpo" / "seed-0"
    folder.mkdir(parents=True)
    (folder / "metrics.jsonl").write_text("half")
    made = Made(tmp_path, two_arms())
    made.run(made.experiment.jobs(["grpo"], [0]))
    assert made.stored == [("grpo", 0)]
    assert (tmp_path / "runs" / "grpo" / "seed-0.stopped-1" / "metrics.jsonl").read_text() == "half"


@pytest.mark.parametrize("code", ["here", "elsewhere"])
def test_a_run_that_was_stopped_goes_on_where_its_code_is_the_same(
    code: str, tmp_path: Path
) -> None:
    made = Made(tmp_path, two_arms())
    (job,) = made.experiment.jobs(["grpo"], [0])
    made.places.write_config(job)
    folder = made.places.folder(job)
    (folder / "checkpoints" / "00000004").mkdir(parents=True)
    (folder / "environment.json").write_text(json.dumps({"commit": code}))
    assert training(made.places.config(job), folder)[3:] == ["train", "--resume", str(folder)]
    made.run([job])
    assert made.stored == [("grpo", 0)]
    kept = tmp_path / "runs" / "grpo" / "seed-0.stopped-1"
    assert kept.exists() == (code != "here")
    goes_on = "grpo seed 0 goes on from its checkpoint"
    assert made.lines[0] == (
        goes_on if code == "here" else f"what grpo seed 0 left before is kept in {kept}"
    )


def test_a_run_that_ended_without_its_runner_is_stored(tmp_path: Path) -> None:
    made = Made(tmp_path, two_arms())
    made.run()
    (tmp_path / "results.jsonl").unlink()
    again = Made(tmp_path, two_arms(), at_once=1)
    assert again.run() == []
    assert again.stored == ALL
    assert not any(line.startswith("started") for line in again.lines)


def test_a_run_of_other_settings_is_not_stored_for_the_arm(tmp_path: Path) -> None:
    made = Made(tmp_path, two_arms())
    job = made.experiment.jobs(["grpo"], [0])
    made.run(job)
    (tmp_path / "results.jsonl").unlink()
    config = made.places.config(job[0])
    config.write_text(config.read_text().replace("budget = 90", "budget = 91"))
    again = Made(tmp_path, two_arms())
    again.run(job)
    kept = tmp_path / "runs" / "grpo" / "seed-0.stopped-1"
    left = f"what grpo seed 0 left before is kept in {kept}"
    assert again.lines[:2] == [left, "started grpo seed 0"]


def test_a_run_that_ended_on_other_code_is_made_again(tmp_path: Path) -> None:
    made = Made(tmp_path, two_arms(), {"grpo/seed-0": ["other", "well"]})
    job = made.experiment.jobs(["grpo"], [0])
    with pytest.raises(ValueError, match="grpo seed 0 was made with other, the source is here"):
        made.run(job)
    again = Made(tmp_path, two_arms(), {"grpo/seed-0": ["other", "well"]})
    assert again.run(job) == []
    assert again.lines[0].startswith("grpo seed 0 is made again: ")
    assert again.stored == [("grpo", 0)]


def test_mixing_that_is_allowed_is_in_the_results(tmp_path: Path) -> None:
    behaviours = {"rspo/seed-0": ["other"]}
    made = Made(tmp_path, two_arms(), behaviours, mix=("commits", "panels"), at_once=1)
    made.run()
    lines = (tmp_path / "results.jsonl").read_text().splitlines()
    mixed = [json.loads(line)["mixed"] for line in lines]
    assert mixed == [[], *[["commits", "panels"]] * 3]


def test_an_arm_starts_from_the_first_seed_of_the_one_it_needs(tmp_path: Path) -> None:
    made = Made(tmp_path, from_weak(), at_once=2)
    assert made.run(made.experiment.jobs(["grown", "apart"])) == []
    assert ("weak", 4) not in made.stored
    order = [line for line in made.lines if "weak" in line or "grown" in line]
    assert order[:2] == ["started weak seed 3", "done weak seed 3: success 25.0% -> 50.0% in 10 s"]
    config = (tmp_path / "runs" / "grown" / "seed-1.toml").read_text()
    assert f'model = "{tmp_path / "runs" / "weak" / "seed-3" / "checkpoint"}"' in config


def test_a_checkpoint_that_is_gone_is_made_again(tmp_path: Path) -> None:
    made = Made(tmp_path, from_weak(), at_once=1)
    made.run(made.experiment.jobs(["weak"]))
    (tmp_path / "runs" / "weak" / "seed-3" / "checkpoint").rmdir()
    again = Made(tmp_path, from_weak(), at_once=1)
    assert again.run() == []
    assert again.lines[1] == "started weak seed 3"
    assert again.stored.count(("weak", 3)) == 1
    assert not any("warning" in line for line in again.lines)


def test_an_arm_that_needs_a_skipped_one_is_skipped(tmp_path: Path) -> None:
    made = Made(tmp_path, from_weak(), {"weak/seed-3": ["fail"]}, at_once=1)
    left = made.run()
    assert made.stored == [("apart", 0)]
    assert {job.arm.name for job in left} == {"weak", "grown"} == made.runner.skipped
    assert "arm grown is skipped: it needs weak seed 3" in made.lines


def test_no_run_is_started_that_would_not_end_in_time(tmp_path: Path) -> None:
    made = Made(tmp_path, two_arms())
    made.run(made.experiment.jobs(["rspo"], [0]))  # 10 seconds, it says
    hands = iter([0.0, 91.0, *[95.0] * 100])
    made = Made(tmp_path, two_arms(), at_once=1, limit=100.0, clock=lambda: next(hands))
    left = made.run()
    # of grpo nothing is known, so that it starts once; then it lasts 10 seconds too
    assert made.stored == [("rspo", 0), ("grpo", 0)]
    assert [job.key for job in left] == [("grpo", 1), ("rspo", 1)]
    assert made.runner.left() == "2 runs left, 20 s of processes"


def test_a_refused_result_ends_the_runs_that_go_on(tmp_path: Path) -> None:
    made = Made(tmp_path, two_arms(), {"grpo/seed-0": ["other"], "rspo/seed-0": ["hang"]})
    with pytest.raises(ValueError, match="was made with other"):
        made.run()
    [process] = made.runner.running
    assert process.child.returncode is not None and process.child.returncode < 0


def test_a_stopped_runner_ends_its_runs(tmp_path: Path) -> None:
    looks = 0

    def clock() -> float:
        nonlocal looks
        looks += 1
        if looks == 3:  # one look when it is made, one for each start
            raise KeyboardInterrupt
        return 0.0

    behaviours = {"grpo/seed-0": ["hang"]}
    made = Made(tmp_path, two_arms(), behaviours, at_once=2, clock=clock)
    with pytest.raises(KeyboardInterrupt):
        made.run()
    [process] = made.runner.running
    assert process.child.returncode == -signal.SIGTERM
    again = Made(tmp_path, two_arms(), {}, at_once=1)
    assert again.run() == []
    assert again.stored == ALL


def test_a_folder_is_held_as_long_as_a_run_lives(tmp_path: Path) -> None:
    places = Made(tmp_path, two_arms()).places
    job = two_arms().jobs()[0]
    places.write_config(job)
    with locked(tmp_path, HOLDERS) as lock:
        process = start(job, places, pretend({"grpo/seed-0": ["hang"]}), [lock])
        with pytest.raises(ValueError, match="by the experiment of process"):
            locked(tmp_path, HOLDERS).__enter__()
    with pytest.raises(ValueError, match="or by runs that it left behind"):
        locked(tmp_path, HOLDERS).__enter__()
    process.end()
    with locked(tmp_path, HOLDERS):
        pass


def test_a_run_has_the_threads_that_it_says(tmp_path: Path) -> None:
    experiment = two_arms(run=replace(two_arms().arms[1].run, threads=3))
    made = Made(tmp_path, experiment)
    made.run(experiment.jobs([], [0]))
    said = [made.places.log(job).read_text() for job in experiment.jobs([], [0])]
    assert said == ["training demo-grpo, threads 1\n", "training demo, threads 3\n"]
