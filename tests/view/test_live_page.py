"""The page that updates by itself, in a real browser: nothing that a reader had open is lost."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from browser import CHROMIUM, Browser, Page
from rewardswap.view import pages as rooms
from rewardswap.view.pages import Pages
from rewardswap.view.server import Server
from served import served

pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no chromium on this machine")


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run" / "trajectories").mkdir(parents=True)
    return tmp_path / "run"


@pytest.fixture
def server(run: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Server]:
    monkeypatch.setattr(rooms, "SHARE", 1e9)  # a page is always due
    with served(run) as found:
        yield found


def add_update(run: Path, number: int, **more: Any) -> None:
    row = {"phase": "learn", "update": number, "loop": 0, "success": 0.1 * number, **more}
    played = {
        "task": f"t{number}", "family": "heat", "index": 0, "success": number % 2 == 0,
        "stop": "done", "phase": "learn", "update": number, "replayed": False,
        "turns": [{"observation": f"sink {number}", "action": f"go {number}"}] * 30,
    }  # fmt: skip
    with (run / "trajectories/train.jsonl").open("a") as file:
        file.write(json.dumps(played) + "\n")
    with (run / "metrics.jsonl").open("a") as file:
        file.write(json.dumps(row) + "\n")


def until(page: Page, condition: str) -> None:
    """Wait for something to become true in the page, which may be loaded anew: half a minute."""
    for _ in range(300):
        if page.run(condition):
            return
        time.sleep(0.1)
    raise AssertionError(f"never: {condition}; the page says {page.run('document.body.innerText')}")


COUNT = "document.querySelector('[data-part=count]')?.textContent"


def test_a_run_that_has_not_begun_is_waited_for_and_then_shown(
    browser: Browser, server: Server, run: Path
) -> None:
    page = browser.open(server.url)
    assert "This page waits for it." in page.run("document.body.innerText")
    add_update(run, 1)
    until(page, f"{COUNT} === '1 of 1'")
    assert page.complaints() == []


def test_what_is_new_comes_and_what_was_open_stays(
    browser: Browser, server: Server, run: Path
) -> None:
    (run / "config.toml").write_text("seed = 7\n")
    (run / "environment.json").write_text('{"commit": "c0ffee"}')
    for number in range(1, 5):
        add_update(run, number)
    page = browser.open(server.url, height=700)
    page.run("document.documentElement.style.overflowAnchor = 'none'")  # not all browsers have it
    page.run("[...document.querySelectorAll('#record details')].at(-1).open = true")
    page.run("document.querySelector('[data-filter=outcome]').value = 'solved'")
    page.run("document.querySelector('[data-filter=outcome]').dispatchEvent(new Event('input'))")
    page.run("document.querySelector('[data-part=list]').focus()")
    page.key("End")
    page.run("document.querySelector('[data-part=open]').scrollTop = 120")
    page.run("document.querySelector('#trajectories').scrollIntoView()")
    top = "Math.round(document.querySelector('#trajectories').getBoundingClientRect().top) || 0"
    assert page.run(COUNT) == "2 of 4" and page.run(top) == 0
    (run / "config.toml").write_text("seed = 8\n")
    for number in (5, 6):
        add_update(run, number, entropy=0.5, kl_old=0.1)  # curves above that were not there
    until(page, f"{COUNT} === '3 of 6'")
    assert page.run("document.querySelectorAll('#health figure').length") == 2
    assert page.run(top) == 0
    assert "task t4," in page.run("document.querySelector('[data-part=open]').innerText")
    assert page.run("document.querySelector('[data-part=open]').scrollTop") == 120
    assert page.run("document.activeElement.dataset.part") == "list"
    assert page.run("[...document.querySelectorAll('#record details')].map((d) => d.open)") == [
        False, True,
    ]  # fmt: skip
    assert "seed = 8" in page.run("document.getElementById('record').textContent")
    assert "Updates by itself" in page.run("document.getElementById('live').textContent")
    assert page.complaints() == []


def test_a_server_that_is_gone_is_said_and_the_page_stays(browser: Browser, run: Path) -> None:
    add_update(run, 1)
    with Server(Pages(run)) as server:
        thread = Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        page = browser.open(server.url)
        server.shutdown()
        thread.join()
    until(page, "document.getElementById('live').textContent.includes('does not answer')")
    assert page.run(COUNT) == "1 of 1"
