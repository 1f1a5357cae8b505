"""Weights reach a module whole or not at all, from a folder or from a trainer."""

from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors.torch import save_file
from transformers import LlamaConfig, LlamaForCausalLM

from made import small_llama
from rewardswap.rollout.weights import load_weights, named_weights


def tied(seed: int) -> Any:
    config = LlamaConfig(
        vocab_size=30,
        hidden_size=16,
        intermediate_size=32,
        num_hidden_layers=1,
        num_attention_heads=2,
        max_position_embeddings=64,
        tie_word_embeddings=True,
    )
    torch.manual_seed(seed)
    return LlamaForCausalLM(config)


def state(model: Any) -> dict[str, torch.Tensor]:
    return {name: value.clone() for name, value in model.state_dict().items()}


def same(one: Any, other: Any) -> bool:
    return all(torch.equal(value, other[name]) for name, value in one.items())


@pytest.mark.parametrize("make", [small_llama, tied])
@pytest.mark.parametrize("by", ["folder", "shards", "iterator"])
def test_all_weights_arrive(make: Any, by: str, tmp_path: Path) -> None:
    old, new = make(0), make(1)
    assert not same(state(old), state(new))
    new.save_pretrained(tmp_path, max_shard_size="5KB" if by == "shards" else "5GB")
    assert len(list(tmp_path.glob("*.safetensors"))) > 1 or by != "shards"
    weights = iter(new.state_dict().items()) if by == "iterator" else tmp_path
    load_weights(old, weights)
    assert same(state(old), state(new))


def test_its_own_weights_change_nothing() -> None:
    model = small_llama()
    before = state(model)
    load_weights(model, model.state_dict().items())
    assert same(before, state(model))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s.pop("model.norm.weight"), "weight 'model.norm.weight' is missing, and 0 more"),
        (lambda s: s.update(extra=torch.zeros(1)), "weight 'extra' is not one of LlamaForCausalLM"),
        (
            lambda s: s.update({"model.norm.weight": torch.zeros(3)}),
            r"weight 'model.norm.weight' has the shape \[3\], not \[16\]",
        ),
    ],
)
def test_what_does_not_fit_is_refused_and_nothing_is_written(change: Any, message: str) -> None:
    model, given = small_llama(0), state(small_llama(1))
    before = state(model)
    change(given)
    with pytest.raises(ValueError, match=message):
        load_weights(model, given.items())
    assert same(before, state(model))


def test_a_folder_without_weights_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=f"no safetensors files in {tmp_path}"):
        named_weights(tmp_path)
    save_file({"a": torch.ones(2)}, tmp_path / "model.safetensors")
    assert named_weights(tmp_path)["a"].tolist() == [1, 1]
