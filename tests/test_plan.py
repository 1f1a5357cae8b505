"""Formulas of a plan, by values worked out by hand."""

import math
from dataclasses import replace
from unittest.mock import patch

import pytest
import torch
from transformers import MambaConfig, MambaForCausalLM

from rewardswap.plan.compute import forward_flops, informative_share, training_passes
from rewardswap.plan.learned import Models
from rewardswap.plan.lengths import Lengths, TurnLength, rows_of_lengths
from rewardswap.plan.memory import (
    activation_bytes,
    adapter_bytes,
    branch_bytes,
    cache_bytes,
    cache_bytes_per_token,
    gradient_bytes,
    growing_bytes,
    head_gradient_bytes,
    layer_bytes,
    logit_bytes,
    master_bytes,
    moment_bytes,
    passing_gradient_bytes,
    reading_bytes,
    replay_bytes,
    sampling_bytes,
    step_bytes,
    weight_bytes,
)
from rewardswap.plan.shapes import PUBLISHED, ModelShape, read_blueprint, shape_of
from rewardswap.policy_config import PolicyConfig
from rewardswap.recipes import RECIPES

SMALL = ModelShape(
    layers=2,
    hidden=8,
    heads=4,
    kv_heads=2,
    head_dim=2,
    inner=10,
    vocabulary=100,
    positions=64,
    parameters=1000,
    multiplied=500,
    head_norms=False,
)
PARAMETERS = {
    "Qwen2.5-0.5B-Instruct": 494_032_768,
    "Qwen2.5-1.5B-Instruct": 1_543_714_304,
    "Qwen2.5-3B-Instruct": 3_085_938_688,
    "Qwen2.5-7B-Instruct": 7_615_616_512,
    "Qwen3-0.6B": 596_049_920,
    "Qwen3-1.7B": 1_720_574_976,
    "Qwen3-4B": 4_022_468_096,
    "Qwen3-8B": 8_190_735_360,
    "Llama-3.2-1B-Instruct": 1_235_814_400,
    "Llama-3.2-3B-Instruct": 3_212_749_824,
    "SmolLM2-135M-Instruct": 134_515_008,
}
"""Weights as the makers count them, tied ones once."""


def test_two_siblings_of_a_hard_task_seldom_differ() -> None:
    # faults.md 42: 1 - .18^2 - .82^2 = 1 - .0324 - .6724
    assert informative_share(0.18, 2) == pytest.approx(0.2952)


def test_the_share_of_informative_groups() -> None:
    assert informative_share(0.5, 2) == 0.5
    assert informative_share(0.5, 3) == 0.75
    assert informative_share(0.3, 1) == pytest.approx(0.0)  # one sibling has nobody to differ from
    assert informative_share(0.0, 8) == informative_share(1.0, 8) == 0.0
    assert informative_share(0.2, 5) == pytest.approx(informative_share(0.8, 5))


@pytest.mark.parametrize("name", PUBLISHED)
def test_published_shapes_have_the_published_number_of_weights(name: str) -> None:
    model = read_blueprint(f"somewhere/{name}").build()
    assert all(weight.is_meta for weight in model.parameters())
    assert shape_of(model).parameters == PARAMETERS[name]


def test_the_cache_of_a_published_model() -> None:
    shape = shape_of(read_blueprint("Qwen2.5-1.5B-Instruct").build())
    # keys and values x 28 layers x 2 heads x 128 x 2 bytes
    assert cache_bytes_per_token(shape, 2) == 28_672
    assert cache_bytes(shape, 2, room=1000, live=3) == 86_016_000


def test_weights_masters_and_gradients() -> None:
    assert weight_bytes(1000, 2) == 2000
    assert master_bytes(1000) == gradient_bytes(1000) == 4000
    assert passing_gradient_bytes(1000) == 2000
    assert step_bytes(1000, on_cuda=True) == 4000
    assert step_bytes(1000, on_cuda=False) == 0


def test_moments() -> None:
    # adamw: 8 a number, a counter of 4 a tensor
    assert moment_bytes([10, 90], "adamw") == 8 * 100 + 2 * 4
    # adamw_8bit: 4097 numbers are 17 blocks of 256: 2 x 4097 + 17 x 8; 10 are too few: 80; tables
    assert moment_bytes([4097, 10], "adamw_8bit") == 8194 + 136 + 80 + 2048
    large = 256 * 10**6
    assert moment_bytes([large], "adamw_8bit") / large == pytest.approx(2.03, abs=0.002)


def test_activations_of_a_layer() -> None:
    # float32: norms 16 x 12, five of 8 and four of 10 and a mask of 6 at 4 bytes, log-sums 4 x 4
    assert layer_bytes(SMALL, 4, longest=6) == 192 + (40 + 40 + 6) * 4 + 16
    # bfloat16: norms 16 x 8, the rest at 2 bytes
    assert layer_bytes(SMALL, 2, longest=6) == 128 + (40 + 40 + 6) * 2 + 16
    # an adapter of rank 3 beside: 7 x 3 float32; inputs 5 x 8 + 8 + 10 as float32 where rounded
    assert adapter_bytes(SMALL, 4, rank=3) == 84
    assert adapter_bytes(SMALL, 2, rank=3) == 84 + 4 * 58


def test_activations_of_a_micro_batch() -> None:
    layer, ends = layer_bytes(SMALL, 4, longest=6), 12 * 8
    assert activation_bytes(SMALL, 4, tokens=5, longest=6) == 5 * (2 * layer + ends)
    # inputs of both layers, all of one
    kept = 5 * (2 * 8 * 4 + layer + ends)
    assert activation_bytes(SMALL, 4, tokens=5, longest=6, checkpointing=True) == kept


