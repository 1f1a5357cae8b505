"""LoRA: the adapter alone learns, off it is the reference, merged it is a plain model."""

import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import Tensor
from transformers import AutoModelForCausalLM, LlamaConfig, LlamaForCausalLM

from made import MadePlay, made_group, small_llama
from rewardswap.loops.settings import Batch as Sizes
from rewardswap.loops.settings import RewardSwap
from rewardswap.methods.grpo import GRPO
from rewardswap.models import adapter
from rewardswap.models.adapter import add_adapter, has_adapter, merged_state
from rewardswap.models.batching import Batch, TokenScores, collate
from rewardswap.models.critic import Critic, ValueModel
from rewardswap.models.learner import Metrics
from rewardswap.models.policy import Policy, Reference
from rewardswap.models.precision import round_weights
from rewardswap.policy_config import PolicyConfig
from training import parameters, run_rspo, same_snapshot, trainer_of

pytest.importorskip("peft", reason="the extra `lora` is not installed")


def adapted(targets: tuple[str, ...] = (), *, short: bool = False, model: Any = None) -> Any:
    model = model or small_llama()
    if short:
        round_weights(model)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        add_adapter(model, 4, 8.0, targets)
    return model


def policy_of(model: Any, kind: type[Policy] = Policy, **settings: Any) -> Policy:
    return kind(
        model,
        make_optimizer=lambda m: torch.optim.AdamW(m.parameters(), lr=0.01, weight_decay=0.1),
        **settings,
    )


def log_loss(scores: TokenScores, batch: Batch) -> tuple[Tensor, Metrics]:
    return -scores.logprob.sum(), {}


def trained(**settings: Any) -> Policy:
    policy = policy_of(adapted(**settings))
    for _ in range(3):
        policy.step(collate([made_group()]), log_loss)
    return policy


def test_a_new_adapter_changes_no_bit_and_an_empty_batch_moves_no_frozen_weight() -> None:
    batch = collate([made_group()])
    policy = policy_of(adapted())
    assert torch.equal(policy.score(batch).logprob, policy_of(small_llama()).score(batch).logprob)
    policy.step(batch, log_loss)
    policy.step(batch.take(torch.tensor([], dtype=torch.int64)), log_loss)
    base = small_llama().state_dict()
    now = policy.model.state_dict()
    for name, value in base.items():
        held = now.get(name)
        held = now[name.replace(".weight", ".base_layer.weight")] if held is None else held
        assert torch.equal(held, value)


def test_the_optimizer_has_moments_of_the_adapter_only() -> None:
    policy = trained()
    sizes = {id(p): p.numel() for p in policy.model.parameters() if p.requires_grad}
    assert {id(p) for p in policy.optimizer.state} == set(sizes)
    assert all(".lora_" in name for name, p in policy.model.named_parameters() if p.requires_grad)
    # rank 4 beside seven layers of each of two: q k v o are 16 x 16, gate up down 16 x 32
    assert sum(sizes.values()) == 2 * 4 * (4 * (16 + 16) + 3 * (16 + 32))


def test_targets_get_one_and_others_none() -> None:
    names = [n for n, _ in adapted(("q_proj",)).named_parameters() if ".lora_A" in n]
    assert names == [f"model.layers.{k}.self_attn.q_proj.lora_A.default.weight" for k in range(2)]


def test_off_it_is_the_start_policy_to_the_bit_and_then_on_again() -> None:
    policy, batch = trained(), collate([made_group()])
    learned = policy.score(batch).logprob
    reference = policy_of(policy.model, Reference)
    start = policy_of(small_llama()).score(batch).logprob
    assert torch.equal(reference.score(batch).logprob, start)
    assert not torch.allclose(learned, start)
    assert torch.equal(policy.score(batch).logprob, learned)
    before = parameters(policy)
    policy.step(batch, log_loss)
    assert not torch.equal(parameters(policy), before)


@pytest.mark.parametrize("short", [False, True])
def test_a_branch_keeps_the_adapter_alone_and_comes_back_to_the_bit(short: bool) -> None:
    policy, batch = trained(short=short), collate([made_group()])
    kept = policy.snapshot()
    assert kept.model and all(".lora_" in name for name in kept.model)
    assert kept.masters == []
    policy.fresh_optimizer(0.5)
    policy.step(batch, log_loss)
    assert not same_snapshot(policy.snapshot(), kept)
    policy.restore(kept)
    assert same_snapshot(policy.snapshot(), kept)


