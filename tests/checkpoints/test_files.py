"""Checkpoints on disk: whole or not there, and what is damaged is passed over and said."""

import errno
import json
import os
import shutil
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import load_file

from rewardswap.checkpoints import files
from rewardswap.checkpoints.files import Checkpoints
from rewardswap.errors import RunStoppedError


def state(number: int) -> dict[str, Any]:
    return {"number": number, "weights": torch.full((3,), float(number))}


@pytest.fixture
def checkpoints(tmp_path: Path) -> Checkpoints:
    found = Checkpoints(tmp_path / "run" / "checkpoints", keep=2)
    for number in (2, 5, 11):
        found.write(number, state(number))
    return found


def number_of(checkpoints: Checkpoints) -> int:
    found = checkpoints.newest()
    assert found is not None
    assert found.state["number"] == found.number
    assert found.state["weights"].tolist() == [float(found.number)] * 3
    return found.number


def test_the_newest_ones_are_kept(checkpoints: Checkpoints) -> None:
    assert checkpoints.numbers() == [5, 11]
    assert number_of(checkpoints) == 11
    assert sorted(p.name for p in (checkpoints.folder / "00000011").iterdir()) == [
        "manifest.json",
        "state.json",
        "tensors.safetensors",
    ]


def test_without_any_there_is_none(tmp_path: Path) -> None:
    assert Checkpoints(tmp_path / "nowhere", keep=1).newest() is None


def test_only_tensors_and_json_are_written(checkpoints: Checkpoints) -> None:
    folder = checkpoints.folder / "00000011"
    assert set(load_file(folder / "tensors.safetensors")) >= {"0"}
    for name in ("manifest.json", "state.json"):
        json.loads((folder / name).read_text())


@pytest.mark.parametrize("name", ["state.json", "tensors.safetensors", "manifest.json"])
@pytest.mark.parametrize("fault", ["cut", "flipped", "empty", "gone", "pickle"])
def test_a_damaged_one_is_passed_over_and_said(
    name: str, fault: str, checkpoints: Checkpoints
) -> None:
    path = checkpoints.folder / "00000011" / name
    content = path.read_bytes()
    if fault == "gone":
        path.unlink()
    else:
        middle = len(content) // 2
        flipped = bytes([content[middle] ^ 1])
        path.write_bytes(
            {
                "cut": content[:middle],
                "flipped": content[:middle] + flipped + content[middle + 1 :],
                "empty": b"",
                "pickle": b"\x80\x04\x95cos\nsystem\n(S'touch marker'\ntR.",
            }[fault]
        )
    found = checkpoints.newest()
    assert found is not None
    if name == "manifest.json" and fault == "flipped" and found.number == 11:
        pytest.skip("the bit that was flipped says nothing")
    assert found.number == 5
    assert len(found.passed_over) == 1
    assert "00000011" in found.passed_over[0]
    assert not Path("marker").exists()


def test_where_none_is_whole_nothing_begins_anew(checkpoints: Checkpoints) -> None:
    for number in (5, 11):
        (checkpoints.folder / f"{number:08}" / "state.json").write_text("")
    with pytest.raises(ValueError, match=r"none of the 2 .* whole .*00000011.*00000005"):
        checkpoints.newest()
    assert checkpoints.numbers() == [5, 11]


def test_a_manifest_without_sums_proves_nothing(checkpoints: Checkpoints) -> None:
    path = checkpoints.folder / "00000011" / "manifest.json"
    path.write_text(json.dumps({**json.loads(path.read_text()), "sha256": {}}))
    assert number_of(checkpoints) == 5


@pytest.mark.parametrize("more", [{"parts/x": [0]}, {"parts/x": "0"}, {"/dev/zero": "0"}])
def test_a_manifest_that_names_other_files_is_passed_over(
    more: dict[str, Any], checkpoints: Checkpoints
) -> None:
    path = checkpoints.folder / "00000011" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "sha256": {**manifest["sha256"], **more}}))
    assert number_of(checkpoints) == 5


def test_one_under_another_number_is_passed_over(checkpoints: Checkpoints) -> None:
    shutil.rmtree(checkpoints.folder / "00000011")
    shutil.copytree(checkpoints.folder / "00000005", checkpoints.folder / "00000012")
    assert number_of(checkpoints) == 5


def test_a_state_that_lacks_a_part_is_passed_over(checkpoints: Checkpoints) -> None:
    checkpoints.parts = ("number", "loop")
    checkpoints.write(12, {**state(12), "loop": {}})
    assert number_of(checkpoints) == 12
    shutil.rmtree(checkpoints.folder / "00000012")
    with pytest.raises(ValueError, match="lacks 'loop'"):
        checkpoints.newest()


