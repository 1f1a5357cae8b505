"""A folder is one process's; where that cannot be known, it is said."""

import errno
import fcntl
import os
from pathlib import Path
from typing import Any

import pytest

from rewardswap.lock import LOCK, locked


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP])
def test_a_file_system_without_locks_is_said(
    number: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def without(*_: Any) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(fcntl, "flock", without)
    said = (
        rf"cannot be locked \({os.strerror(number)}\), .* give a folder on a disk of this machine"
    )
    with pytest.raises(ValueError, match=said), locked(tmp_path / "run", "process {}"):
        pass


def test_a_disk_too_full_for_a_lock_names_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    with (
        pytest.raises(ValueError, match=rf"run/{LOCK} cannot be written: No space left on device"),
        locked(tmp_path / "run", "process {}"),
    ):
        pass
    monkeypatch.undo()
    with locked(tmp_path / "run", "process {}"):
        pass


def test_what_goes_wrong_inside_is_not_the_locks(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="elsewhere"), locked(tmp_path, "process {}"):
        raise OSError(errno.ENOSPC, "elsewhere")