@pytest.mark.parametrize(
    "settings", [{}, {"tokens_per_microbatch": 1}, {"head_logits": 60}, {"packing": True}]
)
def test_the_ratio_on_policy_is_one_by_every_path(settings: Any) -> None:
    policy, batch = trained(), collate([made_group(str(n)) for n in range(4)])
    old = policy.score(batch).logprob
    new = policy_of(policy.model, **settings).score(batch).logprob
    torch.testing.assert_close((new - old).exp(), torch.ones_like(old), atol=1e-5, rtol=0)


def test_checkpointed_layers_with_an_adapter_give_the_same_bits() -> None:
    found = []
    for on in (False, True):
        policy = policy_of(adapted(), gradient_checkpointing=on)
        policy.step(collate([made_group()]), log_loss)
        found.append(parameters(policy))
    assert torch.equal(found[0], found[1])


@pytest.mark.parametrize("tied", [False, True])
def test_merged_it_loads_as_a_plain_model(tmp_path: Path, tied: bool) -> None:
    torch.manual_seed(0)
    config: Any = small_llama().config
    plain = LlamaForCausalLM(LlamaConfig(**{**config.to_dict(), "tie_word_embeddings": tied}))
    policy, batch = trained(model=plain.eval()), collate([made_group()])
    before = parameters(policy)
    policy.model.save_pretrained(tmp_path, state_dict=merged_state(policy.model))
    assert not list(tmp_path.glob("adapter*"))
    loaded = AutoModelForCausalLM.from_pretrained(tmp_path, dtype=torch.float32)
    assert not has_adapter(loaded)
    torch.testing.assert_close(
        policy_of(loaded).score(batch).logprob, policy.score(batch).logprob, atol=1e-5, rtol=0
    )
    assert torch.equal(parameters(policy), before)


def test_a_model_without_adapter_is_saved_as_it_is() -> None:
    model = small_llama()
    assert not has_adapter(model)
    state = merged_state(model)
    assert list(state) == list(model.state_dict())


def test_a_critic_of_an_adapted_policy_learns_an_adapter_of_its_own() -> None:
    model = adapted()
    critic = Critic(
        ValueModel(model), make_optimizer=lambda m: torch.optim.AdamW(m.parameters(), lr=0.01)
    )
    learns = {name for name, p in critic.model.named_parameters() if p.requires_grad}
    assert {n for n in learns if ".lora_" not in n} == {"head.weight", "head.bias"}
    before = parameters(policy_of(model))
    critic.step(collate([made_group()]), lambda v, part: (((v - 1) ** 2).sum(), {}))
    assert torch.equal(parameters(policy_of(model)), before)


def test_rspo_runs_two_loops_and_the_base_stays() -> None:
    algorithm = GRPO(kl_coefficient=0.1).algorithm()
    model = adapted()
    trainer = trainer_of(
        MadePlay(),
        policy=policy_of(model),
        reference=policy_of(model, Reference),
        algorithm=algorithm,
    )
    start = parameters(trainer)
    run_rspo(trainer, RewardSwap(1, 1, 1 / 4), Sizes(4, 4), updates=2)
    assert trainer.loop == 2
    assert not torch.equal(parameters(trainer), start)
    base = torch.cat([p.flatten() for p in model.parameters() if not p.requires_grad])
    expected = torch.cat([p.detach().flatten() for p in small_llama().parameters()])
    assert torch.equal(base, expected)


def test_targets_that_are_not_there_and_the_head_are_refused() -> None:
    with pytest.raises(ValueError, match=r"'q_prj' names no linear layer.*q_proj"):
        adapted(("q_prj",))
    with pytest.raises(ValueError, match="cannot name the head"):
        adapted(("lm_head",))


def test_without_peft_the_extra_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "peft", None)
    with pytest.raises(ValueError, match=r"needs peft; pip install 'rewardswap\[lora\]'"):
        adapter.add_adapter(small_llama(), 4, 8.0, ())


def test_settings_of_an_adapter_that_is_not_there_are_refused() -> None:
    with pytest.raises(ValueError, match="lora_alpha does nothing at lora_rank none"):
        PolicyConfig(lora_alpha=8.0)
    with pytest.raises(ValueError, match="lora_targets does nothing at lora_rank none"):
        PolicyConfig(lora_targets=("q_proj",))
    with pytest.raises(ValueError, match="lora_rank"):
        PolicyConfig(lora_rank=0)
    assert PolicyConfig(lora_rank=4, lora_targets=("q_proj",)).lora_alpha == 32.0


def test_an_adapter_that_was_off_is_on_again_behind_an_error() -> None:
    policy, batch = trained(), collate([made_group()])
    before = policy.score(batch).logprob
    with pytest.raises(RuntimeError, match="in between"), adapter.adapter_off(policy.model):
        raise RuntimeError("in between")
    assert torch.equal(policy.score(batch).logprob, before)