def test_what_is_no_checkpoint_is_left_alone(checkpoints: Checkpoints, tmp_path: Path) -> None:
    (checkpoints.folder / ".DS_Store").write_text("x")
    (checkpoints.folder / "00000020").write_text("x")
    (checkpoints.folder / ".00000005.old").mkdir()
    (checkpoints.folder / ".00000005.old" / "state.json").write_text("x")
    checkpoints.write(12, state(12))
    assert checkpoints.numbers() == [11, 12]
    checkpoints.go_on_from(11)
    left = sorted(p.name for p in checkpoints.folder.iterdir())
    assert left == [".DS_Store", "00000011", "00000020"]
    (tmp_path / "file").write_text("x")
    with pytest.raises(ValueError, match="is a file; move it away"):
        Checkpoints(tmp_path / "file", keep=1).newest()


def test_another_format_is_refused_with_the_way_out(checkpoints: Checkpoints) -> None:
    path = checkpoints.folder / "00000011" / "manifest.json"
    manifest = json.loads(path.read_text())
    path.write_text(json.dumps({**manifest, "format": 99}))
    with pytest.raises(
        ValueError, match="has format 99, this version reads 1, 2; go on with the ver"
    ):
        checkpoints.newest()


def test_what_is_newer_goes_before_the_run_comes_there_again(checkpoints: Checkpoints) -> None:
    (checkpoints.folder / "00000011" / "state.json").write_text("{}")
    (checkpoints.folder / ".00000012.0123abcd.part").mkdir()
    (checkpoints.folder / ".00000013.x_1234ab").mkdir()  # of earlier versions
    checkpoints.go_on_from(5)
    assert [p.name for p in checkpoints.folder.iterdir()] == ["00000005"]
    checkpoints.write(11, state(11))
    assert number_of(checkpoints) == 11


def full(*_: Any, **__: Any) -> None:
    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


@pytest.mark.parametrize("what", ["save_file", "write_json", "_sum"])
def test_a_full_disk_leaves_the_older_ones_whole(
    what: str, checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files, what, full)
    with pytest.raises(RunStoppedError, match=r"written: .*No space left on device; make"):
        checkpoints.write(12, state(12))
    monkeypatch.undo()
    assert [p.name for p in sorted(checkpoints.folder.iterdir())] == ["00000005", "00000011"]
    assert number_of(checkpoints) == 11


def test_a_folder_that_cannot_be_written_is_said(tmp_path: Path) -> None:
    (tmp_path / "checkpoints").write_text("a file")
    with pytest.raises(RunStoppedError, match="a checkpoint cannot be written"):
        Checkpoints(tmp_path / "checkpoints", keep=1).write(1, state(1))


def test_an_older_one_goes_only_when_the_new_one_is_there(
    checkpoints: Checkpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[list[int]] = []
    real = shutil.rmtree

    def watched(path: Path, **more: Any) -> None:
        there.append(checkpoints.numbers())
        real(path, **more)

    monkeypatch.setattr(files.shutil, "rmtree", watched)
    checkpoints.write(12, state(12))
    assert all({11, 12} <= set(numbers) for numbers in there[1:])
    assert there


def test_a_run_that_has_ended_keeps_none(checkpoints: Checkpoints) -> None:
    removed: list[int] = []
    real = checkpoints._remove
    checkpoints._remove = lambda number: (removed.append(number), real(number))  # type: ignore[method-assign]
    checkpoints.clear()
    assert removed == [5, 11]
    assert not checkpoints.folder.exists()


def test_what_others_laid_into_the_folder_outlives_the_checkpoints(
    checkpoints: Checkpoints,
) -> None:
    folder = checkpoints.folder
    for mine in ("notes", "20261130", ".00000011.backup", ".hidden"):
        (folder / mine).mkdir()
        (folder / mine / "thesis.tex").write_text("mine")
    (folder / ".00000012.0123abcd.part").mkdir()
    assert checkpoints.numbers() == [5, 11]
    checkpoints.clear()
    left = sorted(path.name for path in folder.iterdir())
    assert left == [".00000011.backup", ".hidden", "20261130", "notes"]
    checkpoints.write(1, state(1))
    assert number_of(checkpoints) == 1


def test_a_checkpoint_that_finds_its_name_taken_is_not_taken_for_written(
    checkpoints: Checkpoints,
) -> None:
    (checkpoints.folder / "00000012" / "mine").mkdir(parents=True)
    with pytest.raises(RunStoppedError, match="00000012 is not empty"):
        checkpoints.write(12, state(12))


def test_files_of_a_checkpoint_have_the_modes_of_any_file(checkpoints: Checkpoints) -> None:
    """Safetensors makes files that only their owner may read."""
    modes = {path.stat().st_mode for path in (checkpoints.folder / "00000011").iterdir()}
    assert len(modes) == 1
