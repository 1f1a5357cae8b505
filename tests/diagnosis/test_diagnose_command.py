"""What the command prints, and the table in the docs."""

import json
from pathlib import Path

import pytest

from commands import refused
from diagnosis_runs import CASES, healthy
from rewardswap.cli import main
from rewardswap.diagnosis.rules import RULES
from rewardswap.diagnosis.table import table

PAGE = Path(__file__).parents[2] / "docs" / "diagnosing.md"


def test_a_healthy_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    main(["diagnose", str(healthy().write(tmp_path / "kitchen"))])
    said = capsys.readouterr().out
    assert said.startswith("kitchen: ppo in loop rspo, 24 of 90 updates, finished\n")
    assert "Nothing known is wrong." in said
    assert f"in order ({len(RULES)})" in said


@pytest.mark.parametrize("cause", ["uninformative_groups", "engine_gap", "hacking_alarm"])
def test_findings_fit_80_columns(
    cause: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = healthy()
    CASES[cause](made)
    main(["diagnose", str(made.write(tmp_path / "run"))])
    said = capsys.readouterr().out
    assert max(map(len, said.splitlines())) <= 80
    assert "1. " in said and "seen when: " in said and "- --" in said


def test_json(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = healthy()
    CASES["engine_gap"](made)
    folder = str(made.write(tmp_path / "run"))
    for words in (["--json"], ["--json", "true"]):
        main(["diagnose", folder, *words])
        told = json.loads(capsys.readouterr().out)
        assert [f["cause"] for f in told["findings"]] == ["engine_gap"]
        assert told["findings"][0]["severity"] == "serious"
        assert "--method.importance-cap truncate" in {
            advice["settings"] for advice in told["findings"][0]["advice"]
        }


def test_text_of_a_record_steers_no_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    made = healthy()
    made.warnings.append({"kind": "hacking", "update": "\x1b[2J", "words": "[red]\x1b]0;x\x07"})
    main(["diagnose", str(made.write(tmp_path / "run"))])
    said = capsys.readouterr().out
    assert "\x1b" not in said and "\x07" not in said
    assert "[red]" in said


def test_mistakes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "one run folder, got none" in refused(capsys, "diagnose", "--json")
    assert "one run folder, got a b" in refused(capsys, "diagnose", "a", "b")
    assert "is not a folder" in refused(capsys, "diagnose", str(tmp_path / "none"))
    assert "unknown key" in refused(capsys, "diagnose", str(tmp_path), "--jsn", "true")


def test_the_table_of_the_docs_is_that_of_the_rules() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert table() in page, "put what `rewardswap.diagnosis.table.table()` returns into the page"
