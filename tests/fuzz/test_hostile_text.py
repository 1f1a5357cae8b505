"""Text of models and environments on screen, in CSV and in pages: shown, and never obeyed."""

import csv
import json
import os
import re
import shutil
import subprocess
from html.parser import HTMLParser
from io import StringIO
from pathlib import Path
from types import SimpleNamespace

import pytest
from fuzzed import STEERING
from fuzzed_records import DOCUMENTS, LINES, _result
from fuzzed_values import TEXTS
from rich.console import Console

from made import made_trajectory
from rewardswap.cli import main
from rewardswap.evaluation import Evaluation, Panel
from rewardswap.recipes import RECIPES
from rewardswap.report import write_report
from rewardswap.rewards.quality import FamilyQuality
from rewardswap.rewards.quality_tables import families_table
from rewardswap.rollout.engine import SamplingParams
from rewardswap.screen import print_evaluation, print_remarks
from rewardswap.settings import write_run
from rewardswap.types import Task

LONG_NAMES = pytest.mark.filterwarnings("ignore:constrained_layout not applied")
"""Names as long as these leave a plot no room."""
CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
SCRIPT = "document.title='owned';document.documentElement.dataset.owned=1"
HOSTILE = (
    f"<script>{SCRIPT}</script>",
    f'<img src=x onerror="{SCRIPT}">',
    f"</code></p></title></style></svg></script><svg onload={SCRIPT}>",
    f"<a href='javascript:{SCRIPT}'>x</a><iframe srcdoc='<script>{SCRIPT}</script>'></iframe>",
    "\x1b[2J\x1b]0;owned\x07\x9b31m",
    "{{ 7 * 7 }}{% raw %}[bold]x[/][/]",
    '=HYPERLINK("http://evil")',
    "\u202eabc",
)
EVERYTHING = " ".join(HOSTILE)
OWN_SCRIPTS = (2, 0)
"""Of a run's own page the viewer of trajectories and its data; of a comparison none."""


def hostile(content: object) -> object:
    """The same document with hostile text behind every text and name that a reader does not need.

    The names of phases and of units decide what is read, and the successes of tasks are digits.
    """
    if isinstance(content, dict):
        return {
            f"{name}{EVERYTHING}" if name in ("cool", "heat") else name: part
            if name in ("phase", "unit") or (isinstance(part, str) and set(part) <= {*"01"})
            else hostile(part)
            for name, part in content.items()
        }
    if isinstance(content, list):
        return [hostile(part) for part in content]
    return content + EVERYTHING if isinstance(content, str) else content


