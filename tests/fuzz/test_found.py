"""Inputs that were once no clear error, or that the generators make seldom."""

import json
from pathlib import Path

import pytest
from fuzzed import command, guarded, try_kind
from fuzzed_records import _collection, _result
from fuzzed_worlds import _games

from commands import refused
from rewardswap.comparison.arms import arms_of
from rewardswap.comparison.results import read_results
from rewardswap.envs.alfworld.pddl import parse_game, read_game
from rewardswap.envs.webshop.files import read_records
from rewardswap.experiments.toml_file import read_experiment
from rewardswap.prm.store import Collection, first_policy, turn_limit_of
from rewardswap.report import write_report
from rewardswap.report.shape import ANY, Each, Maybe, misfit
from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.heads import RewardHead
from rewardswap.rewards.saving import SavedHead, read_head, write_head
from rewardswap.settings import read_run
from rewardswap.whole import read_json

DEEP = "[" * 100_000


@pytest.mark.parametrize(
    ("read", "content"),
    [
        (read_json, DEEP),
        (read_game, DEEP),
        (read_results, DEEP),
        (lambda path: list(read_records(path)), DEEP),
        (read_run, "x = " + "[" * 5000),
        (read_experiment, "x = " + "{a=" * 5000),
        (read_experiment, "[arms.a]\nrecipe = 'demo'\n" + ".".join(["b"] * 5000) + " = 1"),
    ],
    ids=["json", "game", "results", "products", "run", "experiment", "arm"],
)
def test_deep_nesting_is_a_clear_error(read, content: str, tmp_path: Path) -> None:
    path = tmp_path / "file.toml"
    path.write_text(content)
    with pytest.raises(ValueError):
        read(path)


def test_fifty_megabytes_are_refused_in_seconds(tmp_path: Path) -> None:
    path = tmp_path / "game.tw-pddl"
    path.write_text('{"pddl_problem": "' + "(a b) " * 8_500_000 + '"}')
    with pytest.raises(ValueError, match="key 'pddl_domain' is missing"):
        read_game(path)


@pytest.mark.parametrize("key", ["pddl_domain", "grammar", "pddl_problem", "walkthrough"])
@pytest.mark.parametrize("value", [3, None, [1], {}])
def test_parts_of_a_game_of_other_types(key: str, value: object) -> None:
    with pytest.raises(ValueError, match=key):
        parse_game({**_games()[0], key: value})


def test_a_game_of_half_characters(tmp_path: Path) -> None:
    path = tmp_path / "game.tw-pddl"
    path.write_text(json.dumps({**_games()[0], "pddl_domain": "\ud800"}))
    with pytest.raises(ValueError, match=r"game file .*surrogates not allowed"):
        read_game(path)


@pytest.mark.parametrize(
    "change",
    [{"hidden_size": 4.0}, {"hidden_size": True}, {"features": 3}, {"layers": "x"}, {"seed": "0"}],
    ids=str,
)
def test_settings_of_a_head_of_other_types(change, tmp_path: Path) -> None:
    head = RewardHead(8, 4, "tanh")
    write_head(tmp_path, SavedHead(PRESETS["action"], head.state_dict(), "0", 1))
    assert read_head(tmp_path).config == PRESETS["action"]
    path = tmp_path / "process_reward.json"
    settings = json.loads(path.read_text())
    settings["config"] |= change
    path.write_text(json.dumps(settings))
    with pytest.raises(ValueError, match=f"is damaged: {next(iter(change))} is "):
        read_head(tmp_path)


@pytest.mark.parametrize("number", ["1" + "0" * 400, "-1" + "0" * 400])
def test_a_whole_number_beyond_floats(number: str, tmp_path: Path, capsys) -> None:
    (tmp_path / "config.toml").write_text(f'recipe = "demo"\n[policy]\nlearning_rate = {number}\n')
    said = refused(capsys, "train", str(tmp_path / "config.toml"))
    assert "policy.learning_rate must be below 1e308 in size" in said


