"""Names and shapes of weights, for engines that hold a copy of the model they were built from."""

from collections.abc import Mapping
from pathlib import Path

from safetensors import safe_open

Shapes = dict[str, tuple[int, ...]]

HEAD = "lm_head.weight"
"""Tied to the embedding it may be given or left out."""


def shapes_in(folder: Path) -> Shapes:
    """Shapes of a folder's weights, from the headers of its safetensors files.

    Raises ValueError for a folder without any.
    """
    files = sorted(folder.glob("*.safetensors"))
    if not files:
        raise ValueError(f"there are no safetensors files in {folder} to take weights from")
    shapes: Shapes = {}
    for path in files:
        with safe_open(path, framework="pt") as file:
            shapes |= {n: tuple(file.get_slice(n).get_shape()) for n in file.keys()}  # noqa: SIM118
    return shapes


def refuse_other_shapes(
    given: Mapping[str, tuple[int, ...]], model: Mapping[str, tuple[int, ...]], *, tied: bool
) -> None:
    """Raise ValueError for a weight that is missing, unknown, or of another shape than the model's.

    `tied`: the head is the embedding.
    """
    free = {HEAD} if tied else set()
    for name in sorted((given.keys() ^ model.keys()) - free):
        wrong = "is missing" if name in model else "is not one of the model's"
        raise ValueError(f"weight {name!r} {wrong}; give all weights of the model and no others")
    for name in given.keys() & model.keys():
        if given[name] != model[name]:
            raise ValueError(
                f"weight {name!r} has the shape {list(given[name])}, not {list(model[name])}"
            )
