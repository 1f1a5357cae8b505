import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from made_results import made
from made_runs import make_run, write_lines

from rewardswap.comparison.columns import curves, rounded
from rewardswap.comparison.results import (
    append_result,
    read_results,
    result_of,
    settings_digest,
)
from rewardswap.recipes import demo, demo_grpo


def result(folder: Path, **more: Any) -> dict[str, Any]:
    return result_of(folder, experiment="first", arm="grpo", baseline=None, **more)


def test_a_result_holds_what_the_folder_says(run_folder: Path) -> None:
    found = result(run_folder, mixed=("commits",))
    assert (found["seed"], found["commit"], found["mixed"]) == (3, "c0ffee", ["commits"])
    assert found["budget"] == {"amount": 2, "unit": "agent_updates"}
    assert found["counters"]["seconds"] == 12.346
    assert found["before"]["task_score"] == 0.33333
    assert found["after"]["families"]["heat"] == {"tasks": 2, "success": 0.12346}
    assert found["panel"].keys() == {"split", "hash", "tasks"}
    assert found["phases"] == {}


def test_task_bits_are_in_panel_order_by_family(run_folder: Path) -> None:
    assert result(run_folder)["tasks"] == {"cool": "01", "heat": "10"}


def test_a_broken_episode_is_a_zero_in_its_place(tmp_path: Path) -> None:
    assert result(make_run(tmp_path / "run", lost_after="t1"))["tasks"] == {
        "cool": "01",
        "heat": "00",
    }


def test_places_that_no_evaluation_knows_are_no_bits(tmp_path: Path) -> None:
    assert result(make_run(tmp_path / "run", lost_after="t1", lost_before="t2"))["tasks"] == {}


def test_the_curve_has_the_dense_reward_under_one_name_and_no_nan(run_folder: Path) -> None:
    curve = result(run_folder)["curve"]
    assert curve["explore"] == {"update": [0], "success": [0.25], "dense": [0.33333]}
    assert curve["learn"] == {"update": [1, 2], "success": [0.66667, 1], "entropy": [None, None]}
    assert curve["harvest"] == {"update": [0], "success": [0.5]}
    assert curve["loop"] == {"update": [1], "explorer_kl": [0.01], "replay_success_share": [0.5]}


def test_two_dense_rewards_in_one_run_are_refused(run_folder: Path) -> None:
    with (run_folder / "metrics.jsonl").open("a") as file:
        file.write('{"phase": "explore", "update": 0, "noise_reward_mean": 1.0}\n')
    with pytest.raises(ValueError, match="noise_reward_mean, progress_reward_mean"):
        result(run_folder)


def test_numbers_keep_five_digits() -> None:
    assert rounded({"a": 123456.7, "b": 7, "c": float("inf"), "d": 2.0, "e": None}) == {
        "a": 123460,
        "b": 7,
        "c": None,
        "d": 2,
        "e": None,
    }


def test_changed_settings_are_those_that_the_recipe_has_otherwise(run_folder: Path) -> None:
    assert result(run_folder)["settings_changed"] == {"budget": 2}
    config = run_folder / "config.toml"
    text = config.read_text().replace('name = "grpo"', 'name = "rloo"').split("[method]")
    method = 'name = "rloo"\nclip_low = 0.1\n\n'
    config.write_text(f"{text[0]}[method]\n{method}{text[1][text[1].index('[env]') :]}")
    changed = result(run_folder)["settings_changed"]
    assert changed == {"budget": 2, "method.name": "rloo", "method.clip_low": 0.1}


def test_a_recipe_that_is_not_known_has_no_changes(run_folder: Path) -> None:
    config = run_folder / "config.toml"
    config.write_text(config.read_text().replace('recipe = "demo-grpo"', 'recipe = "mine"'))
    assert result(run_folder)["settings_changed"] == {}


def test_the_digest_is_that_of_the_settings_alone(run_folder: Path) -> None:
    digest = settings_digest(demo())
    assert len(digest) == 16
    assert settings_digest(replace(demo(), seed=9, recipe="x", output=run_folder)) == digest
    assert settings_digest(replace(demo(), batch=replace(demo().batch, tasks=16))) != digest
    assert settings_digest(demo_grpo()) != digest
    assert result(run_folder, settings="given")["settings"] == "given"
    assert len(result(run_folder)["settings"]) == 16


