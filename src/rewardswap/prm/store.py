"""A collection of trajectories on disk: trajectories.jsonl, and manifest.json that describes it."""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from rewardswap.prm.lines import line_of, read_line
from rewardswap.types import Trajectory
from rewardswap.whole import read_json, write_json, written_whole

FORMAT = 1
TRAJECTORIES = "trajectories.jsonl"
MANIFEST = "manifest.json"
KNOWN = ("lines", "sha256", "policies", "tokenizer_sha256", "environment")
"""What every manifest says."""


@dataclass(frozen=True)
class Collection:
    """Trajectories of one or several policies, and what is known of where they come from."""

    trajectories: tuple[Trajectory, ...]
    shares: tuple[int, ...]
    """Of each trajectory: the number of its policy and temperature in `manifest["shares"]`."""
    manifest: Mapping[str, Any]


def write_collection(folder: Path, collection: Collection) -> None:
    """Write a collection whole or not at all.

    Raises ValueError where `folder` holds files or a number is not finite, and UnwrittenError.
    """
    text = "".join(
        line_of(trajectory, share) + "\n"
        for trajectory, share in zip(collection.trajectories, collection.shares, strict=True)
    )
    manifest = {
        "format": FORMAT,
        "lines": len(collection.trajectories),
        "sha256": hashlib.sha256(text.encode()).hexdigest(),
        **collection.manifest,
    }
    with written_whole(folder) as beside:
        (beside / TRAJECTORIES).write_text(text, encoding="utf-8", newline="\n")
        write_json(beside / MANIFEST, manifest)


def read_collection(folder: Path) -> Collection:
    """Read what `write_collection` wrote.

    Raises ValueError naming the line of a file that is cut or damaged, and an unknown format.
    """
    if not folder.is_dir():
        raise ValueError(f"there is no folder {folder}; `rewardswap prm collect` makes one")
    manifest = read_json(folder / MANIFEST)
    if manifest.get("format") != FORMAT:
        raise ValueError(
            f"{folder} has format {manifest.get('format')!r}, this version reads {FORMAT}; "
            "collect anew"
        )
    missing = [name for name in KNOWN if name not in manifest]
    if missing:
        raise ValueError(f"{folder / MANIFEST} lacks {missing[0]!r}; collect anew")
    path = folder / TRAJECTORIES
    try:
        content = path.read_bytes()
    except OSError as error:
        raise ValueError(f"{path} cannot be read: {error.strerror}") from error
    lines = content.splitlines()
    found = [_read(path, number, line) for number, line in enumerate(lines, start=1)]
    if len(found) != manifest["lines"]:
        raise ValueError(
            f"{path} ends behind line {len(found)}, its manifest counts {manifest['lines']}"
        )
    if hashlib.sha256(content).hexdigest() != manifest["sha256"]:
        raise ValueError(f"{path} has other lines than its manifest says, though each is whole")
    return Collection(tuple(t for t, _ in found), tuple(share for _, share in found), manifest)


def _read(path: Path, number: int, line: bytes) -> tuple[Trajectory, int]:
    try:
        return read_line(line.decode("utf-8"))
    except ValueError as error:
        raise ValueError(f"line {number} of {path} is cut or damaged: {error}") from error


def turn_limit_of(collection: Collection) -> int:
    """The turn cap of the collection's environment, in turns; ValueError where it says none."""
    environment = collection.manifest["environment"]
    limit = environment.get("turn_limit") if isinstance(environment, Mapping) else None
    if type(limit) is not int or limit < 1:
        raise ValueError(f"{MANIFEST} of the collection has no environment.turn_limit, in turns")
    return limit


def first_policy(collection: Collection) -> tuple[str, object]:
    """Name and sha256 of the weights of the first policy; ValueError where it says none."""
    policies = collection.manifest["policies"]
    first = policies[0] if isinstance(policies, list) and policies else None
    if not isinstance(first, Mapping) or not isinstance(first.get("model"), str):
        raise ValueError(f"{MANIFEST} of the collection names no policy; collect anew")
    return first["model"], first.get("weights_sha256")


def task_hashes(tasks: Sequence[str]) -> list[str]:
    """sha256 of each task id, each once and sorted: 16 hexadecimal digits."""
    return sorted({hashlib.sha256(task.encode()).hexdigest()[:16] for task in tasks})
