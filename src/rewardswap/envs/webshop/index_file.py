"""Arrays in a file that is only used if it is complete and was made for the same thing.

A file is eight letters, the length and checksum of a description, the description in JSON and the
arrays, each at a multiple of 64 bytes. The description has a checksum of each array.
"""

import json
import struct
import zlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from rewardswap.envs.webshop.atomic import replacing

MAGIC = b"rswindex"
HEAD = struct.Struct("<8sII")
ALIGNMENT = 64


def write_arrays(path: Path, facts: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> None:
    """Writes facts, which must be JSON, and one-dimensional arrays of numbers."""
    arrays = {
        name: array.astype(array.dtype.newbyteorder("<"), copy=False)
        for name, array in arrays.items()
    }
    layout = {
        name: [array.dtype.str, len(array), zlib.crc32(array.data)]
        for name, array in arrays.items()
    }
    description = json.dumps({"facts": facts, "arrays": layout}).encode()
    with replacing(path) as file:
        file.write(HEAD.pack(MAGIC, len(description), zlib.crc32(description)))
        file.write(description)
        for array in arrays.values():
            file.write(bytes(-file.tell() % ALIGNMENT))
            file.write(array.data)


def read_arrays(path: Path, facts: Mapping[str, Any]) -> dict[str, NDArray[Any]] | None:
    """Maps the arrays of a file; None if it is missing, damaged, cut short or of other facts.

    It is read once for the checksums (0.7 s per GB, and from then on the file is in memory).
    """
    try:
        size = path.stat().st_size
        with path.open("rb") as file:
            magic, length, checksum = HEAD.unpack(file.read(HEAD.size))
            description = file.read(length)
    except (OSError, struct.error):
        return None
    if magic != MAGIC or len(description) < length or zlib.crc32(description) != checksum:
        return None
    found = json.loads(description)
    if found["facts"] != facts:
        return None
    places = []
    end = HEAD.size + length
    for dtype, count, _ in found["arrays"].values():
        start = end + -end % ALIGNMENT
        end = start + count * np.dtype(dtype).itemsize
        places.append(slice(start, end))
    if size != end:
        return None
    content = np.memmap(path, dtype=np.uint8, mode="r").view(np.ndarray)
    arrays = {}
    for place, (name, (dtype, _, checksum)) in zip(places, found["arrays"].items(), strict=True):
        if zlib.crc32(content[place].data) != checksum:
            return None
        arrays[name] = content[place].view(dtype)
    return arrays
