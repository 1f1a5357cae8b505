"""A connection to a server of completions: JSON over HTTP, requests at once, retried, counted."""

import asyncio
import ipaddress
import os
from collections.abc import Coroutine
from concurrent.futures import Future
from threading import Thread
from typing import Any

import httpx2

from rewardswap.errors import EngineError, EngineLostError

KEY = "REWARDSWAP_SERVER_KEY"
"""Environment variable of the server's key; it is never part of a message."""

AT_ONCE = 5.0
"""Seconds in which a server answers that is there, where nobody waits for longer (ours)."""
PAUSE = 0.5
"""Seconds before the first retry; twice as many before each further one (ours)."""


class ServerRefusalError(EngineError):
    """The server answered, with an error that asking again will not change."""

    def __init__(self, message: str, status: int) -> None:
        super().__init__(message)
        self.status = status


class NoAnswerError(EngineLostError):
    """The server did not answer, in as many attempts as it had.

    `status` is that of its last answer, none where it was silent.
    """

    def __init__(self, message: str, status: int | None) -> None:
        super().__init__(message)
        self.status = status


class Connection:
    """Asks the server at `url`, `at_once` requests at a time, each at most `1 + retries` times.

    What is lost, takes longer than `timeout` seconds, or comes back with status 429 or 5xx is
    asked again and counted. Proxies and credentials of the environment are not used. Raises
    ValueError for a URL with credentials in it, and for a key that would leave the machine in
    plain text.
    """

    def __init__(self, url: str, *, timeout: float, retries: int, at_once: int) -> None:
        key = os.environ.get(KEY, "")
        self.url = _checked(url, key)
        self._key, self._retries = key, retries
        self.retried = 0
        """Requests that were asked again."""
        self._client = httpx2.AsyncClient(
            base_url=self.url,
            headers={"Authorization": f"Bearer {key}"} if key else {},
            timeout=httpx2.Timeout(timeout, pool=None),
            limits=httpx2.Limits(max_connections=at_once),
            trust_env=False,
        )
        self._loop = asyncio.new_event_loop()
        self._thread = Thread(target=self._loop.run_forever, daemon=True)
        self._thread.start()

    def ask(self, method: str, path: str, body: object = None, *, patient: bool = True) -> Any:
        """The server's answer; raises NoAnswerError where there is none, ServerRefusalError.

        Not `patient`, one attempt of a few seconds is made.
        """
        if patient:
            return self.begin(method, path, body).result()
        return self._run(self._ask(method, path, body, 1, httpx2.Timeout(AT_ONCE))).result()

    def ask_once(self, method: str, path: str, body: object = None) -> Any:
        """The same for what must not be done twice: one attempt, of `timeout` seconds."""
        return self._run(self._ask(method, path, body, 1, self._client.timeout)).result()

    def begin(self, method: str, path: str, body: object = None) -> "Future[Any]":
        """Ask in the background; cancelled, its connection is closed."""
        attempts = self._retries + 1
        return self._run(self._ask(method, path, body, attempts, self._client.timeout))

    def close(self) -> None:
        """Give up what is in progress, and the connections; again, it does nothing."""
        if self._loop.is_running():
            self._run(self._leave()).result()
            self._loop.call_soon_threadsafe(self._loop.stop)
            self._thread.join()
            self._loop.close()

    def _run(self, work: "Coroutine[Any, Any, Any]") -> "Future[Any]":
        return asyncio.run_coroutine_threadsafe(work, self._loop)

    async def _leave(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)
        await self._client.aclose()

    async def _ask(
        self, method: str, path: str, body: object, attempts: int, timeout: httpx2.Timeout
    ) -> Any:
        for attempt in range(attempts):
            status = None
            if attempt:
                self.retried += 1
                await asyncio.sleep(PAUSE * 2 ** (attempt - 1))
            try:
                answer = await self._client.request(method, path, json=body, timeout=timeout)
            except httpx2.TransportError as error:
                trouble = type(error).__name__
                continue
            if answer.status_code != 429 and answer.status_code < 500:
                return self._content(method, path, answer)
            trouble, status = self._told(answer), answer.status_code
        raise NoAnswerError(
            f"the server at {self.url} did not answer {method} {path} in {attempts} attempts, the "
            f"last one: {trouble}; see whether it runs, and what it logs",
            status,
        )

    def _content(self, method: str, path: str, answer: httpx2.Response) -> Any:
        told = self._told(answer)
        if not answer.is_success:
            hint = f"; set {KEY} to its key" if answer.status_code == 401 else ""
            raise ServerRefusalError(
                f"the server at {self.url} refused {method} {path}: {told}{hint}",
                answer.status_code,
            )
        if not answer.content:
            return None
        try:
            return answer.json()
        except ValueError:
            raise EngineError(
                f"the server at {self.url} answered {method} {path} without JSON: {told}; "
                "give the URL of an OpenAI-compatible server, without /v1"
            ) from None

    def _told(self, answer: httpx2.Response) -> str:
        """Status and beginning of an answer, without the key should it be echoed."""
        text = answer.text.replace(self._key, "***") if self._key else answer.text
        return f"status {answer.status_code}, {text[:200]!r}"


def _checked(url: str, key: str) -> str:
    """The URL without a slash at its end."""
    try:
        parts = httpx2.URL(url)
    except httpx2.InvalidURL:
        parts = httpx2.URL()
    if parts.userinfo or parts.query:  # it is recorded with the run
        raise ValueError(
            f"the server's URL holds credentials or a query; leave them out and set {KEY}"
        )
    served = parts.scheme in ("http", "https") and bool(parts.host)
    if not served or not 0 < (parts.port or 80) < 2**16:
        raise ValueError(f"server URL {url!r} is none; give one such as http://127.0.0.1:8000")
    if not (key.isascii() and key.isprintable()):
        raise ValueError(f"{KEY} holds characters that no HTTP header may hold; set it anew")
    if key and parts.scheme == "http" and not _loopback(parts.host):
        raise ValueError(
            f"{KEY} would leave this machine in plain text to {parts.host!r}; give an https URL, "
            "or a tunnel's end on this machine"
        )
    return str(parts).rstrip("/")


def _loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"
