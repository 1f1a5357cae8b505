"""Gradient checkpointing: the same bits of less memory, in evaluation mode."""

from typing import Any

import pytest
import torch
from torch import Tensor, nn

from made import made_group, small_llama
from rewardswap.models.batching import Batch, TokenScores, collate
from rewardswap.models.critic import Critic, ValueModel
from rewardswap.models.policy import Policy
from training import parameters


def optimizer(model: nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def llama(dropout: float = 0.0) -> Any:
    model = small_llama()
    for layer in model.model.layers:
        layer.self_attn.attention_dropout = dropout
    return model


def learner(kind: str, *, on: bool, dropout: float = 0.0) -> Any:
    settings: Any = {"make_optimizer": optimizer, "gradient_checkpointing": on}
    if kind == "policy":
        return Policy(llama(dropout), **settings)
    return Critic(ValueModel(llama(dropout)), **settings)


def squares(said: Any, batch: Batch) -> tuple[Tensor, dict[str, float]]:
    """Of log-probs or of values away from 1, so that a head of zeros has a gradient."""
    said = said.logprob if isinstance(said, TokenScores) else said
    return ((said - 1) ** 2)[batch.action_mask].sum(), {}


@pytest.mark.parametrize("dropout", [0.0, 0.5])
@pytest.mark.parametrize("kind", ["policy", "critic"])
def test_updates_are_equal_to_the_bit(kind: str, dropout: float) -> None:
    """Dropout that the model's configuration names stays off, checkpointed or not."""
    batch = collate([made_group(outcomes=(0.0, 1.0, 1.0))])
    found = []
    for on in (False, True):
        trained = learner(kind, on=on, dropout=dropout)
        for _ in range(3):
            metrics = trained.step(batch, squares)
        found.append((parameters(trained), metrics))
    assert torch.equal(found[0][0], found[1][0])
    assert found[0][1] == found[1][1]


def kept_numbers(kind: str, *, on: bool) -> int:
    """Numbers that the graph of one step keeps for its backward pass, parameters not counted."""
    kept = 0

    def keep(tensor: Tensor) -> Tensor:
        nonlocal kept
        kept += 0 if isinstance(tensor, nn.Parameter) else tensor.numel()
        return tensor

    trained = learner(kind, on=on)
    with torch.autograd.graph.saved_tensors_hooks(keep, lambda tensor: tensor):
        trained.step(collate([made_group()]), squares)
    return kept


@pytest.mark.parametrize("kind", ["policy", "critic"])
def test_far_less_is_kept_for_the_backward_pass(kind: str) -> None:
    assert 3 * kept_numbers(kind, on=True) < kept_numbers(kind, on=False)


def test_a_layer_runs_again_in_the_backward_pass_only() -> None:
    policy, batch = learner("policy", on=True), collate([made_group()])
    runs = []
    layer: Any = policy.model.model.layers[0].mlp
    layer.register_forward_pre_hook(lambda *_: runs.append(torch.is_grad_enabled()))
    policy.score(batch)
    assert runs == [False]
    policy.step(batch, squares)
    assert runs == [False, True, True]
    assert all("forward" not in vars(module) for module in policy.model.modules())
    assert not any(module.training for module in policy.model.modules())


def test_a_model_without_such_layers_is_refused() -> None:
    with pytest.raises(ValueError, match="gradient_checkpointing finds no layer in Linear"):
        Policy(nn.Linear(2, 2), make_optimizer=optimizer, gradient_checkpointing=True)
