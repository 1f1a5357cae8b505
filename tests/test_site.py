"""The site of the docs is built, with every warning an error: pages, links, anchors, docstrings."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("docs") / "site"
    done = subprocess.run(
        [sys.executable, "-m", "mkdocs", "build", "--strict", "--site-dir", folder],
        cwd=ROOT,
        env={**os.environ, "NO_MKDOCS_2_WARNING": "1"},
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    return folder


def test_docstrings_are_in_the_reference(site: Path) -> None:
    text = (site / "api.html").read_text(encoding="utf-8")
    assert "What happened in one episode: evidence only" in text


def test_no_page_asks_another_site_for_anything(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = page.read_text(encoding="utf-8")
        asked = re.findall(
            r"<(?:script|link|img|iframe)[^>]*(?:src|href)=.?(https?:[^ \"'>]+)", text
        )
        assert asked == [], page
