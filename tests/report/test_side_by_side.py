"""Several runs on one page: every number stands under its run, and what differs is said."""

import json
import re
from pathlib import Path
from typing import Any

import pytest
from reported import make_run

from browser import CHROMIUM, chromium
from commands import refused
from rewardswap.cli import main
from rewardswap.report.overlay import overlaid_plot, overlaid_reward_plot
from rewardswap.report.plots import Curve
from rewardswap.report.side_by_side import differing, names_of, write_side_by_side
from rewardswap.report.tables import plain


@pytest.fixture
def runs(tmp_path: Path) -> list[Path]:
    """Two runs; the second went on from 55 % to 95 %, on the same panel, and is of seed 8."""
    first, second = (make_run(tmp_path / name) for name in ("a", "b"))
    first, second = first.rename(tmp_path / "first"), second.rename(tmp_path / "second")
    told = json.loads((second / "evaluation-after.json").read_text())
    told |= {"success": 0.95, "interval": [0.9, 1.0]}
    told["families"]["two"] |= {"success": 0.75, "interval": [0.65, 0.85]}
    (second / "evaluation-after.json").write_text(json.dumps(told))
    (second / "config.toml").write_text('method = "rspo"\nseed = 8\noutput = "x"\n[swap]\nk = 3\n')
    return [first, second]


def text_of(page: Path) -> str:
    shown = re.sub(r"<style.*?</style>|<svg.*?</svg>|<[^>]*>", " ", page.read_text(), flags=re.S)
    return re.sub(r"\s+", " ", shown)


def test_numbers_stand_under_their_run(runs: list[Path], tmp_path: Path) -> None:
    page = write_side_by_side(runs, tmp_path / "out")
    assert page == tmp_path / "out" / "runs.html"
    text = text_of(page)
    assert "first 20 tasks of fresh at temperature 1 15.0 % 10.0 to 30.0 55.0 %" in text
    assert "second 20 tasks of fresh at temperature 1 15.0 % 10.0 to 30.0 95.0 %" in text
    assert "two 10.0 % → 30.0 % 20.0 to 40.0 10.0 % → 75.0 % 65.0 to 85.0" in text
    assert "seed 7 8" in text and "swap.k – 3" in text and "output" not in text
    assert "not comparable" not in text
    labels = re.findall(r'aria-label="([^"]*)"', page.read_text())
    assert (
        "Success over updates of the agent. first: from 0.2 to 0.4; second: from 0.2 to 0.4."
        in (labels)
    )
    assert any(label.startswith("Dense reward over environment steps. ") for label in labels)
    ids = re.findall(r'\bid="([^"]*)"', page.read_text())
    assert len(ids) == len(set(ids))
    assert "<script" not in page.read_text()


def test_other_panels_are_not_comparable(runs: list[Path], tmp_path: Path) -> None:
    for when in ("before", "after"):
        path = runs[1] / f"evaluation-{when}.json"
        told = json.loads(path.read_text())
        path.write_text(json.dumps({**told, "temperature": 0.5}))
    assert "their successes are not comparable" in text_of(write_side_by_side(runs, tmp_path))


def test_a_run_that_goes_on_is_shown_with_what_it_lacks(runs: list[Path], tmp_path: Path) -> None:
    for name in ("summary.json", "evaluation-after.json", "evaluation-before.json", "config.toml"):
        (runs[1] / name).unlink()
    path = runs[1] / "metrics.jsonl"
    path.write_bytes(path.read_bytes()[:-20])
    text = text_of(write_side_by_side(runs, tmp_path))
    assert "second: summary.json is missing" in text and "second not evaluated" in text
    assert "second: metrics.jsonl is cut in the middle of its last line" in text


def test_names_are_folders_or_where_they_are_alike_paths(tmp_path: Path) -> None:
    one, other = tmp_path / "a" / "run", tmp_path / "b" / "run"
    assert names_of([one, tmp_path / "c"]) == ["run", "c"]
    assert names_of([one, other]) == [str(one), str(other)]
    with pytest.raises(ValueError, match="run is given twice; give each run once"):
        names_of([one, one])


