import base64
import hashlib
import html
import json
import os
import re
import subprocess
import sys
from html.parser import HTMLParser
from pathlib import Path

import pytest

from rewardswap.report import write_report
from rewardswap.report.page import visible

VOID = {"meta", "br", "input"}


class Structure(HTMLParser):
    """Collects ids, references, visible text, and whether every element is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.ids: list[str] = []
        self.references: list[str] = []
        self.words: list[str] = []
        self.drawings: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag not in VOID:
            self.open.append(tag)
        found = {name: value or "" for name, value in attrs}
        self.ids += [found["id"]] if "id" in found else []
        self.references += [v for k, v in found.items() if k.endswith(("href", "src"))]
        if tag == "svg":
            assert found["role"] == "img"
            self.drawings.append(found["aria-label"])

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.handle_starttag(tag, attrs)
        self.open.pop()

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"style", "script", "noscript"} & {*self.open}:
            self.words.append(data)

    @property
    def text(self) -> str:
        return re.sub(r"\s+", " ", " ".join(self.words))


def structure_of(run: Path) -> Structure:
    return Structure(write_report(run).read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def whole(written_page: Path) -> Structure:
    return Structure(written_page.read_text(encoding="utf-8"))


def test_the_page_is_whole_and_has_every_number(written_page: Path) -> None:
    assert written_page.name == "report.html"
    page = written_page.read_text(encoding="utf-8")
    found = Structure(page)
    assert found.open == []
    assert len(set(found.ids)) == len(found.ids)
    assert {"headline", "curves", "health", "families", "process-reward", "episodes"} <= {
        *found.ids
    }
    assert found.references
    assert all(r.startswith("#") and r[1:] in found.ids for r in found.references)
    assert page.count("<script") == 2 and "@import" not in page  # the viewer and its data
    assert not re.search(r"(?:fill|stroke): #", page), "a colour that the dark page cannot change"
    # .55 - .15; -√((.55-.45)² + (.3-.15)²) = -.1803; +√((.65-.55)² + (.15-.1)²) = .1118
    for words in ("15.0 %", "10.0 to 30.0", "55.0 %", "+40.0", "+22.0 to +51.2"):
        assert words in found.text, words
    for words in ("1 500", "8 min 32 s", "20 tasks of fresh at temperature 1"):
        assert words in found.text, words
    for words in ("2.9.1", "rewardswap demo --seed 7", "8165e6f", "seed = 7", "kitchen-rspo"):
        assert words in found.text, words
    assert "notes" not in found.ids


def test_families_have_their_rates_and_differences(whole: Structure) -> None:
    text = whole.text
    # 8/10 - 2/10 with arms of .1 on all sides: √.02 = .1414
    assert "heat 10 tasks 20.0 % 10.0 to 30.0 80.0 % 70.0 to 90.0 +60.0 +45.9 to +74.1" in text
    assert "two 10 tasks 10.0 % 0.0 to 20.0 30.0 % 20.0 to 40.0 +20.0" in text
    assert "all tasks 20 tasks 15.0 %" in text
    assert "14.5 → 8.5" in text
    assert "31.0 % of the actions not admitted" in text


def test_remarks_on_the_splits_are_told_once(whole: Structure) -> None:
    assert whole.text.count("2 tasks left out") == 1


def test_scores_and_products_are_told_where_there_are_any(
    run_folder: Path, whole: Structure
) -> None:
    for when, success, score in (("before", 0.25, 0.3), ("after", 0.5, 0.7)):
        path = run_folder / f"evaluation-{when}.json"
        document = json.loads(path.read_text())
        interval = [success - 0.1, success + 0.1]
        document |= {
            "task_score": score,
            "per_origin": {
                "origin": "product",
                "origins": 4,
                "success": success,
                "interval": interval,
            },
        }
        path.write_text(json.dumps(document))
    text = structure_of(run_folder).text
    assert "0.300 → 0.700 14.5 → 8.5 per product 4 products 25.0 % 15.0 to 35.0" in text
    # .5 - .25 with arms of .1 on all sides: √.02 = .1414
    assert "50.0 % 40.0 to 60.0 +25.0 +10.9 to +39.1 – → – – → –" in text
    assert "Student’s t" in text and "Score: the benchmark’s own" in text
    for word in ("per product", "Student’s t", "Score: the benchmark’s own"):
        assert word not in whole.text


def test_a_turn_counter_is_called_one(whole: Structure) -> None:
    text = whole.text
    # (200 · .51 + 100 · .47)/300 = .4967
    assert "This process reward is a turn counter." in text
    assert "mean AUC 0.497" in text
    assert "at turn 3 200 0.510 0.500 at turn 5 100 0.470 0.500 whole 0.946 0.983" in text
    assert "held out trajectories 321" in text


def test_every_drawing_says_what_it_shows(whole: Structure) -> None:
    drawings = whole.drawings
    assert len(drawings) == 4 + 4 + 1
    assert "Updates of the explorer in the loop (k) over updates of the agent. " in " ".join(
        drawings
    )
    assert (
        "Success over environment steps. agent, success: 6 points, from 20.0% to 40.0%. "
        "explorer, success: 9 points, from 10.0% to 30.0%. "
        "evaluation, success: 2 points, from 15.0% to 55.0%."
    ) in drawings


def test_episodes_are_told_turn_by_turn(whole: Structure) -> None:
    text = whole.text
    assert "Of the 7 tasks recorded both before and after, 3 were learned, 1 kept, 1 lost" in text
    assert (
        "before : failed 2 turns, out of turns, process reward +0.38 in total "
        "start: before of a1, failed go to sink 1 reward +0.25 process +0.50 "
        "the sink eat sink 1 not admitted process \u22120.12 end: before of a1, failed"
    ) in text.replace("before: ", "before : ")
    assert "start: after of a1, solved" in text
    assert "process reward liked best two, task e1" in text


def test_the_same_run_gives_the_same_bytes(run_folder: Path, written_page: Path) -> None:
    program = (
        "import sys, pathlib, rewardswap.report as r; r.write_report(pathlib.Path(sys.argv[1]))"
    )
    subprocess.run(
        [sys.executable, "-c", program, str(run_folder)],
        env={**os.environ, "PYTHONHASHSEED": "12"},
        check=True,
    )
    assert (run_folder / "report.html").read_bytes() == written_page.read_bytes()


def test_text_of_a_world_cannot_become_markup_or_hide(run_folder: Path) -> None:
    path = run_folder / "trajectories/before.jsonl"
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    for row in rows:
        row["family"] = "heat<b>"
        row["turns"][0]["observation"] = (
            "<script>alert('x')</script> \x1b[31mred\x1b[0m \ud800 \u202eback"
        )
        row["turns"][0]["action"] = '"><img src=x onerror=alert(1)>'
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    page = write_report(run_folder).read_text(encoding="utf-8")
    assert Structure(page).open == []
    assert page.count("<script") == 2 and "<img" not in page and "<b>&" not in page
    assert (
        "&lt;script&gt;alert(&#39;x&#39;)&lt;/script&gt; ␛[31mred␛[0m \\ud800 \\u202eback" in page
    )
    assert "heat&lt;b&gt;" in page
    assert "\x1b" not in page


def test_visible_keeps_ordinary_text() -> None:
    assert visible("two\nlines\tand é ☃") == "two\nlines\tand é ☃"
    assert visible("\x00\x7f\x9b\r") == "␀␡\\u009b␍"
    assert visible(3) == 3


def test_an_interrupted_run_says_what_it_lacks(run_folder: Path) -> None:
    metrics = (run_folder / "metrics.jsonl").read_bytes()
    for path in sorted(run_folder.rglob("*")):
        if path.is_file() and path.name != "metrics.jsonl":
            path.unlink()
    (run_folder / "metrics.jsonl").write_bytes(metrics[:-40])
    found = structure_of(run_folder)
    assert "metrics.jsonl is cut in the middle of its last line (line 17)" in found.text
    for name in (
        "config.toml", "environment.json", "remarks.json", "summary.json", "evaluation-before.json",
        "evaluation-after.json", "prm.json", "trajectories/before.jsonl",
        "trajectories/after.jsonl", "trajectories/train.jsonl",
    ):  # fmt: skip
        assert f"{name} is missing: " in found.text, name
    assert {"families", "process-reward", "episodes"}.isdisjoint(found.ids)
    assert {"headline", "curves", "notes"} <= {*found.ids}


def test_a_run_cut_before_its_end_shows_what_came_before(run_folder: Path) -> None:
    (run_folder / "evaluation-after.json").write_text('{"success": .5')
    (run_folder / "trajectories/after.jsonl").unlink()
    found = structure_of(run_folder)
    assert "evaluation-after.json is cut short or not JSON" in found.text
    assert "15.0 %" in found.text
    assert "55.0 %" not in found.text
    assert "start: before of a1, failed" in found.text


@pytest.mark.parametrize("text", [None, "", '{"phase": "learn", "upd'])
def test_a_folder_without_metrics_is_refused(tmp_path: Path, text: str | None) -> None:
    if text is not None:
        (tmp_path / "metrics.jsonl").write_text(text)
    with pytest.raises(ValueError, match="no complete line in metrics"):
        write_report(tmp_path)
    assert not (tmp_path / "report.html").exists()


def test_a_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="nowhere is not a folder"):
        write_report(tmp_path / "nowhere")


def test_only_the_pages_own_script_may_run_and_nobody_is_asked(written_page: Path) -> None:
    page = written_page.read_text(encoding="utf-8")
    (policy,) = re.findall(r'http-equiv="Content-Security-Policy" content="([^"]*)"', page)
    rules = dict(rule.strip().split(" ", 1) for rule in html.unescape(policy).split(";"))
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
    assert rules["script-src"] == f"'sha256-{digest}'"
    assert rules["default-src"] == rules["connect-src"] == rules["form-action"] == "'none'"