@pytest.mark.parametrize("name", ["summary.json", "evaluation-after.json", "config.toml"])
def test_a_missing_file_is_named(run_folder: Path, name: str) -> None:
    (run_folder / name).unlink()
    with pytest.raises(ValueError, match=name.replace(".", r"\.")):
        result(run_folder)


def test_a_cut_line_of_metrics_is_named(run_folder: Path) -> None:
    with (run_folder / "metrics.jsonl").open("a") as file:
        file.write('{"phase": "le')
    with pytest.raises(ValueError, match=r"metrics\.jsonl, line 5"):
        result(run_folder)


def test_lines_come_back_as_they_were(tmp_path: Path) -> None:
    path, lines = tmp_path / "results.jsonl", [made("base", 0), made("ärm\u2028", 1)]
    for line in lines:
        append_result(path, line)
    assert read_results(path) == lines


def test_nothing_is_added_to_half_a_line(tmp_path: Path) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text('{"format"')
    with pytest.raises(ValueError, match="half a line"):
        append_result(path, made("base", 0))
    assert path.read_text() == '{"format"'


def test_a_number_that_is_not_finite_is_not_written(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="JSON compliant"):
        append_result(tmp_path / "results.jsonl", made("base", 0, temperature=float("nan")))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"format": 1, "arm": "ba', "is cut or not JSON"),
        ("[1]", "is not a result"),
        (json.dumps({**made("base", 0), "format": 2}), "has format 2, this version reads 1"),
        (
            json.dumps({**made("base", 0), "temperature": float("nan")}),
            r"is cut or not JSON \(NaN is not a number",
        ),
        (json.dumps({k: v for k, v in made("base", 0).items() if k != "panel"}), "lacks panel"),
        (json.dumps({**made("base", 0), "arm": 3}), "has no usable arm; run its seed again"),
        (json.dumps({**made("base", 0), "after": None}), "has no usable after"),
        (json.dumps({**made("base", 0), "curve": 3, "seed": "1"}), "has no usable seed"),
        (json.dumps({**made("base", 0), "counters": {}}), r"has no usable counters\.agent_updates"),
        ("", "is cut or not JSON"),
    ],
)
def test_a_bad_line_is_named_with_its_file(tmp_path: Path, line: str, said: str) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(made("base", 0)) + "\n" + line + "\n")
    with pytest.raises(ValueError, match=r"results\.jsonl, line 2 " + said):
        read_results(path)


def test_a_result_of_ninety_updates_is_below_twelve_kilobytes() -> None:
    numbers = {"environment_steps": 123456.0, "generated_tokens": 1234567.0, "seconds": 345.6789}
    numbers |= dict.fromkeys(
        ("success", "entropy", "effective_sample_size", "clip_low_share", "clip_high_share"),
        0.0123456789,
    )
    learn = [{"phase": "learn", "update": n, **numbers} for n in range(90)]
    explore = [{"phase": "explore", "process_reward_mean": 1 / 3, **row} for row in learn]
    explore = [{**row, "phase": "explore"} for row in explore]
    found = made("base", 0, {f"type {n}": "1" * 80 for n in range(6)}, curve=[0.5])
    harvest = [{**row, "phase": "harvest"} for row in explore[::3]]
    found["curve"] = curves([*learn, *explore, *harvest])
    assert len(json.dumps(found, separators=(",", ":"))) < 12_000


def test_warnings_and_the_process_reward_are_kept(run_folder: Path) -> None:
    plain = result_of(run_folder, experiment="e", arm="a", baseline=None)
    assert (plain["warnings"], plain["process_reward"]) == ({}, None)
    rows: list[dict[str, object]] = [
        {"kind": "hacking", "update": 4.0, "words": "it falls"},
        {"kind": "homogeneous_replay", "update": 5.0, "words": "alike"},
        {"kind": "hacking", "update": 9.0, "words": "it falls again"},
    ]
    write_lines(run_folder / "warnings.jsonl", rows)
    aucs = ("auc_total", "auc_within_task", "auc_length_only", "auc_at_fixed_turns", "brier")
    quality = {"warning": "a turn counter", "turns": [], **{name: 1 / 3 for name in aucs}}
    (run_folder / "prm.json").write_text(json.dumps(quality))
    result = result_of(run_folder, experiment="e", arm="a", baseline=None)
    assert result["warnings"] == {
        "hacking": {"count": 2, "first_update": 4, "words": "it falls"},
        "homogeneous_replay": {"count": 1, "first_update": 5, "words": "alike"},
    }
    assert result["process_reward"] == {
        "warning": "a turn counter",
        **{name: 0.33333 for name in aucs},
    }