def hostile_run(folder: Path) -> Path:
    run = folder / "run"
    (run / "trajectories").mkdir(parents=True)
    write_run(RECIPES["demo"](), run / "config.toml")
    config = (run / "config.toml").read_text()
    (run / "config.toml").write_text(f"# {HOSTILE[0]}{HOSTILE[1]}\n{config}")
    for name, content in DOCUMENTS.items():
        (run / name).write_text(json.dumps(hostile(content)))
    for name, rows in LINES.items():
        (run / name).write_text("".join(json.dumps(hostile(row)) + "\n" for row in rows))
    return run


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> list[Path]:
    """A run's own page and a comparison's, made of hostile text."""
    folder = tmp_path_factory.mktemp("hostile")
    rows = [hostile(_result(arm, seed)) for arm in ("base", "other") for seed in (0, 1)]
    (folder / "results.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    main(["report", str(folder / "results.jsonl"), "--output", str(folder / "compared")])
    return [write_report(hostile_run(folder)), folder / "compared" / "report.html"]


CHOICE = ("option", "value")
"""A filter of the viewer may have any name: a browser goes nowhere for it."""


class Tags(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: set[str] = set()
        self.handlers: list[str] = []
        self.scripts = 0

    def handle_starttag(self, tag, attributes) -> None:
        self.found.add(tag)
        self.scripts += tag == "script"
        told = [(name, value or "") for name, value in attributes if (tag, name) != CHOICE]
        self.handlers += [n for n, value in told if n.startswith("on") or "script:" in value]


@LONG_NAMES
def test_no_tag_of_a_model_is_in_a_page(pages) -> None:
    for page, own in zip(pages, OWN_SCRIPTS, strict=True):
        text = page.read_text(encoding="utf-8")
        tags = Tags()
        tags.feed(text)
        assert tags.scripts == own, page
        assert not tags.found & {"iframe", "a", "object", "embed"}, page
        assert not tags.handlers, page
        assert not STEERING.search(text), page
        assert "&lt;script&gt;" in text and "49" not in re.findall(r"\{\{ 7", text)


@LONG_NAMES
@pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")
def test_no_script_of_a_model_runs_in_a_browser(pages, tmp_path) -> None:
    open_page = tmp_path / "open.html"
    open_page.write_text(f"<!doctype html><title>x</title><script>{SCRIPT}</script>")
    assert 'data-owned="1"' in dom(open_page, tmp_path)  # a page that obeys would be seen
    for page, own in zip(pages, OWN_SCRIPTS, strict=True):
        shown = dom(page, tmp_path)
        assert "data-owned" not in shown and "<title>owned" not in shown, page
        tags = Tags()
        tags.feed(shown)
        assert not tags.found & {"iframe", "a"} and not tags.handlers, page
        assert tags.scripts == own, page


def dom(page: Path, folder: Path) -> str:
    """What a real browser makes of a page, after its scripts have run."""
    words = ["--headless", "--no-sandbox", "--disable-gpu", "--virtual-time-budget=2000"]
    words += [f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.resolve().as_uri()]
    home = {**os.environ, "HOME": str(folder)}
    shown = subprocess.run(
        [str(CHROMIUM), *words], capture_output=True, timeout=120, check=True, env=home
    )
    return shown.stdout.decode()


@LONG_NAMES
def test_tables_for_spreadsheets_hold_no_formula_and_no_escape(pages) -> None:
    folder = pages[1].parent
    cells = 0
    for path in folder.glob("*.csv"):
        text = path.read_text(encoding="utf-8")
        assert not STEERING.search(text), path
        for row in csv.reader(StringIO(text)):
            for cell in row:
                cells += 1
                number = re.fullmatch(r"[-+]?[0-9.e+-]+", cell)
                assert number or not cell.startswith(("=", "+", "-", "@", "\t")), (path, cell)
    assert cells > 100
    assert not STEERING.search((folder / "report.md").read_text(encoding="utf-8"))


def test_a_text_that_a_spreadsheet_would_compute_is_quoted() -> None:
    from rewardswap.comparison.page import as_csv
    from rewardswap.comparison.tables import Table

    rows = ({"arm": "=1+1", "p": -0.5}, {"arm": "@x\x1b", "p": None})
    assert as_csv(Table("t", "T", (), rows, {})) == "arm,p\n'=1+1,-0.5\n'@x␛,\n"


def shown_on_screen(text: str) -> str:
    played = tuple(made_trajectory(name, outcome=float(name == "a")) for name in ("a", "b"))
    tasks = tuple(Task(t.task.id, text) for t in played)
    episodes = tuple(_with_task(t, task) for t, task in zip(played, tasks, strict=True))
    panel = Panel(text, tasks, (text,), "origin", False)
    evaluation = Evaluation(panel, SamplingParams(max_tokens=4), episodes, ())
    out = StringIO()
    console = Console(file=out, width=4000)
    print_evaluation(console, text, evaluation)
    print_remarks(console, [text])
    return out.getvalue()


def _with_task(trajectory, task):
    from dataclasses import replace

    return replace(trajectory, task=task)


@pytest.mark.parametrize("text", [*HOSTILE, *(t for t in TEXTS if len(t) < 400)], ids=ascii)
def test_the_screen_shows_text_and_does_not_obey_it(text: str) -> None:
    said = shown_on_screen(text)
    assert not STEERING.search(said), repr(said)
    assert not re.search("[\u202a-\u202e\ud800-\udfff]", said)
    if text.isprintable() and text.strip():
        assert text.strip() in said  # square brackets too: it is no markup


@pytest.mark.parametrize("text", HOSTILE, ids=ascii)
def test_types_of_task_in_tables_of_process_rewards(text: str) -> None:
    row = FamilyQuality(text, 4, 2, 0.5, 0.5, 0.5, 0.25)
    out = StringIO()
    Console(file=out, width=1000).print(families_table(SimpleNamespace(families=[row])))
    assert not STEERING.search(out.getvalue())
    if text.isprintable():
        assert text in out.getvalue()
