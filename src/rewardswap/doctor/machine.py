"""Threads, GPU, memory, disk, and whether the working folder takes files."""

import os
import shutil
import tempfile
from pathlib import Path

import torch

from rewardswap.doctor.check import Check

GIB = 2.0**30
LEAST_MEMORY = 1.5
"""GiB that the demo needs: it peaks at 1.0 (ours, measured)."""
LEAST_DISK = 1.0
"""GiB that a run folder of the demo, with its checkpoints, is far below (ours)."""


def check_threads() -> Check:
    """torch's threads; a run sets its own number (`--threads`)."""
    cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
    asked = os.environ.get("OMP_NUM_THREADS")
    said = "" if asked is None else f" (OMP_NUM_THREADS {asked})"
    found = f"{torch.get_num_threads()} of torch on {cores} cores{said}; see --threads"
    return Check("threads", "ok", found)


def check_gpu(device: str) -> Check:
    """The CUDA devices; none is fine where none is asked for."""
    wanted = device.startswith("cuda")
    if torch.cuda.is_available():
        names = [torch.cuda.get_device_properties(n) for n in range(torch.cuda.device_count())]
        said = "; ".join(f"{one.name}, {one.total_memory / GIB:.0f} GiB" for one in names)
        return Check("gpu", "ok", said)
    driver = Path("/proc/driver/nvidia/version").exists()
    if driver and torch.version.cuda is None:
        advice = "install torch with CUDA: https://pytorch.org/get-started/locally"
        found = "there is one, but this torch is built without CUDA"
        return Check("gpu", "wrong", found, advice, needed=wanted)
    if wanted:
        return Check("gpu", "wrong", f"none, but --device {device} asks for one", "take cpu")
    return Check("gpu", "ok", "none; everything runs on the CPU")


def check_memory() -> Check:
    """Free memory of the host, as the system says it, in GiB."""
    free, total = _free_memory() / GIB, _pages("SC_PHYS_PAGES") / GIB
    found = f"{free:.1f} of {total:.1f} GiB free"
    if free >= LEAST_MEMORY:
        return Check("memory", "ok", found)
    advice = f"close other programs: the demo needs {LEAST_MEMORY} GiB"
    return Check("memory", "wrong", found, advice)


def check_disk(folder: Path) -> Check:
    """Free space of the working folder, in GiB."""
    free = shutil.disk_usage(folder).free / GIB
    found = f"{free:.1f} GiB free in {folder}"
    if free >= LEAST_DISK:
        return Check("disk", "ok", found)
    return Check("disk", "wrong", found, "free some, or work in a folder of another disk")


def check_writing(folder: Path) -> Check:
    """Whether the working folder, where `runs` is made, takes files."""
    try:
        with tempfile.NamedTemporaryFile(dir=folder):
            return Check("folder", "ok", f"{folder} takes files")
    except OSError as error:
        advice = "work in another folder, or give --output"
        return Check("folder", "wrong", f"{folder}: {error.strerror}", advice)


def _free_memory() -> float:
    """Bytes that programs can still have."""
    try:
        lines = Path("/proc/meminfo").read_text(encoding="ascii").splitlines()
    except OSError:  # not Linux
        return _pages("SC_AVPHYS_PAGES")
    named = dict(line.split(":", 1) for line in lines)
    return float(named["MemAvailable"].split()[0]) * 1024


def _pages(name: str) -> float:
    return float(os.sysconf("SC_PAGE_SIZE") * os.sysconf(name))
