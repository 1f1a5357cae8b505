"""A model that learns by optimizer steps over micro-batches, and can be branched and restored."""

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeVar

import torch
from jaxtyping import Int
from torch import Tensor, nn

from rewardswap.models.batching import Batch, microbatches
from rewardswap.models.host import host_copy
from rewardswap.models.packing import prove_packing
from rewardswap.models.precision import MasterWeights
from rewardswap.models.recomputing import recomputable_layers, recomputing
from rewardswap.models.shards import gathered, is_sharded, parted_like, put, together
from rewardswap.ranks import ALONE, Ranks, share

Metrics = dict[str, float]
T = TypeVar("T")


@dataclass(frozen=True)
class Snapshot:
    """Everything that comes back, bit for bit, when a branch is thrown away."""

    model: Mapping[str, Tensor]
    """Parameters and buffers, each once, the frozen ones left out: they are the same in every
    branch."""
    masters: Sequence[Tensor]
    """float32 masters of parameters that are rounded in the model."""
    optimizer: Mapping[str, Any]
    version: int
    skipped_in_a_row: int
    random_state: Tensor


class Learner(ABC):
    """One model, its optimizer, and the count of its updates."""

    def __init__(
        self,
        model: nn.Module,
        *,
        make_optimizer: Callable[[nn.Module], torch.optim.Optimizer],
        gradient_clip: float = 1.0,
        tokens_per_microbatch: int = 8192,
        gradient_checkpointing: bool = False,
        packing: bool = False,
        ranks: Ranks = ALONE,
    ) -> None:
        self.model = model
        self.ranks = ranks
        self._recomputed = recomputable_layers(model) if gradient_checkpointing else []
        self.make_optimizer = make_optimizer
        self.masters = MasterWeights(model)
        self.optimizer = make_optimizer(self.masters)
        self.gradient_clip = gradient_clip
        self.tokens_per_microbatch = tokens_per_microbatch
        self.packing = packing
        self.version = 0
        self.skipped_in_a_row = 0
        """The last optimizer steps that were skipped, one after another."""
        self.most_skipped: int | None = None
        """So many of them spoil the learner."""
        self.spoiled = False
        model.eval()
        if packing:
            prove_packing(self.trunk)

    @property
    @abstractmethod
    def trunk(self) -> nn.Module:
        """The part of the model that reads tokens."""

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.model.parameters()).device

    @property
    def sharded(self) -> bool:
        """Whether every rank holds a part of the weights alone."""
        return is_sharded(self.model)

    def together(self, compute: Callable[[], T]) -> T:
        """Run `compute` with the whole model at hand."""
        return together(self.model, compute)

    def _microbatches(
        self, batch: Batch, *, whole_trajectories: bool = False
    ) -> Iterator[tuple[Int[Tensor, "R"], bool]]:
        """Rows of this rank's micro-batches, and whether they are its own.

        Ranks of a sharded model run equally often: one that has nothing left runs another's row,
        which counts nothing.
        """
        tokens, ranks = self.tokens_per_microbatch, self.ranks
        if ranks.size > 1:
            tokens = min(tokens, -(-int(batch.lengths.sum()) // ranks.size))
        parts = list(
            microbatches(batch, tokens, whole_trajectories=whole_trajectories, packing=self.packing)
        )
        mine = share(parts, ranks)
        yield from ((rows, True) for rows in mine)
        if self.sharded:
            most = -(-len(parts) // ranks.size)
            yield from ((parts[0][:1], False) for _ in range(most - len(mine)))

    def _step(
        self,
        batch: Batch,
        loss: Callable[[Batch], tuple[Tensor, Metrics]],
        *,
        whole_trajectories: bool = False,
    ) -> Metrics:
        """One optimizer step over `batch`, however many micro-batches it takes.

        Weights are fixed on the whole batch, so gradients of micro-batches add. A step whose
        loss or gradient norm is not finite is skipped and counted in `skipped_steps`; its other
        metrics are 0 where they are not finite. An empty batch has zero gradient: the optimizer's
        momentum still moves the model.
        """
        totals: Metrics = {}
        self.masters.reset_gradients(zero=len(batch) == 0)
        for rows, counted in self._microbatches(batch, whole_trajectories=whole_trajectories):
            part = batch.take(rows) if counted else batch.take(rows).without_weight()
            with recomputing(self._recomputed):
                value, metrics = loss(part.to(self.device))
            value.backward()  # type: ignore[no-untyped-call]
            self.masters.take_gradients()
            if counted:
                _add(totals, {**metrics, "loss": float(value.detach())})
        totals = self._over_ranks(totals)
        norm = nn.utils.clip_grad_norm_(self.masters.parameters(), self.gradient_clip)
        norm = gathered(norm)
        finite = bool(torch.isfinite(norm)) and math.isfinite(totals.get("loss", 0.0))
        self.skipped_in_a_row = 0 if finite else self.skipped_in_a_row + 1
        if self.most_skipped is not None:
            self.spoiled |= self.skipped_in_a_row >= self.most_skipped
        if finite:
            self.optimizer.step()
            self.masters.write()
        else:
            totals = {name: v if math.isfinite(v) else 0.0 for name, v in totals.items()}
        totals["gradient_norm"] = float(norm) if finite else 0.0
        totals["gradient_clipped"] = float(finite and float(norm) > self.gradient_clip)
        totals["skipped_steps"] = float(not finite)
        return totals

    def _over_ranks(self, mine: Metrics) -> Metrics:
        """Sums over all ranks of what this one has added up; gradients add too."""
        if self.ranks.size == 1:
            return mine
        if not self.sharded:  # sharded ones are sums already
            self.masters.add_gradients(self.ranks)
        totals: Metrics = {}
        for part in self.ranks.gather(mine):
            _add(totals, part)
        return totals

    def fresh_optimizer(self, learning_rate: float | None = None) -> None:
        """Forget the optimizer's moments: the explorer starts without the agent's momentum."""
        self.optimizer = self.make_optimizer(self.masters)
        if learning_rate is not None:
            self.set_learning_rate(learning_rate)

    def set_learning_rate(self, learning_rate: float) -> None:
        """The learning rate of the steps that follow."""
        for group in self.optimizer.param_groups:
            group["lr"] = learning_rate

    def state(self) -> Snapshot:
        """Everything that learning changes, and the random state; its tensors are the learner's
        own, until the next step changes them."""
        return Snapshot(
            self._changing(),
            self.masters.apart(),
            self.optimizer.state_dict(),
            self.version,
            self.skipped_in_a_row,
            torch.get_rng_state(),
        )

    def snapshot(self) -> Snapshot:
        """A copy of `state`.

        Of a model on a GPU it is in pinned CPU memory, and takes none of the GPU's.
        """
        state = self.state()
        model, masters, optimizer = host_copy((state.model, state.masters, state.optimizer))
        return replace(state, model=model, masters=masters, optimizer=optimizer)

    def restore(self, snapshot: Snapshot) -> None:
        """Come back to `snapshot` exactly; the snapshot stays usable."""
        state = self._changing()
        for name, value in snapshot.model.items():
            put(value, state[name])
        self.masters.restore(snapshot.masters)
        self.optimizer = self.make_optimizer(self.masters)
        self.optimizer.load_state_dict(self._moments(snapshot.optimizer))
        for moments in self.optimizer.state.values():
            # what lies on the CPU is the snapshot's own until here
            moments.update({n: v.clone() for n, v in moments.items() if _on_cpu(v)})
        self.version = snapshot.version
        self.skipped_in_a_row = snapshot.skipped_in_a_row
        torch.set_rng_state(snapshot.random_state)

    def _moments(self, state: Mapping[str, Any]) -> dict[str, Any]:
        """An optimizer's state, in parts like the weights where these are in parts."""
        weights = [p for group in self.optimizer.param_groups for p in group["params"]]
        parted = {
            number: {name: parted_like(value, weights[number]) for name, value in moments.items()}
            for number, moments in state["state"].items()
        }
        return {**state, "state": parted}

    def _changing(self) -> dict[str, Tensor]:
        """The model's state without frozen parameters, tied ones under their first name."""
        trained = {name for name, p in self.model.named_parameters() if p.requires_grad}
        others = {name for name, _ in self.model.named_parameters(remove_duplicate=False)} - trained
        state = self.model.state_dict()
        return {name: value.detach() for name, value in state.items() if name not in others}


def _add(totals: Metrics, part: Metrics) -> None:
    for name, number in part.items():
        totals[name] = totals.get(name, 0.0) + number


def _on_cpu(value: Any) -> bool:
    return isinstance(value, Tensor) and value.device.type == "cpu"