def test_logits() -> None:
    assert logit_bytes(SMALL, 4, action_tokens=3, head_logits=300) == 300 * 20
    assert logit_bytes(SMALL, 2, action_tokens=3, head_logits=300) == 300 * 22
    # in pieces of 2 tokens
    assert logit_bytes(SMALL, 4, action_tokens=9, head_logits=250) == 200 * 8
    assert logit_bytes(SMALL, 2, action_tokens=9, head_logits=250) == 200 * 10
    assert head_gradient_bytes(SMALL, 4, trained=True) == 3200
    assert head_gradient_bytes(SMALL, 4, trained=False) == 0


def test_reading_and_sampling() -> None:
    # feed-forward 3 x 10 a token against 2 x 8 + 2 x 4 and 2 x 7 x 8 of keys and values again
    new = 5
    attention = new * 24 + 2 * 7 * 8
    expected = 3 * (attention * 4 + new * 8 * 16 + new * 7 * 4)
    assert reading_bytes(SMALL, 4, new=new, context=7, live=3) == expected
    # a single token reads the shared keys as they are
    expected = 3 * (30 * 4 + 8 * 16 + 7 * 4)
    assert reading_bytes(SMALL, 4, new=1, context=7, live=3) == expected
    assert sampling_bytes(SMALL, 2, live=3) == 300 * 34
    assert growing_bytes(300) == 100


def test_branch_and_buffer() -> None:
    assert branch_bytes(2000, rounded=1000, moments=8004) == 2000 + 4000 + 8004
    assert replay_bytes(10, tokens=20.0, action_tokens=5.0) == 10 * (160 + 40)


def test_flops() -> None:
    # 2 x (500 x 10 + 800 x 4) + 4 x 2 layers x 4 heads x 2 x 3 tokens seen x 10
    assert forward_flops(SMALL, tokens=10.0, action_tokens=4.0, context=3.0) == 16_400 + 1_920
    assert training_passes(adapter=False, checkpointing=False) == 3
    assert training_passes(adapter=False, checkpointing=True) == 4
    assert training_passes(adapter=True, checkpointing=False) == 2


def turns(*lengths: tuple[int, int, bool]) -> tuple[TurnLength, ...]:
    return tuple(TurnLength(*length) for length in lengths)


MERGED = turns((10, 2, False), (5, 3, True), (4, 1, True))
APART = turns((10, 2, False), (12, 3, False), (14, 1, False))


def test_rows_of_an_episode() -> None:
    assert rows_of_lengths(MERGED) == [25]
    assert rows_of_lengths(APART) == [12, 15, 15]
    assert rows_of_lengths(turns((10, 2, False), (5, 3, True), (9, 1, False))) == [20, 10]


def test_means_of_lengths() -> None:
    lengths = Lengths((MERGED, APART))
    assert lengths.turns == 3
    assert lengths.action_tokens == 6
    assert lengths.action == 2
    assert lengths.tokens == (25 + 42) / 2
    assert lengths.rows == 2
    assert (lengths.longest_row, lengths.longest_read) == (25, 14)
    assert (lengths.opening, lengths.following) == (10, (5 + 4 + 12 + 14) / 4)
    assert lengths.seen == (25**2 + 12**2 + 15**2 + 15**2) / 2 / 67
    assert lengths.cut(1).tokens == 12
    assert lengths.cut(1).following == 0
    assert lengths.with_actions(7).action_tokens == 21
    assert lengths.thinking(2, most=4).action_tokens == (4 + 4 + 3 + 4 + 4 + 3) / 2


def test_room_in_the_cache_grows_by_halves() -> None:
    # turn 0 reads 10: 13; turn 1 reads 1 + 5 behind 11: 20, but at least 13 + 6 = 19; turn 2 reads
    # 1 + 4 behind 19: 27, and 20 + 10 is more
    assert Lengths((MERGED,)).room(3) == 30
    # 10 + 3, 12 + 3 (at least 13 + 6), 14 + 3
    assert Lengths((APART,)).room(3) == 19
    assert Lengths((MERGED[:1],)).room(3) == 13


def test_a_tiny_share_never_rounds_to_nothing() -> None:
    assert math.isclose(informative_share(1e-3, 16), 1 - (1 - 1e-3) ** 16, rel_tol=1e-9)


def test_a_model_that_is_no_decoder_of_the_kind_is_refused() -> None:
    """Sizes are never guessed: what a configuration does not name is an error."""
    settings = {"vocab_size": 30, "hidden_size": 16, "state_size": 4, "num_hidden_layers": 1}
    with torch.device("meta"):
        model = MambaForCausalLM(MambaConfig(**settings))
    with pytest.raises(ValueError, match="MambaForCausalLM names no num_attention_heads"):
        shape_of(model)


def test_an_adapter_is_planned_without_a_byte_of_it() -> None:
    run = replace(RECIPES["demo-grpo"](), policy=PolicyConfig(lora_rank=4))
    with patch.object(torch.nn.init, "kaiming_uniform_", autospec=True) as drawn:
        Models.of(run, read_blueprint("Qwen2.5-7B-Instruct"))
    assert drawn.call_count >= 7 * 28  # an adapter of each layer that has one
    assert all(call.args[0].is_meta for call in drawn.call_args_list)
