"""Where and when a benchmark ran, in one line."""

import os
import platform
import subprocess
from datetime import UTC, datetime
from pathlib import Path


def circumstances() -> str:
    """Date, commit, processor and how busy the machine was."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12"]
    described = subprocess.run(
        command, cwd=Path(__file__).parent, capture_output=True, text=True, check=False
    )
    commit = described.stdout.strip() or "unknown"
    cores, load = os.cpu_count(), os.getloadavg()[0]
    return (
        f"{datetime.now(UTC):%Y-%m-%d %H:%M} UTC, commit {commit}, {_processor()}, {cores} cores, "
        f"load {load:.1f}, Python {platform.python_version()}"
    )


def _processor() -> str:
    information = Path("/proc/cpuinfo")
    if information.is_file():
        for line in information.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()
