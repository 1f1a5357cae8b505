"""A real headless Chromium, driven through its own pipe: pages, keys, pictures."""

import json
import os
import shutil
import subprocess
import sys
from base64 import b64decode
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser")
FLAGS = ("--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run")
FLAGS += ("--remote-debugging-pipe",)
WIRED = """
import fcntl, os, sys
ends = [fcntl.fcntl(int(end), fcntl.F_DUPFD, 10) for end in sys.argv[1:3]]
os.dup2(ends[0], 3)
os.dup2(ends[1], 4)
os.execv(sys.argv[3], sys.argv[3:])
"""
"""Gives a program the two ends of pipes as its files 3 and 4, where a browser looks for them."""
CODES = {"ArrowDown": 40, "ArrowUp": 38, "Enter": 13, "Escape": 27, "Tab": 9, "Home": 36, "End": 35}
TEXTS = {"Enter": "\r", "Tab": ""}


@contextmanager
def chromium(folder: Path) -> Iterator["Browser"]:
    """A browser with a profile in `folder`; it ends with the block."""
    told, heard = os.pipe(), os.pipe()
    words = [str(CHROMIUM), *FLAGS, f"--user-data-dir={folder / 'profile'}"]
    process = subprocess.Popen(
        [sys.executable, "-c", WIRED, *map(str, (told[0], heard[1])), *words],
        pass_fds=(told[0], heard[1]),
        env={**os.environ, "HOME": str(folder)},
        stderr=subprocess.DEVNULL,
    )
    os.close(told[0])
    os.close(heard[1])
    with os.fdopen(told[1], "wb") as ask, os.fdopen(heard[0], "rb") as answers:
        try:
            yield Browser(ask, answers)
        finally:
            process.kill()
            process.wait()


class Browser:
    """Asks for one thing after the other, and waits for its answer."""

    def __init__(self, ask: Any, answers: Any) -> None:
        self._ask, self._answers = ask, answers
        self._asked = 0
        self.events: list[dict[str, Any]] = []

    def call(self, method: str, session: str | None = None, **params: Any) -> dict[str, Any]:
        """The result of a method of the protocol; what happens meanwhile goes to `events`."""
        self._asked += 1
        asked = {"id": self._asked, "method": method, "params": params}
        if session is not None:
            asked["sessionId"] = session
        self._ask.write(json.dumps(asked).encode() + b"\0")
        self._ask.flush()
        found = self.until(lambda told: told.get("id") == self._asked)
        assert "error" not in found, found
        result: dict[str, Any] = found["result"]
        return result

    def until(self, wanted: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """Read up to the message that is wanted."""
        while True:
            told: dict[str, Any] = json.loads(self._read())
            if wanted(told):
                return told
            self.events.append(told)

    def _read(self) -> bytes:
        read = bytearray()
        while (letter := self._answers.read(1)) != b"\0":
            assert letter, "the browser has ended"
            read += letter
        return bytes(read)

    def open(self, url: str, *, width: int = 1200, height: int = 900, dark: bool = False) -> "Page":
        """A page of its own, once it has loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        page = Page(self, session)
        size = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": False}
        page.call("Emulation.setDeviceMetricsOverride", **size)
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        page.call("Emulation.setEmulatedMedia", features=[scheme])
        for domain in ("Page", "Runtime", "Log"):
            page.call(f"{domain}.enable")
        page.go(url)
        return page


class Page:
    """One open page."""

    def __init__(self, browser: Browser, session: str) -> None:
        self.browser, self.session = browser, session

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """The result of a method of the protocol on this page."""
        return self.browser.call(method, self.session, **params)

    def go(self, url: str) -> None:
        """Load a page."""
        self.browser.events.clear()
        self.call("Page.navigate", url=url)
        loaded = ("Page.loadEventFired", self.session)
        if all((e.get("method"), e.get("sessionId")) != loaded for e in self.browser.events):
            self.browser.until(lambda e: (e.get("method"), e.get("sessionId")) == loaded)

    def run(self, expression: str) -> Any:
        """The value of an expression of JavaScript, awaited."""
        found = self.call(
            "Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True
        )
        assert "exceptionDetails" not in found, found
        return found["result"].get("value")

    def key(self, key: str, count: int = 1) -> None:
        """Press a key on what has the focus."""
        text = TEXTS.get(key, key if len(key) == 1 else "")
        code = CODES.get(key, ord(key.upper()[0]))
        for _ in range(count):
            for kind in ("keyDown", "keyUp"):
                params = {"type": kind, "key": key, "windowsVirtualKeyCode": code}
                if text and kind == "keyDown":
                    params["text"] = text
                self.call("Input.dispatchKeyEvent", **params)

    def picture(self, path: Path) -> None:
        """A picture of what is seen."""
        path.write_bytes(b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def complaints(self) -> list[str]:
        """What the browser has complained of since the page was asked for."""
        mine = [e for e in self.browser.events if e.get("sessionId") == self.session]
        said = [e["params"]["entry"]["text"] for e in mine if e["method"] == "Log.entryAdded"]
        return said + [json.dumps(e) for e in mine if e["method"] == "Runtime.exceptionThrown"]
