"""What is released: sdist and wheel with every file of the package, the version from one place."""

import subprocess
import sys
import zipfile
from email import message_from_bytes
from pathlib import Path

import pytest

from rewardswap.version import VERSION

ROOT = Path(__file__).parents[1]
PACKAGE = ROOT / "src" / "rewardswap"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> zipfile.ZipFile:
    """The wheel as it is built from the sdist."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, ROOT],
        check=True,
        capture_output=True,
    )
    (path,) = folder.glob("*.whl")
    return zipfile.ZipFile(path)


def test_every_file_of_the_package_is_in_the_wheel(wheel: zipfile.ZipFile) -> None:
    there = {name.removeprefix("rewardswap/") for name in wheel.namelist()}
    files = (path for path in PACKAGE.rglob("*") if path.is_file())
    wanted = {
        path.relative_to(PACKAGE).as_posix() for path in files if "__pycache__" not in path.parts
    }
    assert wanted - there == set()


def test_the_wheel_says_version_command_and_licence(wheel: zipfile.ZipFile) -> None:
    parts = {Path(name).name: name for name in wheel.namelist() if ".dist-info/" in name}
    said = message_from_bytes(wheel.read(parts["METADATA"]))
    assert said["Version"] == VERSION
    assert said["License-Expression"] == "Apache-2.0"
    assert b"rewardswap = rewardswap.cli:main" in wheel.read(parts["entry_points.txt"])
    assert "LICENSE" in parts


def test_the_citation_has_the_version() -> None:
    lines = (ROOT / "CITATION.cff").read_text(encoding="utf-8").splitlines()
    assert f"version: {VERSION}" in lines
