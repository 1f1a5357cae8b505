"""A file out of an archive: `extract(filter=...)` is not there before Python 3.11.4."""

import tarfile
from pathlib import Path


def unpack(archive: tarfile.TarFile, member: tarfile.TarInfo, folder: Path) -> None:
    """Write one file of an archive below a folder."""
    content = archive.extractfile(member)
    assert content is not None
    path = folder / member.name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(content.read())
