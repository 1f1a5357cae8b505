"""One runner for a folder, as long as it or a run that it started lives."""

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def locked(folder: Path) -> Iterator[int]:
    """Hold the folder; gives the lock's file descriptor, which runs that are started inherit.

    So a runner that is killed leaves the folder held until the runs that it left behind end.
    Raises ValueError, naming the process, if somebody else holds it, and for a folder that
    cannot be written.
    """
    import fcntl  # not there on Windows, where the other commands work

    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o644)
    except OSError as error:
        raise ValueError(f"folder {folder} cannot be written: {error.strerror}") from error
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            holder = os.read(descriptor, 32).decode(errors="replace").strip()
            raise ValueError(
                f"{folder} is in use by the experiment of process {holder}, or by runs that it "
                "left behind; wait for them, end them, or give another folder"
            ) from None
        os.ftruncate(descriptor, 0)
        os.write(descriptor, f"{os.getpid()}\n".encode())
        yield descriptor
    finally:
        os.close(descriptor)
