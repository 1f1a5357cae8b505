"""A model that learns by optimizer steps over micro-batches, and can be branched and restored."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor, nn

from rewardswap.models.batching import Batch, microbatches
from rewardswap.models.packing import prove_packing
from rewardswap.models.precision import MasterWeights
from rewardswap.models.recomputing import recomputable_layers, recomputing

Metrics = dict[str, float]


@dataclass(frozen=True)
class Snapshot:
    """Everything that comes back, bit for bit, when a branch is thrown away."""

    model: Mapping[str, Tensor]
    """Parameters and buffers, the frozen ones left out: they are the same in every branch."""
    masters: Sequence[Tensor]
    """float32 masters of parameters that are rounded in the model."""
    optimizer: Mapping[str, Any]
    version: int
    random_state: Tensor


class Learner:
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
    ) -> None:
        self.model = model
        self._recomputed = recomputable_layers(model) if gradient_checkpointing else []
        self.make_optimizer = make_optimizer
        self.masters = MasterWeights(model)
        self.optimizer = make_optimizer(self.masters)
        self.gradient_clip = gradient_clip
        self.tokens_per_microbatch = tokens_per_microbatch
        self.packing = packing
        self.version = 0
        model.eval()
        if packing:
            prove_packing(self.trunk)

    @property
    def trunk(self) -> nn.Module:
        """The part of the model that reads tokens."""
        raise NotImplementedError

    @property
    def device(self) -> torch.device:
        """Where the parameters are."""
        return next(self.model.parameters()).device

    def _microbatches(
        self, batch: Batch, *, whole_trajectories: bool = False
    ) -> Iterator[Int[Tensor, "R"]]:
        return microbatches(
            batch,
            self.tokens_per_microbatch,
            whole_trajectories=whole_trajectories,
            packing=self.packing,
        )

    def _step(
        self,
        batch: Batch,
        loss: Callable[[Batch], tuple[Tensor, Metrics]],
        *,
        whole_trajectories: bool = False,
    ) -> Metrics:
        """One optimizer step over `batch`, however many micro-batches it takes.

        Weights are fixed on the whole batch, so gradients of micro-batches add. A step whose
        gradient norm is not finite is skipped and counted in `skipped_steps`. An empty batch has
        zero gradient: the optimizer's momentum still moves the model.
        """
        totals: Metrics = {}
        self.masters.reset_gradients(zero=len(batch) == 0)
        for rows in self._microbatches(batch, whole_trajectories=whole_trajectories):
            with recomputing(self._recomputed):
                value, metrics = loss(batch.take(rows).to(self.device))
            value.backward()  # type: ignore[no-untyped-call]
            self.masters.take_gradients()
            for name, number in {**metrics, "loss": float(value.detach())}.items():
                totals[name] = totals.get(name, 0.0) + number
        norm = nn.utils.clip_grad_norm_(self.masters.parameters(), self.gradient_clip)
        finite = bool(torch.isfinite(norm))
        if finite:
            self.optimizer.step()
            self.masters.write()
        totals["gradient_norm"] = float(norm) if finite else 0.0
        totals["gradient_clipped"] = float(finite and float(norm) > self.gradient_clip)
        totals["skipped_steps"] = float(not finite)
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

    def snapshot(self) -> Snapshot:
        """A copy of everything that learning changes, and of the random state."""
        named = self.model.named_parameters(remove_duplicate=False)
        frozen = {name for name, parameter in named if not parameter.requires_grad}
        state = self.model.state_dict()
        return Snapshot(
            model={n: value.detach().clone() for n, value in state.items() if n not in frozen},
            masters=self.masters.copies(),
            optimizer=_copied(self.optimizer.state_dict()),
            version=self.version,
            random_state=torch.get_rng_state(),
        )

    def restore(self, snapshot: Snapshot) -> None:
        """Come back to `snapshot` exactly; the snapshot stays usable."""
        state = self.model.state_dict()
        for name, value in snapshot.model.items():
            state[name].copy_(value)
        self.masters.restore(snapshot.masters)
        self.optimizer = self.make_optimizer(self.masters)
        self.optimizer.load_state_dict(_copied(snapshot.optimizer))
        self.version = snapshot.version
        torch.set_rng_state(snapshot.random_state)


def _copied(state: Any) -> Any:
    """A deep copy of nested optimizer state that shares no tensor with it."""
    if isinstance(state, Tensor):
        return state.detach().clone()
    if isinstance(state, Mapping):
        return {name: _copied(value) for name, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(_copied(value) for value in state)
    return state
