"""The page of a run that goes on: who gets it, what is in it, and that nothing is written."""

import http.client
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import urlopen

import pytest

from commands import refused
from rewardswap.view.pages import Pages, stamp
from rewardswap.view.server import Server
from served import served

LINE = '{"phase": "learn", "update": 1, "success": 0.5, "loop": 0}\n'


@pytest.fixture
def run(tmp_path: Path) -> Path:
    (tmp_path / "run" / "trajectories").mkdir(parents=True)
    (tmp_path / "run" / "metrics.jsonl").write_text(LINE)
    return tmp_path / "run"


@pytest.fixture
def server(run: Path) -> Iterator[Server]:
    with served(run) as found:
        yield found


def answer(
    server: Server, path: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], str]:
    connection = http.client.HTTPConnection("127.0.0.1", server.server_port, timeout=30)
    connection.request(method, path, headers=headers)
    found = connection.getresponse()
    body = found.read().decode()
    connection.close()
    return found.status, dict(found.getheaders()), body


def test_who_knows_the_token_gets_the_page(server: Server, run: Path) -> None:
    asked = urlsplit(server.url)
    assert (asked.hostname, asked.path) == ("127.0.0.1", "/")
    status, headers, page = answer(server, f"/?{asked.query}")
    assert status == 200 and headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Referrer-Policy"] == "no-referrer"
    assert f'data-version="{stamp(run)}"' in page and "connect-src &#39;self&#39;" in page
    assert server.token not in page
    assert answer(server, f"/page?{asked.query}")[2] == page
    told = json.loads(answer(server, f"/version?{asked.query}")[2])
    assert told["version"] == stamp(run)
    assert told["words"].startswith("Updates by itself. The last line of the run is ")


def test_it_listens_on_this_machine_alone(server: Server) -> None:
    assert server.server_address[0] == "127.0.0.1"
    assert len(server.token) >= 32


@pytest.mark.parametrize("path", ["/", "/page", "/version", "/metrics.jsonl", "/nothing"])
@pytest.mark.parametrize("query", ["", "?token=", "?token=x", "?tokens={}", "?token={}x", "?{}"])
def test_without_the_token_there_is_nothing(server: Server, path: str, query: str) -> None:
    status, _, body = answer(server, path + query.format(server.token))
    assert (status, body) == (403, "the address lacks its token\n")


@pytest.mark.parametrize(
    ("host", "status"),
    [
        ("127.0.0.1:{}", 200),
        ("localhost:{}", 200),
        ("localhost:9999", 200),  # a port that is forwarded here
        ("evil.example:{}", 403),
        ("127.0.0.1.evil.example", 403),
        ("localhost.evil.example:{}", 403),
        ("evil.example@127.0.0.1", 403),
        ("", 403),
        ("[", 403),
    ],
)
def test_a_name_that_leads_here_from_elsewhere_gets_nothing(
    server: Server, host: str, status: int
) -> None:
    path = f"/version?token={server.token}"
    assert answer(server, path, Host=host.format(server.server_port))[0] == status


@pytest.mark.parametrize(
    "path", ["/metrics.jsonl", "/../metrics.jsonl", "/%2e%2e/metrics.jsonl", "//etc/passwd", "/x"]
)
def test_no_file_is_served(server: Server, path: str) -> None:
    assert answer(server, f"{path}?token={server.token}")[0] == 404


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "HEAD", "OPTIONS"])
def test_nothing_but_reading_is_answered(server: Server, method: str) -> None:
    assert answer(server, f"/?token={server.token}", method)[0] == 501


def test_nothing_is_written_into_the_run_folder(server: Server, run: Path) -> None:
    def state() -> list[tuple[str, int, int]]:
        return [(str(p), p.stat().st_mtime_ns, p.stat().st_ino) for p in sorted(run.rglob("*"))]

    before = state()
    for path in ("/", "/page", "/version"):
        assert answer(server, f"{path}?token={server.token}")[0] == 200
    assert state() == before


@pytest.mark.parametrize("text", [None, "", LINE[:20]])
def test_a_run_without_a_line_is_waited_for(server: Server, run: Path, text: str | None) -> None:
    path = run / "metrics.jsonl"
    path.unlink()
    if text is not None:
        path.write_text(text)
    page = answer(server, f"/?token={server.token}")[2]
    assert "There is no update in this folder yet. This page waits for it." in page
    assert "connect-src &#39;self&#39;" in page and "<main" not in page
    told = json.loads(answer(server, f"/version?token={server.token}")[2])
    assert told == {"version": stamp(run), "words": "Waiting for the first update of the run."}


def test_a_run_whose_lines_are_all_nonsense_says_so_and_serves_on(
    server: Server, run: Path
) -> None:
    (run / "metrics.jsonl").write_text("what?\n")
    status, _, said = answer(server, f"/?token={server.token}")
    assert status == 503 and "no complete line in metrics.jsonl" in said
    (run / "metrics.jsonl").write_text(LINE)
    assert answer(server, f"/?token={server.token}")[0] == 200


class Clock:
    """Seconds that pass when they are told to; every look takes one."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        self.now += 1.0
        return self.now


def test_a_page_is_made_anew_only_where_the_run_has_grown_and_time_has_passed(run: Path) -> None:
    clock = Clock()
    pages = Pages(run, clock)
    first = pages.page()
    assert pages.page() is first
    with (run / "metrics.jsonl").open("a") as file:
        file.write(LINE.replace("1", "2", 1))
    assert pages.page() is first and pages.version() in first  # making one took a second: ten pass
    clock.now += 20
    assert pages.version() == stamp(run) and pages.version() not in first
    second = pages.page()
    assert second is not first and stamp(run) in second


def test_a_run_that_has_ended_says_so(run: Path) -> None:
    (run / "summary.json").write_text("{}")
    assert Pages(run).words() == "The run has ended."
    for age, words in ((5, "5 s"), (600, "10 min"), (7200 * 2, "4 h")):
        (run / "summary.json").unlink(missing_ok=True)
        os.utime(run / "metrics.jsonl", (0, time.time() - age - 0.2))
        assert Pages(run).words().endswith(f"The last line of the run is {words} old.")


def test_ctrl_c_ends_it_with_one_line(run: Path) -> None:
    with subprocess.Popen(
        [sys.executable, "-u", "-m", "rewardswap", "view", str(run)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as program:
        assert program.stdout is not None and program.stderr is not None
        url = program.stdout.readline().strip()
        assert url.startswith("http://127.0.0.1:")
        assert "Ctrl-C ends the showing, not the run." in program.stdout.readline()
        with urlopen(url) as answer:  # it serves by now
            assert answer.status == 200
        program.send_signal(signal.SIGINT)
        assert program.wait(timeout=60) == 0
        assert program.stdout.read() == "The page is served no more.\n"
        assert program.stderr.read() == ""


def test_mistakes_are_one_line(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, run: Path, server: Server
) -> None:
    assert "nowhere is not a folder" in refused(capsys, "view", str(tmp_path / "nowhere"))
    assert "needs one run folder, got none" in refused(capsys, "view", "--port", "1")
    assert "needs one run folder, got a b" in refused(capsys, "view", "a", "b")
    assert "port must be from 0 to 65535" in refused(capsys, "view", str(run), "--port", "70000")
    taken = refused(capsys, "view", str(run), "--port", str(server.server_port))
    assert f"port {server.server_port} cannot be had (Address already in use)" in taken
