"""Results are never mixed unless told, and half a line is moved aside."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pretended import Made, two_arms

from rewardswap.experiments.experiment import Experiment, Job
from rewardswap.experiments.store import Results, digest, present_code, repair
from rewardswap.recipes import demo
from rewardswap.run_folder import commit


@pytest.fixture(scope="module")
def line(tmp_path_factory: pytest.TempPathFactory) -> str:
    """A stored result of arm grpo, seed 0."""
    made = Made(tmp_path_factory.mktemp("first"), two_arms())
    made.run(made.experiment.jobs(["grpo"], [0]))
    return (made.folder / "results.jsonl").read_text()


def stored(folder: Path, line: str, **changed: Any) -> Path:
    path = folder / "results.jsonl"
    with path.open("a") as file:
        file.write(json.dumps(json.loads(line) | changed) + "\n")
    return path


def refusal(path: Path, experiment: Experiment, code: str, *mix: str) -> str:
    with pytest.raises(ValueError, match=r".") as caught:
        Results(path, experiment, code, mix)
    return str(caught.value)


def test_a_result_says_whose_it_is(line: str) -> None:
    experiment = two_arms()
    result = json.loads(line)
    assert (result["experiment"], result["arm"], result["baseline"]) == ("two", "grpo", None)
    assert (result["seed"], result["mixed"]) == (0, [])
    assert result["settings"] == digest(experiment, experiment.arms[0])


def test_equal_results_stand_beside_each_other(tmp_path: Path, line: str) -> None:
    experiment = two_arms()
    path = stored(tmp_path, line)
    stored(tmp_path, line, arm="rspo", settings=digest(experiment, experiment.arms[1]))
    results = Results(path, experiment, "here")
    assert results.mixed == ()
    assert results.done(Job(experiment.arms[0], 0)) == json.loads(line)
    assert results.done(Job(experiment.arms[0], 1)) is None


def test_another_commit_is_refused(tmp_path: Path, line: str) -> None:
    path = stored(tmp_path, line)
    said = refusal(path, two_arms(), "there")
    assert "grpo seed 0 was made with here, the source is there" in said
    assert "--results" in said and "--mix commits" in said
    assert "was made with" in refusal(path, two_arms(), "there", "panels", "settings")
    assert Results(path, two_arms(), "there", ("commits",)).mixed == ("commits",)


def test_changes_that_are_in_no_commit_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    assert "changes that are in no commit (here-dirty)" in refusal(path, two_arms(), "here-dirty")
    assert Results(path, two_arms(), "here-dirty", ("commits",)).mixed == ("commits",)


def test_a_package_without_a_checkout_is_known_by_its_version(tmp_path: Path, line: str) -> None:
    path = stored(tmp_path, line, commit=None)
    assert Results(path, two_arms(), "version 1").mixed == ()
    assert "with version 1, the source is version 2" in refusal(path, two_arms(), "version 2")
    assert present_code() == commit() or present_code().startswith("version ")


def test_other_settings_of_an_arm_are_refused(tmp_path: Path, line: str) -> None:
    path = stored(tmp_path, line)
    changed = replace(two_arms().arms[0], run=replace(demo(), budget=7))
    other = replace(two_arms(), arms=(changed, two_arms().arms[1]))
    said = refusal(path, other, "here", "commits", "panels")
    assert "grpo seed 0 was made with settings" in said and "--mix settings" in said
    assert Results(path, other, "here", ("settings",)).mixed == ("settings",)
    gone = Experiment("two", "", (replace(two_arms().arms[1], baseline=None),))
    assert "is of an arm that two lacks" in refusal(path, gone, "here")


def test_another_panel_of_the_same_environment_is_refused(tmp_path: Path, line: str) -> None:
    experiment = two_arms()
    panel = {"split": "s", "hash": "p2", "tasks": 1}
    path = stored(tmp_path, line)
    stored(tmp_path, line, arm="rspo", settings=digest(experiment, experiment.arms[1]), panel=panel)
    said = refusal(path, experiment, "here", "commits", "settings")
    assert "rspo seed 0 was evaluated on panel p2, grpo seed 0 on p1" in said
    assert Results(path, experiment, "here", ("panels",)).mixed == ("panels",)


def test_other_settings_of_the_environment_may_have_another_panel(
    tmp_path: Path, line: str
) -> None:
    run = replace(demo(), env=replace(demo().env, evaluation_tasks=50))
    experiment = two_arms(run=run)
    path = stored(tmp_path, line)
    panel = {"split": "s", "hash": "p2", "tasks": 1}
    stored(tmp_path, line, arm="rspo", settings=digest(experiment, experiment.arms[1]), panel=panel)
    assert Results(path, experiment, "here").mixed == ()


def test_another_experiment_and_doubles_are_refused(tmp_path: Path, line: str) -> None:
    path = stored(tmp_path, line)
    other = replace(two_arms(), name="three")
    assert "of experiment 'two', not 'three'" in refusal(path, other, "here", "settings")
    stored(tmp_path, line)
    assert "holds grpo seed 0 twice" in refusal(path, two_arms(), "here", "settings")


def test_half_a_line_is_moved_aside(tmp_path: Path, line: str) -> None:
    path = stored(tmp_path, line)
    whole = path.read_bytes()
    for cut in (whole[: len(whole) // 2], b"\0" * 9):
        path.write_bytes(whole + cut)
        assert repair(path) == 1
        assert path.read_bytes() == whole
        aside = path.with_name("results.jsonl.cut").read_bytes()
        assert aside.endswith(cut + b"\n")
    assert aside.startswith(whole[: len(whole) // 2] + b"\n")
    assert repair(path) == 0
    assert path.read_bytes() == whole


def test_a_line_that_only_lacks_its_end_is_kept(tmp_path: Path, line: str) -> None:
    path = stored(tmp_path, line)
    whole = path.read_bytes()
    path.write_bytes(whole[:-1])
    assert repair(path) == 0
    assert path.read_bytes() == whole
    assert repair(tmp_path / "none.jsonl") == 0
    path.write_bytes(b"half")
    assert repair(path) == 1
    assert path.read_bytes() == b""