@pytest.mark.parametrize(
    ("change", "place"),
    [
        ({"seed": True}, "seed"),
        ({"seed": 10**400}, "seed"),
        ({"temperature": "1"}, "temperature"),
        ({"baseline": []}, "baseline"),
        ({"curve": {"learn": {"success": ["x"]}}}, r"curve\.learn\.success\.0"),
        ({"after": {"success": 0.5}}, r"after\.task_score"),
        ({"process_reward": {"warning": 3}}, r"process_reward\.auc_total"),
        ({"warnings": {"x": {"count": None}}}, r"warnings\.x\.first_update"),
    ],
)
def test_a_result_is_refused_with_the_place(change, place: str, tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps({**_result("base", 0), **change}) + "\n")
    with pytest.raises(ValueError, match=f"line 1 has no usable {place}"):
        read_results(path)


def test_seeds_of_an_arm_have_the_same_types_of_task() -> None:
    rows = [_result("base", 0), _result("base", 1)]
    del rows[1]["after"]["families"]["cool"]
    with pytest.raises(ValueError, match="arm base has type of task 'cool' in some seeds only"):
        arms_of(rows, None, ())


@pytest.mark.parametrize("manifest", [{"policies": []}, {"policies": [{}]}, {"policies": 3}])
def test_a_collection_without_policies(manifest) -> None:
    with pytest.raises(ValueError, match="names no policy"):
        first_policy(Collection((), (), manifest))


@pytest.mark.parametrize("environment", [3, {}, {"turn_limit": "x"}, {"turn_limit": 0}])
def test_a_collection_without_a_turn_limit(environment) -> None:
    with pytest.raises(ValueError, match=r"no environment\.turn_limit"):
        turn_limit_of(Collection((), (), {"environment": environment}))
    assert turn_limit_of(_collection()) == 12


@pytest.mark.parametrize(
    ("value", "shape", "place"),
    [
        (1, float, None),
        (float("nan"), float, "content"),
        (True, int, "content"),
        (1.0, int, "content"),
        (10**16, int, "content"),
        (None, Maybe(str), None),
        (3, Maybe(str), "content"),
        ([1, "a"], [int], "1"),
        ({"a": {"b": [None]}}, Each({"b": [str]}), "a.b.0"),
        ({}, {"a": ANY}, "a"),
        ({}, {"a?": str}, None),
        ({"a": 1}, {"a?": str}, "a"),
        ({"x": object()}, {}, None),
    ],
)
def test_shapes(value, shape, place) -> None:
    assert misfit(value, shape) == place


@pytest.mark.filterwarnings("ignore::UserWarning")
def test_a_report_leaves_out_and_counts_what_is_of_another_shape(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    (run / "metrics.jsonl").write_text(
        '{"phase": "learn", "update": 1}\n{"phase": [], "update": 1}\n'
    )
    (run / "prm.json").write_text('{"turns": [{"auc": 0.5}]}')
    (run / "summary.json").write_text('{"seconds": NaN, "agent_updates": 1e999}')
    page = write_report(run).read_text(encoding="utf-8")
    assert "prm.json has no usable turns.0.turn, and was not read" in page
    assert "1 line of metrics.jsonl is unreadable and left out (first: line 2)" in page


def test_what_an_input_does_outside_is_seen(tmp_path: Path) -> None:
    """The watch itself: writing elsewhere, code of a file, another process, a connection."""
    inside = tmp_path / "in"

    def bad(random, folder) -> None:
        (folder / "fine").write_text("x")
        (folder.parent / "outside").write_text("x")

    def runs(random, folder) -> None:
        exec(compile("x = 1", str(folder / "evil.py"), "exec"))

    def crashes(random, folder) -> None:
        json.loads("{")

    assert "outside" in try_kind(bad, "bad", 1, inside).wrong[0]
    assert "evil.py was run" in try_kind(runs, "runs", 1, inside).wrong[0]
    assert "JSONDecodeError" in try_kind(crashes, "crashes", 1, inside).wrong[0]
    with guarded(inside) as seen:
        assert "usage" in command(["--help"])
    assert not seen
