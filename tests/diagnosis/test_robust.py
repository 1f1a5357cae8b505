"""Spoiled and unfinished records: what cannot be told is said, and nothing is invented."""

import json
import random
from pathlib import Path

import pytest

from diagnosis_runs import CASES, healthy
from rewardswap.diagnosis.diagnose import diagnose, observe
from rewardswap.diagnosis.rules import RULES


def metrics_of(folder: Path) -> list[str]:
    return (folder / "metrics.jsonl").read_text().splitlines(keepends=True)


def test_an_unfinished_run_that_rises_is_in_order(tmp_path: Path) -> None:
    made = healthy()
    made.after = None
    found = diagnose(observe(made.write(tmp_path / "run")))
    assert not found.findings
    assert [rule.cause for rule, _ in found.unchecked] == ["overfitted"]


def test_an_unfinished_run_that_stands_still_is_undecided(tmp_path: Path) -> None:
    made = healthy()
    made.after = None
    made.line("success", 0.4, 0.4, "learn")
    (finding,) = diagnose(observe(made.write(tmp_path / "run"))).findings
    assert finding.rule.cause == "undecided"
    assert "training success 40.0% in updates 1 to 10" in finding.seen.evidence[0]


def test_an_unfinished_run_far_below_its_start_has_fallen(tmp_path: Path) -> None:
    made = healthy()
    made.after = None
    made.line("success", 0.02, 0.02, "learn")
    causes = [f.rule.cause for f in diagnose(observe(made.write(tmp_path / "run"))).findings]
    assert causes == ["success_fell"]


def test_one_jump_is_enough(tmp_path: Path) -> None:
    """As after a learning rate of .5: one update, and then no group has a gradient."""
    made = healthy()
    made.after = None
    made.line("success", 0.0, 0.0, "learn")
    for row in made.metrics[5:]:
        row.pop("kl_old", None)
    made.put(3.0, "kl_old", where=slice(0, 1))
    findings = diagnose(observe(made.write(tmp_path / "run"))).findings
    assert [f.rule.cause for f in findings] == ["learning_rate_too_high"]
    assert "update 1 moved the policy by 3 nats a token" in findings[0].seen.evidence[1]


def test_one_row_tells_nothing_but_counts(tmp_path: Path) -> None:
    folder = healthy().write(tmp_path / "run")
    row = next(line for line in metrics_of(folder) if '"learn"' in line)
    (folder / "metrics.jsonl").write_text(row)
    for name in ("evaluation-after.json", "summary.json"):
        (folder / name).unlink()
    found = diagnose(observe(folder))
    assert not found.findings
    assert (
        "1 of 3 rows that are needed"
        in dict((rule.cause, why) for rule, why in found.unchecked)["large_kl"]
    )
    assert {rule.cause for rule in found.in_order} >= {"not_finite", "skipped_steps"}


def test_a_run_of_the_base_method_has_no_replay_to_look_at(tmp_path: Path) -> None:
    made = healthy()
    folder = made.write(tmp_path / "run")
    text = (folder / "config.toml").read_text().replace('loop = "rspo"', 'loop = "on_policy"')
    (folder / "config.toml").write_text(text)
    idle = {rule.cause for rule, _ in diagnose(observe(folder)).idle}
    assert {"replay_without_success", "explorer_far", "process_reward_chance"} <= idle


@pytest.mark.parametrize("name", ["informative_groups", "kl_old", "success", "turns_mean"])
@pytest.mark.parametrize("value", [None, "many", [], {}, True, 1e300, float("inf")])
def test_a_metric_of_another_kind_is_as_missing(name: str, value: object, tmp_path: Path) -> None:
    made = healthy()
    made.put(value, name)
    found = diagnose(observe(made.write(tmp_path / "run")))
    assert {f.rule.cause for f in found.findings} <= {"not_finite"}
    assert any(name in why for _, why in found.unchecked)


def test_settings_without_tables(tmp_path: Path) -> None:
    folder = healthy().write(tmp_path / "run")
    for text in ("", "swap = 3\nbatch = []\npolicy = 'x'\nbudget = 'y'", "[swap", "\xff"):
        (folder / "config.toml").write_text(text, encoding="latin-1")
        assert not diagnose(observe(folder)).findings


def test_every_case_without_its_settings_still_speaks(tmp_path: Path) -> None:
    for cause, change in CASES.items():
        made = healthy()
        change(made)
        folder = made.write(tmp_path / cause)
        (folder / "config.toml").unlink()
        diagnosis = diagnose(observe(folder))
        unknown = {rule.cause for rule, _ in diagnosis.unchecked}
        assert cause in unknown | {f.rule.cause for f in diagnosis.findings}


def test_files_that_are_cut_anywhere(tmp_path: Path) -> None:
    made = healthy()
    CASES["hacking_alarm"](made)
    folder = made.write(tmp_path / "run")
    whole = {path: path.read_bytes() for path in folder.rglob("*") if path.is_file()}
    drawn = random.Random(0)
    for path, content in whole.items():
        for _ in range(6):
            path.write_bytes(content[: drawn.randrange(len(content))])
            try:
                found = diagnose(observe(folder))
            except ValueError as error:
                assert "metrics.jsonl" in str(error)
                continue
            parts = (found.findings, found.in_order, found.unchecked, found.idle)
            assert sum(map(len, parts)) == len(RULES)
            json.dumps(found.as_dict())
        path.write_bytes(content)


def test_what_is_no_run_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="is not a folder"):
        observe(tmp_path / "none")
    with pytest.raises(ValueError, match="no complete line"):
        observe(tmp_path)
