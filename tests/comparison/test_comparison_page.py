"""What is written: tables, page, plots; and the command."""

import csv
import json
from pathlib import Path
from typing import Any

import pytest
from made_results import Json, made
from made_runs import make_run

from commands import refused
from rewardswap import whole
from rewardswap.cli import main
from rewardswap.comparison.comparing import compare
from rewardswap.comparison.page import write_comparison
from rewardswap.comparison.plots import plots_of
from rewardswap.comparison.records import tables_of
from rewardswap.comparison.tables import Row
from rewardswap.errors import UnwrittenError


def runs(arms: int = 2, seeds: int = 3, **changed: Any) -> list[Json]:
    names = ["base", *(f"arm-{n}" for n in range(1, arms))]
    return [
        made(name, seed, {"cool": f"{seed % 2}{n % 2}", "heat": "1100"}, **changed)
        for n, name in enumerate(names)
        for seed in range(seeds)
    ]


def rows_of(name: str, results: list[Json]) -> list[Row]:
    return list(next(t for t in tables_of(compare(results, None, ())) if t.name == name).rows)


def read(path: Path) -> list[dict[str, str]]:
    with path.open(newline="") as file:
        return list(csv.DictReader(file))


def test_every_file_is_written_and_has_the_same_bytes_again(tmp_path: Path) -> None:
    results = runs(dense=(0.2, 0.4, 0.6))
    first = write_comparison(compare(results, None, ()), tmp_path / "one").parent
    second = write_comparison(compare(results[::-1], None, ()), tmp_path / "two").parent
    names = {path.name for path in first.iterdir()}
    assert names >= {"report.md", "report.html", "arms.csv", "paired.csv", "families.csv"}
    assert names >= {"runs.csv", "curves.csv", "phases.csv", "efficiency.csv", "settings.csv"}
    assert names >= {f"success-{axis}.png" for axis in ("update", "environment_steps")}
    assert names >= {"success-generated_tokens.png", "differences.png", "dense.png"}
    for name in names:
        assert (first / name).read_bytes() == (second / name).read_bytes(), name


def test_csv_has_the_raw_numbers(tmp_path: Path) -> None:
    folder = write_comparison(compare(runs(), None, ()), tmp_path).parent
    assert len(read(folder / "runs.csv")) == 6
    (pair,) = read(folder / "paired.csv")
    # the arm wins one task in six more with each seed: no interval
    assert (pair["arm"], pair["difference"], pair["difference_low"]) == ("arm-1", "0.166667", "")
    curve = read(folder / "curves.csv")
    assert {row["axis"] for row in curve} == {"update", "environment_steps", "generated_tokens"}


def test_names_cannot_break_the_page(tmp_path: Path) -> None:
    name = '<script>alert("x")</script> | $a_{$ \x1b[31m'
    folder = write_comparison(compare([made(name, 0), made("base", 0)], None, ()), tmp_path).parent
    page = (folder / "report.html").read_text()
    assert "<script" not in page and "&lt;script&gt;" in page and "\x1b" not in page
    assert "http" not in page.replace("data:image", ""), "the page needs the network"
    text = (folder / "report.md").read_text()
    assert "<script" not in text.replace("\\<script", "") and "\\|" in text and "\x1b" not in text


def test_one_seed_has_wilsons_interval_by_type() -> None:
    (row,) = rows_of("families", [made("base", 0, {"heat": "1111111100"})])
    # 8 of 10, see tests/test_statistics.py
    assert (row["success_low"], row["success_high"]) == pytest.approx((0.490164, 0.943316), 1e-5)


def test_several_seeds_have_students_interval_by_type() -> None:
    bits = ("10000", "11000", "11100")  # .2, .4, .6: s = .2, reach .496828, cut at 0
    rows = [made("base", seed, {"heat": one}) for seed, one in enumerate(bits)]
    (row,) = rows_of("families", rows)
    assert (row["success_low"], row["success_high"]) == pytest.approx((0.0, 0.896828), abs=1e-5)


def test_tables_say_how_many_comparisons_they_make() -> None:
    tables = {table.name: table for table in tables_of(compare(runs(arms=4), None, ()))}
    assert any("makes 3 comparisons" in note for note in tables["paired"].notes)
    assert any(
        "8 intervals" in note and "6 comparisons" in note for note in tables["families"].notes
    )


def test_p_values_are_adjusted_for_their_table() -> None:
    rows = [
        made(name, seed, {"cool": "1" * won + "0" * (10 - won)})
        for name, wins in (("base", (2, 3, 4)), ("a", (3, 5, 7)), ("b", (9, 9, 9)))
        for seed, won in enumerate(wins)
    ]
    a, b = rows_of("paired", rows)
    # differences .1, .2, .3: p = .07418; .7, .6, .5: t = 6√3, p = 1 - √(108/110) = .009133
    assert (a["p"], b["p"]) == pytest.approx((0.074180, 0.009133), abs=1e-6)
    assert (a["p_holm"], b["p_holm"]) == pytest.approx((0.074180, 0.018265), abs=1e-6)


