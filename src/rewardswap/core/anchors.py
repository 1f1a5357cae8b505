"""Which turns of a task were taken in the same state: GiGPO's step groups (arXiv:2505.10978)."""

from collections.abc import Sequence
from difflib import SequenceMatcher

import torch
from jaxtyping import Int
from torch import Tensor


def anchor_ids(task: Sequence[str], state_key: Sequence[str]) -> Int[Tensor, "M"]:
    """Ids of the distinct pairs (task, state key), numbered by first occurrence.

    Raises ValueError for lists of different lengths.
    """
    pairs = _pairs(task, state_key)
    ids: dict[tuple[str, str], int] = {}
    return torch.tensor([ids.setdefault(pair, len(ids)) for pair in pairs])


def similar_anchor_ids(
    task: Sequence[str], state_key: Sequence[str], threshold: float
) -> Int[Tensor, "M"]:
    """Ids of clusters of similar state keys of one task, numbered by first occurrence.

    Greedy first fit (verl-agent's): a key joins the first cluster of its task whose first member
    it resembles. Raises ValueError for lists of different lengths or a threshold outside (0, 1).
    """
    clusters: dict[str, list[tuple[str, int]]] = {}
    ids: list[int] = []
    for name, key in _pairs(task, state_key):
        own = clusters.setdefault(name, [])
        found = next((i for first, i in own if are_similar(key, first, threshold)), None)
        if found is None:
            found = sum(len(members) for members in clusters.values())
            own.append((key, found))
        ids.append(found)
    return torch.tensor(ids)


def are_similar(first: str, second: str, threshold: float) -> bool:
    """Whether the matching-blocks ratio of two texts (Ratcliff-Obershelp) reaches the threshold.

    Raises ValueError for a threshold outside (0, 1).
    """
    if not 0 < threshold < 1:
        raise ValueError(f"the similarity threshold must be inside (0, 1), got {threshold}")
    return SequenceMatcher(None, first, second).ratio() >= threshold


def _pairs(task: Sequence[str], state_key: Sequence[str]) -> list[tuple[str, str]]:
    if len(task) != len(state_key):
        raise ValueError(f"{len(task)} tasks and {len(state_key)} state keys: need one of each")
    return list(zip(task, state_key, strict=True))
