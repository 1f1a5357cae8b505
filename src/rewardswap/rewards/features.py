"""What a frozen language model says of every turn: hidden states at one token per turn.

Letters: S turns of all trajectories together, F features, D width of the backbone.
"""

import copy
import hashlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import torch
from jaxtyping import Float
from torch import Tensor, nn

from rewardswap.models.batching import rows_of
from rewardswap.models.recomputing import layer_inputs
from rewardswap.models.shards import is_sharded
from rewardswap.ranks import ALONE, Ranks, share
from rewardswap.rewards.cache import FeatureCache
from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.types import IntArray, Trajectory


@dataclass(frozen=True)
class TurnFeatures:
    """Features of ragged trajectories, turn after turn, trajectory after trajectory."""

    values: Float[Tensor, "S F"]
    lengths: tuple[int, ...]
    """Turns of each trajectory; they sum to S."""

    def of(self, trajectories: Sequence[int]) -> "TurnFeatures":
        """The features of the given trajectories, in the given order."""
        parts = torch.split(self.values, list(self.lengths))
        return TurnFeatures(
            values=torch.cat([parts[n] for n in trajectories]),
            lengths=tuple(self.lengths[n] for n in trajectories),
        )


@dataclass(frozen=True, slots=True)
class _Reading:
    """A row of tokens and the places where turns are read: (turn number in S, position)."""

    tokens: IntArray
    places: tuple[tuple[int, int], ...]


def frozen_copy(model: nn.Module) -> nn.Module:
    """The trunk of a causal language model as a float32 copy that no training changes."""
    return freeze(copy.deepcopy(_trunk(model)))


def freeze(model: nn.Module) -> nn.Module:
    """Take a module over as a backbone: its trunk in float32, for evaluation, without gradient."""
    return _trunk(model).float().eval().requires_grad_(False)


def _trunk(model: nn.Module) -> nn.Module:
    trunk: nn.Module = model.get_decoder() if hasattr(model, "get_decoder") else model  # type: ignore[operator]
    return trunk


def fingerprint(backbone: nn.Module) -> str:
    """sha256 of the names, shapes and bytes of all weights, in hexadecimal digits."""
    digest = hashlib.sha256()
    for name, value in sorted(backbone.state_dict().items()):
        array = value.detach().cpu().contiguous().view(-1).view(torch.uint8).numpy()
        digest.update(f"{name} {value.dtype} {list(value.shape)}\n".encode())
        digest.update(array.tobytes())
    return digest.hexdigest()


def turn_features(
    trajectories: Sequence[Trajectory],
    backbone: nn.Module,
    config: ProcessRewardConfig,
    *,
    cache: FeatureCache | None = None,
    backbone_sha256: str | None = None,
    ranks: Ranks = ALONE,
) -> TurnFeatures:
    """Hidden states of every turn, read where `config.features` says, on the CPU.

    Rows are padded on the right, where a causal model cannot see; batches hold rows of like length
    within `config.tokens_per_batch`. With a `cache` the same bits come from disk where they are
    there; `backbone_sha256` is the backbone's `fingerprint`, computed where it is not given.
    Batches are divided among `ranks`, each of which calls this with the same trajectories. Raises
    ValueError naming the task when a feature is not finite.
    """
    lengths = tuple(len(trajectory.turns) for trajectory in trajectories)
    if not lengths:
        raise ValueError("no trajectories to read features from")
    model = _model_key(backbone, config, backbone_sha256) if cache is not None else ""

    def read(batch: Sequence[_Reading]) -> Tensor:
        compute = partial(_features, batch, backbone, config)
        return compute() if cache is None else cache.read_or_compute(_key(model, batch), compute)

    batches = list(_batches(list(_readings(trajectories, config)), config.tokens_per_batch))
    if ranks.size == 1 or len(batches) == 1:
        found = [read(batch) for batch in batches]
    else:
        found = _divided(batches, read, ranks, together=is_sharded(backbone))
    order = [turn for batch in batches for reading in batch for turn, _ in reading.places]
    values = torch.cat(found)[torch.tensor(order).argsort()]
    _refuse_not_finite(values, trajectories)
    return TurnFeatures(values, lengths)


