"""A server's process as part of an actor: it ends when the actor does, however that ends."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from http.client import HTTPConnection, HTTPException

START = (
    "import json, sys; sys.path[:] = json.loads(sys.argv[1]); "
    "from rewardswap.cluster.kept import become; become(sys.argv[2:])"
)


def start(words: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start a command that ends within some seconds of this process, with all that it started."""
    return subprocess.Popen(
        [sys.executable, "-c", START, json.dumps(sys.path), *words], start_new_session=True
    )


def become(words: Sequence[str]) -> None:
    """Become a command, beside a process that ends the group of both once one's parent is gone.

    Ray kills what an actor started, and nothing of what that started: a parent of the server
    would be killed before it could end the server.
    """
    actor, server = os.getppid(), os.getpid()
    if os.fork() == 0:
        with suppress(ProcessLookupError):
            while os.getppid() == server:
                os.kill(actor, 0)  # whether it is there
                time.sleep(1.0)
        os.killpg(os.getpgrp(), signal.SIGKILL)
    os.execvp(words[0], list(words))


def answers(host: str, port: int) -> bool:
    """Whether a server of completions listens there; no proxy is asked."""
    connection = HTTPConnection(host, port, timeout=5.0)
    try:
        connection.request("GET", "/v1/models")
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
