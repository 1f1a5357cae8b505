"""Files and folders are there whole or not at all, and whatever refuses them is one error."""

import errno
import os
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file

from rewardswap import whole
from rewardswap.errors import UnwrittenError
from rewardswap.whole import (
    file_whole,
    naming,
    refuse_no_file,
    refuse_unwritable,
    write_json,
    written_whole,
)

WEIGHTS = {"weights": torch.zeros(3)}


def full(*_: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


@pytest.mark.parametrize("before", ["older", None])
def test_a_file_that_cannot_be_written_leaves_the_older_one(
    before: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "numbers.json"
    if before is not None:
        path.write_text(before)
    monkeypatch.setattr(whole, "_sync", full)
    with pytest.raises(UnwrittenError) as refused:
        write_json(path, {"a": 1})
    assert str(refused.value) == f"{path} cannot be written: No space left on device"
    assert (path.read_text() if path.exists() else None) == before
    assert names(tmp_path) == ([] if before is None else ["numbers.json"])


def test_a_file_takes_the_place_of_what_a_link_points_to(tmp_path: Path) -> None:
    (tmp_path / "kept").mkdir()
    (tmp_path / "kept" / "numbers.json").write_text("older")
    link = tmp_path / "link.json"
    link.symlink_to(tmp_path / "kept" / "numbers.json")
    write_json(link, {"a": 1})
    assert link.is_symlink()
    assert (tmp_path / "kept" / "numbers.json").read_text() == '{\n  "a": 1\n}\n'


def test_a_device_stays_one() -> None:
    write_json(Path(os.devnull), {"a": 1})
    assert Path(os.devnull).is_char_device()


def test_what_safetensors_is_refused_is_the_same_error(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(UnwrittenError) as refused, naming(tmp_path / "weights"):
        save_file(WEIGHTS, tmp_path / "file" / "weights.safetensors")
    assert (refused.value.errno, refused.value.strerror) == (errno.ENOTDIR, "Not a directory")
    assert refused.value.filename == str(tmp_path / "weights")


def test_all_files_may_be_read_by_whom_the_user_lets_read(tmp_path: Path) -> None:
    """Safetensors makes files that only their owner may read."""
    before = os.umask(0o027)
    try:
        with written_whole(tmp_path / "folder") as beside:
            save_file(WEIGHTS, beside / "weights")
            (beside / "text").write_text("text")
        with file_whole(tmp_path / "alone") as alone:
            save_file(WEIGHTS, alone)
    finally:
        os.umask(before)
    found = [tmp_path / "folder" / "weights", tmp_path / "folder" / "text", tmp_path / "alone"]
    assert [stat.S_IMODE(path.stat().st_mode) for path in found] == [0o640] * 3
    assert stat.S_IMODE((tmp_path / "folder").stat().st_mode) == 0o750


def write(folder: Path, version: str) -> None:
    with written_whole(folder, over="config") as beside:
        for name in ("config", "weights"):
            (beside / name).write_text(version)


def test_written_over_other_files_stay(tmp_path: Path) -> None:
    folder = tmp_path / "agent"
    write(folder, "1")
    (folder / "README").write_text("mine")
    (folder / ".agent.0123abcd.part").mkdir()  # what killed writers left, here and beside
    (tmp_path / ".agent.0123abcd.part").mkdir()
    (tmp_path / ".agent.notes").mkdir()
    inode = folder.stat().st_ino
    write(folder, "2")
    assert names(folder) == ["README", "config", "weights"]
    assert [(folder / n).read_text() for n in ("config", "weights")] == ["2", "2"]
    assert names(tmp_path)[0] == ".agent.notes"
    assert folder.stat().st_ino == inode, "a shell in there, or a mount, stays"


@pytest.mark.parametrize("place", range(1, 12))
def test_wherever_writing_over_is_killed_nothing_is_mixed(
    place: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Old and new files may lie side by side only where the file that makes them one is gone."""
    folder, arrived = tmp_path / "agent", [0]
    write(folder, "1")

    class KilledError(BaseException):
        pass

    def watched(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **kwargs: Any) -> Any:
            arrived[0] += 1
            if arrived[0] == place:
                raise KilledError
            return real(*args, **kwargs)

        return call

    with monkeypatch.context() as patch:
        for name in ("replace", "unlink", "mkdir"):
            patch.setattr(Path, name, watched(getattr(Path, name)))
        patch.setattr(whole, "_sync", watched(whole._sync))
        try:
            write(folder, "2")
        except KilledError:
            pass
        else:
            assert arrived[0] < place
    found = {n: (folder / n).read_text() for n in ("config", "weights") if (folder / n).exists()}
    assert "config" not in found or len(set(found.values())) == 1
    assert len(found) == 2 or "config" not in found
    write(folder, "3")
    assert names(tmp_path) == ["agent", "agent/config", "agent/weights"]


def test_where_nothing_can_be_written_is_said_before(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="file is a file; give another --output"):
        refuse_unwritable(tmp_path / "file")
    with pytest.raises(ValueError, match=r"below cannot be written: .*file takes no folder"):
        refuse_unwritable(tmp_path / "file" / "below")
    for path in (tmp_path, tmp_path / "nowhere" / "x.json"):
        with pytest.raises(ValueError, match="is no file in a folder that exists"):
            refuse_no_file(path)
    for fit in (tmp_path / "new.json", tmp_path / "file", Path(os.devnull)):
        refuse_no_file(fit)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_folders_that_may_only_be_read_are_said_before(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match=r"x\.json cannot be written: .* takes no file"):
        refuse_no_file(tmp_path / "x.json")
    with pytest.raises(ValueError, match=r"cannot be written: .* takes no file"):
        refuse_unwritable(tmp_path)
