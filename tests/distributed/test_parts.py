"""Checkpoints that ranks write together: each its parts, whole or not there, read by any number."""

import json
import shutil
import signal
from pathlib import Path

import pytest
from safetensors.torch import load_file

from launching import run_ranks, start_ranks
from parts_program import do
from rewardswap.checkpoints.files import Checkpoints
from rewardswap.ranks import ALONE

PROGRAM = Path(__file__).parents[1] / "parts_program.py"


@pytest.fixture(scope="module")
def by_two(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Checkpoints 3 and 5, written by two ranks."""
    folder = tmp_path_factory.mktemp("two") / "checkpoints"
    run_ranks(PROGRAM, [str(folder), "write:1:3:5", "same:5"], 2)
    return folder


@pytest.fixture
def folder(by_two: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(by_two, tmp_path / "checkpoints"))


def numbers(folder: Path) -> list[int]:
    return Checkpoints(folder, keep=2).numbers()


def test_each_rank_has_written_its_rows_and_nothing_is_a_pickle(folder: Path) -> None:
    """7 rows on 2 ranks: 4 and 3; of a single row the second rank has none."""
    assert numbers(folder) == [3, 5]
    ranks = [load_file(path) for path in sorted((folder / "00000005" / "parts").iterdir())]
    assert [len(rank["0"]) for rank in ranks] == [4, 3]
    assert ranks[0]["0"][1].tolist() == [10.0, 11.0, 12.0, 13.0, 14.0]
    assert len(ranks[0]["1"]) == 1
    assert not len(ranks[1].get("1", ()))
    files = [path for path in folder.rglob("*") if path.is_file()]
    assert {path.suffix for path in files} == {".json", ".safetensors"}
    manifest = json.loads((folder / "00000005" / "manifest.json").read_text())
    within = {str(path.relative_to(folder)) for path in files if path.name != "manifest.json"}
    assert {f"00000005/{name}" for name in manifest["sha256"]} <= within
    assert len(manifest["sha256"]) == 4  # the tree, what is whole, and a file of each rank
    assert manifest["format"] == 2  # a version that knows no parts refuses it


def test_one_process_reads_them_whole_and_writes_the_plain_format(folder: Path) -> None:
    do("same:5", folder, ALONE)
    checkpoints = Checkpoints(folder, keep=2)
    found = checkpoints.newest()
    assert found is not None
    checkpoints.write(7, {**found.state, "number": 7})
    assert sorted(path.name for path in (folder / "00000007").iterdir()) == [
        "manifest.json",
        "state.json",
        "tensors.safetensors",
    ]
    assert json.loads((folder / "00000007" / "manifest.json").read_text())["format"] == 1


@pytest.mark.parametrize("damage", ["cut", "flipped", "gone", "all gone"])
def test_a_damaged_part_is_passed_over_and_said(
    damage: str, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = max((folder / "00000005" / "parts").iterdir())
    content = path.read_bytes()
    if damage == "all gone":
        shutil.rmtree(path.parent)
    elif damage == "gone":
        path.unlink()
    else:
        last = bytes([content[-1] ^ (damage == "flipped")])
        path.write_bytes(content[:-1] + (last if damage == "flipped" else b""))
    do("same:3", folder, ALONE)
    assert "is cut or damaged" in capsys.readouterr().out


def test_three_ranks_read_what_two_wrote_and_pass_over_what_is_cut(folder: Path) -> None:
    words = [str(folder), "same:5", "write:7", "same:7", "go_on:5", "write:8"]
    run_ranks(PROGRAM, words, 3)
    assert numbers(folder) == [5, 8]
    path = max((folder / "00000008" / "parts").iterdir())
    path.write_bytes(path.read_bytes()[:-1])
    for text in run_ranks(PROGRAM, [str(folder), "same:5"], 2):
        assert text == f"{path} is cut or damaged\n"


def test_who_cannot_write_stops_all_and_what_was_there_stays(folder: Path) -> None:
    (folder / "00000008" / "mine").mkdir(parents=True)
    broken = ["refused:7:parts:1", "refused:7:sums:0", "refused:7:tree:0", "refused:8"]
    said = run_ranks(PROGRAM, [str(folder), *broken, "same:5", "write:9", "same:9"], 2)
    reason = "[Errno 28] No space left on device"
    for text in said:
        lines = text.splitlines()
        assert (
            lines[0] == f"a checkpoint cannot be written: rank 1: {reason}; make room, then go on"
        )
        assert f"rank 0: {reason}" in lines[1]
        assert "No space left on device" in lines[2]
        assert "00000008 is not empty" in lines[3]
    left = sorted(path.name for path in folder.iterdir())
    assert left == ["00000005", "00000008", "00000009"]


def test_a_rank_killed_while_it_writes_leaves_the_older_one(folder: Path) -> None:
    ranks = start_ranks(PROGRAM, [str(folder), "killed:7"], 2)
    try:
        for rank in ranks:
            rank.communicate(timeout=200)
    finally:
        for rank in ranks:
            rank.kill()
    assert ranks[1].returncode == -signal.SIGKILL
    assert ranks[0].returncode != 0
    assert numbers(folder) == [3, 5]
    do("same:5", folder, ALONE)
    do("go_on:5", folder, ALONE)
    assert sorted(path.name for path in folder.iterdir()) == ["00000003", "00000005"]


def test_ranks_that_see_other_folders_are_refused(folder: Path) -> None:
    before = sorted(folder.iterdir())
    run_ranks(PROGRAM, [str(folder), "unseen"], 2)
    assert sorted(folder.iterdir()) == before
    run_ranks(PROGRAM, [str(folder), "clear"], 2)
    assert not folder.exists()
