"""A server's process as part of an actor: it ends when the actor does, however that ends."""

import json
import subprocess
import sys
from collections.abc import Sequence
from http.client import HTTPConnection, HTTPException

START = (
    "import json, os, subprocess, sys, threading; sys.path[:] = json.loads(sys.argv[1]); "
    "from rewardswap.rollout.worker import end_with; "
    "threading.Thread(target=end_with, args=(os.getppid(),), daemon=True).start(); "
    "sys.exit(subprocess.call(sys.argv[2:]))"
)
"""What stands between: it kills its process group, the server's too, once its parent is gone."""


def start(words: Sequence[str]) -> "subprocess.Popen[bytes]":
    """Start a command that ends within a second of this process."""
    return subprocess.Popen(
        [sys.executable, "-c", START, json.dumps(sys.path), *words], start_new_session=True
    )


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
