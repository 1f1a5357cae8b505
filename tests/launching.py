"""Programs as several ranks, started as torchrun starts them."""

import os
import socket
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

TESTS = Path(__file__).parent


def environment(rank: int, size: int, port: int) -> dict[str, str]:
    """What torchrun tells a process."""
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join([str(TESTS), os.environ.get("PYTHONPATH", "")]),
        "OMP_NUM_THREADS": "1",
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(size),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "TORCHELASTIC_RUN_ID": "test",
    }


def free_port() -> int:
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return int(found.getsockname()[1])


def start_ranks(program: Path, words: Sequence[str], size: int) -> list[subprocess.Popen[str]]:
    """One process a rank."""
    port = free_port()
    return [
        subprocess.Popen(
            [sys.executable, str(program), *words],
            env=environment(rank, size, port),
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for rank in range(size)
    ]


def run_ranks(program: Path, words: Sequence[str], size: int, seconds: float = 300) -> list[str]:
    """What each rank printed; fails where one failed."""
    ranks = start_ranks(program, words, size)
    try:
        said = [rank.communicate(timeout=seconds)[0] for rank in ranks]
    finally:
        for rank in ranks:
            rank.kill()
    for rank, text in zip(ranks, said, strict=True):
        assert rank.returncode == 0, text
    return said
