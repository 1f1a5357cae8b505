"""Where a branch is kept: on a GPU in pinned CPU memory, each tensor once; bits come back.

Without a GPU the first tests run torch's fake tensors, which know their device and hold no numbers.
"""

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import nn
from torch._subclasses.fake_tensor import FakeTensorMode
from transformers import LlamaConfig, LlamaForCausalLM

from made import made_group, small_llama, small_policy
from rewardswap.models.batching import Batch, TokenScores, collate
from rewardswap.models.host import host_copy
from rewardswap.models.learner import Metrics
from rewardswap.models.policy import Policy
from training import WholeLearner, same_snapshot


@pytest.fixture
def events(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What is asked of the host, in order: pinned memory of a shape, waiting for a device."""
    seen: list[Any] = []
    empty = torch.empty

    def watched(*shape: Any, pin_memory: bool = False, **settings: Any) -> torch.Tensor:
        if pin_memory:
            seen.append(tuple(shape[0]))
        return empty(*shape, **settings)

    monkeypatch.setattr(torch, "empty", watched)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda device: seen.append(str(device)))
    return seen


def test_what_is_on_a_gpu_goes_to_pinned_memory_and_is_waited_for_once(events: list[Any]) -> None:
    with FakeTensorMode():
        on_gpu = [torch.ones(2, 3, device="cuda"), torch.ones(4, device="cuda")]
        state = {"moments": on_gpu, "step": torch.ones(()), "rate": 0.1, "betas": (0.9, 0.99)}
        kept = host_copy(state)
    assert events == [(2, 3), (4,), "cuda:0"]
    assert [str(t.device) for t in (*kept["moments"], kept["step"])] == ["cpu"] * 3
    assert (kept["rate"], kept["betas"]) == (0.1, (0.9, 0.99))


def test_a_branch_of_a_learner_on_a_gpu_takes_none_of_its_memory(events: list[Any]) -> None:
    with FakeTensorMode():
        learner = WholeLearner(
            nn.ParameterList([torch.zeros(2, 3, device="cuda"), torch.zeros(2, device="cuda")]),
            make_optimizer=lambda m: torch.optim.AdamW(m.parameters()),
        )
        for weight in learner.masters.parameters():
            moments = {name: torch.zeros_like(weight) for name in ("exp_avg", "exp_avg_sq")}
            learner.optimizer.state[weight] = {"step": torch.ones(()), **moments}
        kept = learner.snapshot()
        held = [
            *kept.model.values(),
            *(t for s in kept.optimizer["state"].values() for t in s.values()),
        ]
        assert {str(t.device) for t in held} == {"cpu"}
        assert events == [(2, 3), (2,), *[(2, 3)] * 2, *[(2,)] * 2, "cuda:0"]
        # fake tensors cannot be written in place without a GPU: of the optimizer alone
        learner.restore(replace(kept, model={}))
        back = learner.optimizer.state[learner.masters.weights[0]]
        found = {name: str(value.device) for name, value in back.items()}
    assert found == {"step": "cpu", "exp_avg": "cuda:0", "exp_avg_sq": "cuda:0"}


def test_on_the_cpu_nothing_is_pinned_and_nothing_shared(events: list[Any]) -> None:
    policy = small_policy()
    policy.step(collate([made_group()]), log_loss)
    kept = policy.snapshot()
    assert not events
    ours = {t.data_ptr() for t in (*kept.model.values(), *moments_of(kept.optimizer["state"]))}
    for _ in range(2):
        theirs = [*policy.model.parameters(), *moments_of(policy.optimizer.state)]
        assert ours.isdisjoint(t.data_ptr() for t in theirs)
        policy.restore(kept)


def test_tied_weights_are_kept_once_and_come_back() -> None:
    config = LlamaConfig(**{**small_llama().config.to_dict(), "tie_word_embeddings": True})
    policy = Policy(
        LlamaForCausalLM(config).eval(), make_optimizer=lambda m: torch.optim.AdamW(m.parameters())
    )
    policy.step(collate([made_group()]), log_loss)
    kept = policy.snapshot()
    assert set(kept.model) == {name for name, _ in policy.model.named_parameters()}
    assert "lm_head.weight" not in kept.model
    policy.step(collate([made_group()]), log_loss)
    assert not same_snapshot(policy.snapshot(), kept)
    policy.restore(kept)
    assert same_snapshot(policy.snapshot(), kept)
    head: Any = policy.model.get_output_embeddings()  # type: ignore[operator]
    assert torch.equal(head.weight, kept.model["model.embed_tokens.weight"])


@pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a CUDA device")
def test_on_a_gpu_the_bits_come_back_from_pinned_memory() -> None:
    policy = Policy(
        small_llama().to("cuda"),
        make_optimizer=lambda m: torch.optim.AdamW(m.parameters(), lr=0.01),
    )
    policy.step(collate([made_group()]), log_loss)
    kept = policy.snapshot()
    assert all(value.is_pinned() for value in kept.model.values())
    policy.step(collate([made_group()]), log_loss)
    assert not same_snapshot(policy.snapshot(), kept)
    for _ in range(2):
        policy.restore(kept)
        assert same_snapshot(policy.snapshot(), kept)


def log_loss(scores: TokenScores, batch: Batch) -> tuple[torch.Tensor, Metrics]:
    return -scores.logprob.sum(), {}


def moments_of(state: Any) -> list[torch.Tensor]:
    return [tensor for moments in state.values() for tensor in moments.values()]