def test_more_than_can_be_told_apart_are_refused(runs: list[Path], tmp_path: Path) -> None:
    for given in (runs[:1], runs * 5):
        with pytest.raises(ValueError, match="from 2 to 8 runs stand side by side, got"):
            write_side_by_side(given, tmp_path)


def test_settings_that_differ() -> None:
    configs = {"a": "seed = 1\n[swap]\nk = 3\n", "b": "seed = 1\n[swap]\nk = 4\n", "c": "no toml"}
    assert differing(configs) == {"seed": ["1", "1", "–"], "swap.k": ["3", "4", "–"]}
    assert differing({"a": "seed = 1\nk = 3\n", "b": "seed = 1\nk = 4\n"}) == {"k": ["3", "4"]}
    assert differing({"a": 'output = "x"', "b": 'output = "y"'}) == {}
    assert plain(["a", 1]) == "[a, 1]"


def test_a_curve_is_the_explorers_where_the_agent_has_none() -> None:
    explored = [
        {"phase": "explore", "update": 0, "loop": 0, "process_reward_mean": r} for r in (0.25, 0.5)
    ]
    dense = [
        {"phase": "learn", "update": u, "loop": 0, "rule_reward_mean": 0.1 * u} for u in (1, 3)
    ]
    plot, _ = overlaid_reward_plot({"one": explored, "other": dense})
    assert plot is not None
    assert "one: from 0.25 to 0.5; other: from 0.1 to 0.3." in plot.svg
    assert overlaid_plot({"one": explored}, Curve("entropy", "Entropy", ("entropy",))) is None


def test_no_line_joins_two_explorations() -> None:
    rows: list[dict[str, Any]] = []
    for loop in (0, 1):
        explored = {"phase": "explore", "update": loop, "loop": loop, "process_reward_mean": 0.25}
        rows += [explored, explored, {"phase": "learn", "update": loop + 1, "loop": loop}]
    plot, _ = overlaid_reward_plot({"one": rows})
    assert plot is not None
    lines = re.findall(r'<path d="(M [^"]*)"[^>]*stroke: var\(--run-0\)', plot.svg)
    assert [line.count("L") for line in lines] == [1, 1]


HOSTILE = "<script>document.title='owned'</script><img src=x onerror=alert(1)>"


def test_no_text_of_a_run_is_obeyed(runs: list[Path], tmp_path: Path) -> None:
    strange = runs[0].rename(runs[0].with_name("<img src=x onerror=alert(1)>"))
    told = json.loads((strange / "evaluation-after.json").read_text())
    told["families"] = {HOSTILE: told["families"]["two"]}
    told["panel"]["split"] = HOSTILE
    (strange / "evaluation-after.json").write_text(json.dumps(told))
    (strange / "config.toml").write_text(f'"{HOSTILE}" = "{HOSTILE}"\n')
    page = write_side_by_side([strange, runs[1]], tmp_path / "out").read_text()
    assert "<script" not in page and "<img" not in page
    assert "&lt;script&gt;document.title" in page


def test_the_command_writes_it_and_says_why_there_is_no_comparison_of_arms(
    capsys: pytest.CaptureFixture[str], runs: list[Path], tmp_path: Path
) -> None:
    out = tmp_path / "out"
    words = ["report", *map(str, runs), "--output", str(out)]
    main(words)
    first, second = capsys.readouterr().out.splitlines()
    assert first == f"side by side: {out / 'runs.html'}"
    assert second.startswith("no comparison of arms beside it: ") and "config.toml" in second
    assert (out / "runs.html").is_file() and not (out / "report.html").exists()
    # who asks for the comparison is refused
    assert "config.toml" in refused(capsys, *words, "--baseline", "x")


@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_it_fits_a_phone_and_asks_for_nothing(runs: list[Path], tmp_path: Path) -> None:
    page = write_side_by_side(runs, tmp_path / "out")
    with chromium(tmp_path) as browser:
        shown = browser.open(page.as_uri(), width=360, height=780)
        assert shown.run("document.documentElement.scrollWidth") == 360
        assert shown.complaints() == []


def test_a_single_run_has_no_page_of_runs(tmp_path: Path, runs: list[Path]) -> None:
    main(["report", str(runs[0])])
    assert not list(tmp_path.rglob("runs.html"))
