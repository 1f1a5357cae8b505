"""Policies, critics and process rewards on disk and back."""

from pathlib import Path
from typing import Any

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from made import VOCABULARY, made_group, small_llama, small_policy
from rewardswap.models.adapter import add_adapter
from rewardswap.models.batching import collate
from rewardswap.models.critic import Critic
from rewardswap.models.loading import load_language_model
from rewardswap.models.policy import Policy
from rewardswap.models.pretrained import SETTINGS, WEIGHTS
from rewardswap.models.small_model import small_model
from rewardswap.rewards.process import ProcessRewardModel
from training import parameters, small_critic

BATCH = collate([made_group(outcomes=(0.0, 1.0, 1.0))])
TOKENS = torch.arange(VOCABULARY)[None]


def optimizer(model: torch.nn.Module) -> torch.optim.Optimizer:
    return torch.optim.AdamW(model.parameters(), lr=0.01)


def adapted(seed: int = 0) -> Any:
    """A model whose adapter says something."""
    pytest.importorskip("peft")
    model = small_llama(seed)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        add_adapter(model, 2, 4.0, ())
        for name, parameter in model.named_parameters():
            if "lora_" in name:
                torch.nn.init.normal_(parameter, std=0.1)
    return model


def test_a_policy_loads_in_plain_transformers_with_equal_logits(tmp_path: Path) -> None:
    made = small_model(["go north now ."], ["north", "go north"], seed=1)
    policy = Policy(made.model, make_optimizer=optimizer)
    policy.save_pretrained(tmp_path, made.tokenizer)
    model = AutoModelForCausalLM.from_pretrained(tmp_path)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path)
    ids = tokenizer("go north now .", return_tensors="pt").input_ids
    assert ids.tolist() == [made.tokenizer.encode("go north now .")]
    assert torch.equal(model(ids).logits, policy.model(ids).logits)
    assert load_language_model(str(tmp_path)).action_tokens == 3


def test_a_policy_comes_back_to_the_bit(tmp_path: Path) -> None:
    policy = small_policy(3)
    policy.save_pretrained(tmp_path)
    again = Policy.from_pretrained(tmp_path, make_optimizer=optimizer, temperature=0.7)
    assert torch.equal(parameters(again), parameters(policy))
    assert again.temperature == 0.7
    assert torch.equal(again.score(BATCH, 1.0).logprob, policy.score(BATCH).logprob)


def test_an_adapter_is_merged_into_the_saved_policy(tmp_path: Path) -> None:
    policy = Policy(adapted(), make_optimizer=optimizer)
    policy.save_pretrained(tmp_path)
    plain = AutoModelForCausalLM.from_pretrained(tmp_path)
    assert not any("lora_" in name for name, _ in plain.named_parameters())
    found, expected = plain(TOKENS).logits, policy.model(TOKENS).logits
    torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
    assert (small_llama()(TOKENS).logits - expected).abs().max() > 0.01


@pytest.mark.parametrize("with_adapter", [False, True])
def test_a_critic_comes_back_to_the_bit(tmp_path: Path, with_adapter: bool) -> None:
    if with_adapter:
        source, other = adapted(0), adapted(5)
    else:
        source, other = small_llama(0), small_llama(5)
    critic = small_critic()
    model = type(critic.model)(source)
    with torch.no_grad():
        model.head.weight.copy_(torch.linspace(-0.3, 0.4, 16)[None])
    critic = Critic(model, make_optimizer=optimizer)
    critic.save_pretrained(tmp_path)
    again = Critic.from_pretrained(tmp_path, other, make_optimizer=optimizer)
    assert torch.equal(parameters(again), parameters(critic))
    values = critic.score(BATCH)
    assert (values != 0).any()
    assert torch.equal(again.score(BATCH), values)


def test_a_critic_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    def read(model: Any = None) -> None:
        Critic.from_pretrained(tmp_path, model or small_llama(), make_optimizer=optimizer)

    with pytest.raises(ValueError, match=r"critic\.json cannot be read: No such file.*; give the"):
        read()
    small_critic().save_pretrained(tmp_path)
    wide = small_llama().config
    wide.num_hidden_layers = 3
    with pytest.raises(ValueError, match=r"critic\.safetensors does not fit this language model"):
        read(type(small_llama())(wide))
    settings = (tmp_path / SETTINGS).read_text()
    for text, said in (
        ("{", r"critic\.json is damaged: .*; save it anew"),
        ("[]", r"critic\.json is damaged"),
        (settings.replace('"format": 1', '"format": 9'), "is of format 9, this version reads 1"),
        (settings.replace('sha256": "', 'sha256": "0'), r"critic\.safetensors is damaged, or not"),
    ):
        (tmp_path / SETTINGS).write_text(text)
        with pytest.raises(ValueError, match=said):
            read()
    (tmp_path / SETTINGS).write_text(settings)
    (tmp_path / WEIGHTS).unlink()
    with pytest.raises(ValueError, match=r"critic\.safetensors cannot be read"):
        read()


def test_all_that_learns_is_saved_and_read_by_the_same_names() -> None:
    for kind in (Policy, Critic, ProcessRewardModel):
        assert kind.save_pretrained.__doc__ and kind.from_pretrained.__doc__