def test_equal_steps_are_compared_seed_by_seed() -> None:
    # flat curves: areas .1, .5, .3 and .2, .7, .6, differences .1, .2, .3
    flat = {"base": (0.1, 0.5, 0.3), "arm": (0.2, 0.7, 0.6)}
    results = [made(name, n, curve=[y] * 3) for name in flat for n, y in enumerate(flat[name])]
    for result, y in zip(results, [*flat["base"], *flat["arm"]], strict=True):
        result["before"]["success"] = y
    arm, _ = rows_of("efficiency", results)
    ends = (arm["difference_low"], arm["difference_high"])
    assert ends == pytest.approx((0.2 - 0.248414, 0.2 + 0.248414), abs=1e-6)
    assert arm["p_holm"] == pytest.approx(0.074180, abs=1e-6)
    # one update that makes a start policy is compared with nothing and shortens nothing
    assert rows_of("efficiency", [*results, made("start", 7, curve=[0.5])])[0] == arm


def test_costs_are_means_per_phase_and_in_all() -> None:
    rows = rows_of("phases", [made("base", 0), made("base", 1, steps=300)])
    learn, total = rows
    assert (learn["phase"], learn["environment_steps"], learn["updates"]) == ("learn", 600, 3)
    assert (total["phase"], total["updates"], total["seconds"]) == ("all phases", 6, 60)


def test_runs_without_phases_have_their_total_only() -> None:
    results = [made("base", 0, phases={}), made("base", 1)]
    assert [row["phase"] for row in rows_of("phases", results)] == ["all phases"]


def test_what_is_mixed_is_said_above_every_table(tmp_path: Path) -> None:
    results = [*runs(), made("base", 7, commit="badbad")]
    found = compare(results, None, ("commits",))
    assert all(any("badbad" in note for note in table.notes) for table in tables_of(found))


def test_many_arms_are_drawn_each_for_itself() -> None:
    few, many = (plots_of(compare(runs(arms=n, seeds=1), None, ())) for n in (8, 10))
    assert [plot.name for plot in few] == [plot.name for plot in many]
    assert all(plot.png.startswith(b"\x89PNG") for plot in many)


def test_more_than_eight_explorers_are_drawn_in_parts() -> None:
    results = runs(arms=10, seeds=1, dense=(0.1, 0.2, 0.3))
    names = [plot.name for plot in plots_of(compare(results, None, ()))]
    assert names[-2:] == ["dense", "dense-2"]


def test_the_command_compares_files_and_run_folders(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in runs(commit="c0ffee")))
    main(["report", str(path), "--output", str(tmp_path / "out")])
    assert "6 runs, 2 arms, commit c0ffee" in capsys.readouterr().out
    main(["report", str(make_run(tmp_path / "run")), "--output", str(tmp_path / "one")])
    (row,) = read(tmp_path / "one" / "arms.csv")
    assert row["arm"] == "demo-grpo budget=2"
    main(["report", str(tmp_path), "--output", str(tmp_path / "again")])
    assert (tmp_path / "again/arms.csv").read_text() == (tmp_path / "out/arms.csv").read_text()


def test_one_run_folder_alone_gets_its_own_report(
    run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["report", str(run_folder)])
    assert "the run's own report" in capsys.readouterr().out.replace("\n", " ")
    assert "<h1>run</h1>" in (run_folder / "report.html").read_text()


def test_the_command_refuses_in_one_line(
    tmp_path: Path, run_folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, run = ("--output", str(tmp_path / "out")), str(run_folder)
    assert "--output is missing" in refused(capsys, "report", run, run)
    assert "does nothing" in refused(capsys, "report", run, "--baseline", "x")
    assert "needs files" in refused(capsys, "report", *out)
    assert "neither" in refused(capsys, "report", str(tmp_path / "none"), *out)
    assert "did you mean" in refused(capsys, "report", run, *out, "--mix", "comits")
    assert "seed 3 twice" in refused(capsys, "report", run, run, *out)
    path = tmp_path / "cut.jsonl"
    path.write_text(json.dumps(made("base", 0))[:-9])
    assert "cut.jsonl, line 1 is cut" in refused(capsys, "report", str(path), *out)
    assert not (tmp_path / "out").exists()


def test_a_folder_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(ValueError, match="file is a file; give another --output"):
        write_comparison(compare([made("base", 0)], None, ()), tmp_path / "file")


def test_a_full_disk_leaves_the_older_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    found = compare([made("base", 0)], None, ())
    with monkeypatch.context() as patch:
        patch.setattr(whole, "_sync", full)
        with pytest.raises(UnwrittenError, match="out cannot be written: No space left"):
            write_comparison(found, tmp_path / "out")
        assert not list(tmp_path.iterdir())
    before = write_comparison(found, tmp_path / "out").read_bytes()
    (tmp_path / "out" / "notes.txt").write_text("mine")
    monkeypatch.setattr(whole, "_sync", full)
    with pytest.raises(UnwrittenError, match="out cannot be written: No space left"):
        write_comparison(compare([made("other", 0)], None, ()), tmp_path / "out")
    assert (tmp_path / "out" / "report.html").read_bytes() == before
    assert (tmp_path / "out" / "notes.txt").read_text() == "mine"


def test_names_of_arms_do_not_steer_the_terminal(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = tmp_path / "results.jsonl"
    path.write_text(json.dumps(made("red \x1b[31m", 0)) + "\n")
    main(["report", str(path), "--output", str(tmp_path / "out")])
    said = capsys.readouterr().out
    assert "red \u241b[31m" in said
    assert "\x1b" not in said
