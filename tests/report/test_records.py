import json
from pathlib import Path

import pytest

from rewardswap.report.records import number, read_run


def test_a_complete_run_has_no_notes(run_folder: Path) -> None:
    record = read_run(run_folder)
    assert record.notes == []
    assert len(record.metrics) == 17
    assert len(record.trajectories_before) == len(record.trajectories_after) == 7


def test_a_line_cut_inside_a_letter_is_left_out_and_said(run_folder: Path) -> None:
    path = run_folder / "trajectories/after.jsonl"
    line = json.dumps({"task": "é"}, ensure_ascii=False).encode()
    path.write_bytes(path.read_bytes() + line[: line.index("é".encode()) + 1])
    record = read_run(run_folder)
    assert len(record.trajectories_after) == 7
    assert record.notes == [
        "trajectories/after.jsonl is cut in the middle of its last line (line 8) and was read up "
        "to there."
    ]


def test_a_last_line_that_only_lacks_its_newline_is_read(run_folder: Path) -> None:
    path = run_folder / "metrics.jsonl"
    path.write_bytes(path.read_bytes().rstrip(b"\n"))
    record = read_run(run_folder)
    assert len(record.metrics) == 17
    assert record.notes == []


def test_unreadable_lines_in_the_middle_are_counted(run_folder: Path) -> None:
    path = run_folder / "metrics.jsonl"
    lines = path.read_text().splitlines(keepends=True)
    path.write_text(
        "".join([*lines[:3], '{"phase": "lea\n', "[1]\n", '{"update": 3}\n', *lines[3:]])
    )
    record = read_run(run_folder)
    assert len(record.metrics) == 17
    assert record.notes == ["3 lines of metrics.jsonl are unreadable and left out (first: line 4)."]


def test_a_whole_last_line_that_cannot_be_read_is_not_called_cut(run_folder: Path) -> None:
    with (run_folder / "metrics.jsonl").open("a") as file:
        file.write("what?\n")
    notes = ["1 line of metrics.jsonl is unreadable and left out (first: line 18)."]
    assert read_run(run_folder).notes == notes


def test_values_that_are_not_finite_and_unknown_phases_are_said(run_folder: Path) -> None:
    with (run_folder / "metrics.jsonl").open("a") as file:
        file.write('{"phase": "dream", "update": 7, "kl_old": NaN, "success": Infinity}\n')
    assert read_run(run_folder).notes == [
        "Rows of metrics.jsonl in unknown phases are not drawn: dream.",
        "Values that are not finite are missing from the curves: kl_old (1), success (1).",
    ]


def test_evaluations_of_other_tasks_or_another_summary_are_said(run_folder: Path) -> None:
    path = run_folder / "evaluation-after.json"
    document = json.loads(path.read_text())
    document["panel"]["hash"] = "other"
    path.write_text(json.dumps(document))
    (run_folder / "summary.json").write_text('{"success_before": 0.5}')
    notes = read_run(run_folder).notes
    assert len(notes) == 2
    assert notes[0].startswith("summary.json gives a success before of 0.5000, evaluation-before")
    assert "differ in their tasks" in notes[1]


def test_broken_episodes_are_said(run_folder: Path) -> None:
    path = run_folder / "evaluation-after.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "failed_episodes": 2}))
    (run_folder / "summary.json").write_text('{"failed_episodes": 5}')
    assert read_run(run_folder).notes == [
        "2 tasks of the evaluation after training broke; they count as failed.",
        "5 episodes of training broke and were not trained on.",
    ]


def test_a_cut_configuration_is_shown_and_said(run_folder: Path) -> None:
    (run_folder / "config.toml").write_text('method = "rs')
    record = read_run(run_folder)
    assert record.config == 'method = "rs'
    assert record.notes == ["config.toml is cut short or not TOML; it is shown as it stands."]


def test_the_best_liked_failure_is_no_success(run_folder: Path) -> None:
    liked = read_run(run_folder).liked_failure
    assert liked is not None
    assert liked["task"] == "e1"


def test_number_takes_finite_numbers_only() -> None:
    assert number(3) == 3.0
    assert [number(value) for value in (None, True, "3", float("nan"), float("inf"))] == [None] * 5


@pytest.mark.parametrize(
    ("settings", "noted"),
    [
        ("", True),
        ('[reward]\ndense = "learned"', True),
        ('[reward]\ndense = "progress"', False),
        ('loop = "on_policy"', False),
        ("no TOML", True),
    ],
)
def test_no_process_reward_is_missed_where_none_is_fitted(
    run_folder: Path, settings: str, noted: bool
) -> None:
    (run_folder / "prm.json").unlink()
    (run_folder / "config.toml").write_text(settings)
    assert any("prm.json" in note for note in read_run(run_folder).notes) is noted
