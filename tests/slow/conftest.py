"""A real model and official games, each skipped with a reason where it is not there."""

import tarfile
from pathlib import Path

import pytest

from real_model import smollm2
from unpacking import unpack

__all__ = ["games", "smollm2"]

ARCHIVE = Path(__file__).parents[3] / "shared" / "alfworld" / "json_2.1.1.tar.xz"


@pytest.fixture(scope="session")
def games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Four official games of two splits, in the official layout."""
    if not ARCHIVE.is_file():
        pytest.skip("the official games are not at ../shared/alfworld")
    folder = tmp_path_factory.mktemp("official")
    taken = {"train": 0, "valid_seen": 0}
    with tarfile.open(ARCHIVE, "r|xz") as archive:
        for member in archive:
            parts = Path(member.name).parts
            if member.name.endswith("/game.tw-pddl") and taken.get(parts[1], 4) < 4:
                unpack(archive, member, folder)
                taken[parts[1]] += 1
            if min(taken.values()) == 4:
                break
    return folder / "json_2.1.1"
