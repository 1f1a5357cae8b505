"""A server for one page: of this machine alone, and of those who know its token."""

import json
import secrets
from collections.abc import Callable
from hmac import compare_digest
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qs

from rewardswap.view.pages import Pages

ADDRESS = "127.0.0.1"
NAMES = (ADDRESS, "localhost")
"""What a browser may call this machine; a page of another name that leads here gets nothing."""
HEADERS = {
    "Cache-Control": "no-store",
    "Content-Security-Policy": "frame-ancestors 'none'",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
}


class Server(ThreadingHTTPServer):
    """Gives the pages of a run away, reads nothing else, and writes nothing."""

    daemon_threads = True

    def __init__(self, pages: Pages, port: int = 0) -> None:
        """Raises OSError where the port cannot be had; 0: any free one."""
        super().__init__((ADDRESS, port), Handler)
        self.pages = pages
        self.token = secrets.token_urlsafe(24)

    @property
    def url(self) -> str:
        """Where the page is, token included."""
        return f"http://{ADDRESS}:{self.server_port}/?token={self.token}"

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A browser that hangs up is nothing to report."""


class Handler(BaseHTTPRequestHandler):
    """Answers one request."""

    server: Server
    server_version = "rewardswap"
    sys_version = ""
    timeout = 30

    def do_GET(self) -> None:
        """The page, or the name of its version; to others than its owner nothing."""
        path, _, query = self.path.partition("?")
        if not self._is_ours(parse_qs(query).get("token", [""])[0]):
            self._answer(HTTPStatus.FORBIDDEN, "text/plain", "the address lacks its token\n")
            return
        answer = ANSWERS.get(path)
        if answer is None:
            self._answer(HTTPStatus.NOT_FOUND, "text/plain", "there is nothing here\n")
            return
        kind, made = answer
        try:
            content = made(self.server.pages)
        except (OSError, ValueError) as error:  # the folder is gone, or is being changed
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "text/plain", f"{error}\n")
            return
        self._answer(HTTPStatus.OK, kind, content)

    def _is_ours(self, token: str) -> bool:
        """Whether somebody on this machine asks who knows the token, and not a page elsewhere."""
        called = self.headers.get("Host", "").partition(":")[0]
        return called in NAMES and compare_digest(token.encode(), self.server.token.encode())

    def _answer(self, status: HTTPStatus, kind: str, content: str) -> None:
        body = content.encode("utf-8", errors="replace")
        self.send_response(status)
        for name, value in HEADERS.items():
            self.send_header(name, value)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: Any) -> None:
        """Requests are not told: the screen is for the address."""


def _version(pages: Pages) -> str:
    return json.dumps({"version": pages.version(), "words": pages.words()})


ANSWERS: dict[str, tuple[str, Callable[[Pages], str]]] = {
    "/": ("text/html", Pages.page),
    "/page": ("text/html", Pages.page),
    "/version": ("application/json", _version),
}
"""Path to the kind of what is there, and what makes it."""
