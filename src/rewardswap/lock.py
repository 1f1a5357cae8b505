"""One process for a folder, as long as it or one that it started lives."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LOCK = ".lock"


@contextmanager
def locked(folder: Path, holders: str) -> Iterator[int]:
    """Hold the folder; gives the lock's file descriptor, which processes that are started inherit.

    So a process that is killed leaves the folder held until those that it left behind end.
    Raises ValueError if somebody else holds it, naming the process and saying what `holders` are,
    for a folder that cannot be written, and on a file system without locks.
    """
    try:
        import fcntl
    except ImportError as error:
        raise ValueError(
            "this system has no file locks that end with their process; train under Linux, macOS "
            "or WSL"
        ) from error

    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / LOCK, os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ValueError(f"folder {folder} cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            raise ValueError(
                f"{folder} is in use by {holders.format(holder)}; wait for them, end them, or "
                "give another folder"
            ) from None
        except OSError as error:
            raise ValueError(
                f"{folder} cannot be locked ({error.strerror}), and without a lock a second "
                "process could write into it; give a folder on a disk of this machine"
            ) from error
        try:
            os.ftruncate(descriptor, 0)
            os.write(descriptor, f"{os.getpid()}\n".encode())
        except OSError as error:
            raise ValueError(f"{folder / LOCK} cannot be written: {error.strerror}") from error
        yield descriptor
    finally:
        os.close(descriptor)