def _divided(
    batches: Sequence[list[_Reading]],
    read: Callable[[Sequence[_Reading]], Tensor],
    ranks: Ranks,
    *,
    together: bool,
) -> list[Tensor]:
    """Features of all batches, each read by one rank.

    Ranks that need each other (`together`) read equally often: what is read once more counts
    nothing.
    """
    own = [read(batch) for batch in share(batches, ranks)]
    if together and len(own) < -(-len(batches) // ranks.size):
        read(batches[0])
    parts = ranks.gather(own)
    return [parts[n % ranks.size][n // ranks.size] for n in range(len(batches))]


def _features(
    batch: Sequence[_Reading], backbone: nn.Module, config: ProcessRewardConfig
) -> Float[Tensor, "S F"]:
    """Features of the turns of a batch, row after row."""
    places = [(b, place) for b, reading in enumerate(batch) for _, place in reading.places]
    rows, positions = torch.tensor(places, dtype=torch.int64).unbind(dim=1)
    hidden = _hidden_states(batch, backbone, config)
    return torch.cat([layer[rows, positions] for layer in hidden], dim=-1).cpu()


def _model_key(backbone: nn.Module, config: ProcessRewardConfig, sha256: str | None) -> str:
    """What decides features besides tokens: the backbone, what is read of it, what computes it."""
    known: Any = getattr(backbone, "config", None)
    layout = known.to_json_string() if hasattr(known, "to_json_string") else type(backbone).__name__
    device = next(backbone.parameters()).device.type
    machine = f"{device} torch {torch.__version__} threads {torch.get_num_threads()}"
    return f"{sha256 or fingerprint(backbone)} {layout} {config.layers} {machine}"


def _key(model: str, batch: Sequence[_Reading]) -> str:
    """sha256 of the model's key, the token ids of a batch, and the places that are read."""
    digest = hashlib.sha256(model.encode())
    for reading in batch:
        places = [place for _, place in reading.places]
        digest.update(f"\n{places} of {len(reading.tokens)} ".encode())
        digest.update(reading.tokens.astype(np.int64).tobytes())
    return digest.hexdigest()


def _readings(
    trajectories: Sequence[Trajectory], config: ProcessRewardConfig
) -> Iterator[_Reading]:
    """Rows of all trajectories; a turn is read once, in its own row or in the next turn's."""
    offset = 0
    for n, trajectory in enumerate(trajectories):
        rows = rows_of(trajectory, n)
        final = len(trajectory.turns) - 1
        for row in rows:
            tokens = row.tokens
            if config.features == "action":
                ends = [(k, start + len(trajectory.turns[k].action_ids)) for k, start in row.spans]
            else:
                ends = [(k - 1, start) for k, start in row.spans if k > 0]
                if row.spans[-1][0] == final:
                    tokens = np.concatenate([tokens, trajectory.final_context_ids])
                    ends.append((final, len(tokens)))
            if ends:
                yield _Reading(tokens, tuple((offset + k, end - 1) for k, end in ends))
        offset += final + 1


def _batches(readings: Sequence[_Reading], tokens: int) -> Iterator[list[_Reading]]:
    """Readings by length, cut so that rows x longest row stays within `tokens`, if one row does."""
    batch: list[_Reading] = []
    for reading in sorted(readings, key=lambda reading: len(reading.tokens)):
        if batch and (len(batch) + 1) * len(reading.tokens) > tokens:
            yield batch
            batch = []
        batch.append(reading)
    yield batch


@torch.no_grad()
def _hidden_states(
    batch: Sequence[_Reading], backbone: nn.Module, config: ProcessRewardConfig
) -> tuple[Float[Tensor, "B T D"], ...]:
    device = next(backbone.parameters()).device
    lengths = torch.tensor([len(reading.tokens) for reading in batch])
    tokens = torch.zeros(len(batch), int(lengths.max()), dtype=torch.int64)
    for b, reading in enumerate(batch):
        tokens[b, : len(reading.tokens)] = torch.from_numpy(reading.tokens)
    mask = torch.arange(tokens.shape[1]) < lengths[:, None]
    every = config.layers == "all"
    parted = every and is_sharded(backbone)
    with ExitStack() as stack:
        inputs = stack.enter_context(layer_inputs(backbone)) if parted else []
        output: Any = backbone(
            input_ids=tokens.to(device),
            attention_mask=mask.to(device),
            use_cache=False,
            output_hidden_states=every and not parted,
        )
    if parted:  # FSDP2 gives modules classes of its own, of which transformers records nothing
        return (*inputs, output.last_hidden_state)
    return tuple(output.hidden_states) if every else (output.last_hidden_state,)


def _refuse_not_finite(values: Float[Tensor, "S F"], trajectories: Sequence[Trajectory]) -> None:
    broken = ~torch.isfinite(values).all(dim=1)
    if not broken.any():
        return
    turn = int(torch.nonzero(broken)[0])
    for trajectory in trajectories:
        if turn < len(trajectory.turns):
            raise ValueError(
                f"the backbone's hidden state of task {trajectory.task.id!r}, episode "
                f"{trajectory.index}, turn {turn} is not finite ({int(broken.sum())} turns in "
                "all); check the backbone's weights and the token ids"
            )
        turn -= len(trajectory.turns)
