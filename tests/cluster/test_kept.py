"""A server ends with its actor, whoever is killed first, and so does all that it started."""

import subprocess
import sys
import time

import psutil
import pytest

ACTOR = """
import sys, time
from rewardswap.cluster.kept import start
server = "import subprocess, time; subprocess.Popen(['sleep', '600']); time.sleep(600)"
start([sys.executable, "-c", server])
time.sleep(600)
"""


@pytest.mark.parametrize("first", ["actor", "server"])
def test_whoever_is_killed_first_nothing_is_left(first: str) -> None:
    actor = subprocess.Popen([sys.executable, "-c", ACTOR])
    try:
        until = time.monotonic() + 60
        while len(found := psutil.Process(actor.pid).children(recursive=True)) < 3:
            assert time.monotonic() < until, found
            time.sleep(0.05)
        (server,) = psutil.Process(actor.pid).children()
        if first == "server":
            server.kill()
        else:
            actor.kill()
            actor.wait()
        for process in found:
            if process != server or first == "actor":
                process.wait(30)
    finally:
        actor.kill()
        actor.wait()
