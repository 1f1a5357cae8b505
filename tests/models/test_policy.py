"""Scores, steps, branch and restore of a policy."""

from typing import Any

import pytest
import torch
import transformers

from made import VOCABULARY, made_group, small_policy
from rewardswap.models.batching import Batch, TokenScores, collate
from rewardswap.models.learner import Metrics
from rewardswap.models.policy import Policy

SMALL: dict[str, Any] = {
    "vocab_size": VOCABULARY,
    "hidden_size": 16,
    "intermediate_size": 24,
    "num_hidden_layers": 1,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 1,
}


def labelled() -> Batch:
    group = made_group(outcomes=(0.0, 1.0, 1.0))
    advantage = torch.tensor([[-1.0], [0.5], [0.5]]) * group.turn_mask
    batch = collate([group.with_column("advantage", advantage)])
    weights = batch.action_mask.float() / batch.action_mask.sum()
    return batch.with_weights({"policy": weights})


def weighted(scores: TokenScores, batch: Batch) -> tuple[torch.Tensor, Metrics]:
    value = -(scores.logprob * batch.column("advantage") * batch.weights["policy"]).sum()
    return value, {}


def test_scores_equal_a_plain_forward_pass() -> None:
    policy, batch = small_policy(temperature=0.7), labelled()
    scores = policy.score(batch)
    for b in range(len(batch)):
        ids = batch.tokens[b, : batch.lengths[b]]
        logits = policy.model(ids[None]).logits[0].detach() / 0.7
        every = torch.log_softmax(logits, dim=-1)
        for t in torch.nonzero(batch.action_mask[b])[:, 0].tolist():
            expected = every[t - 1, ids[t]]
            assert float(scores.logprob[b, t]) == pytest.approx(float(expected), abs=1e-5)
            entropy = -(every[t - 1].exp() * every[t - 1]).sum()
            assert float(scores.entropy[b, t]) == pytest.approx(float(entropy), abs=1e-5)
    assert float(scores.logprob[~batch.action_mask].abs().sum()) == 0


@pytest.mark.parametrize(
    "config",
    [
        transformers.Gemma2Config(final_logit_softcapping=30.0, head_dim=8, **SMALL),
        transformers.GraniteConfig(logits_scaling=8.0, **SMALL),
        transformers.CohereConfig(logit_scale=0.0625, **SMALL),
    ],
    ids=lambda config: config.model_type,
)
def test_a_model_that_does_more_to_logits_than_its_head_is_refused(config: Any) -> None:
    """Also where its logits are still too small for a cap to show."""
    model = transformers.AutoModelForCausalLM.from_config(config)
    with pytest.raises(ValueError, match="ForCausalLM gives other logits than its head"):
        Policy(model, make_optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=0.1))


def test_padding_tokens_and_micro_batches_change_nothing() -> None:
    batch = labelled()
    garbage = batch.tokens.clone()
    garbage[torch.arange(batch.tokens.shape[1])[None] >= batch.lengths[:, None]] = 29
    noisy = Batch(**{**vars(batch), "tokens": garbage})
    results = []
    for tokens, given in ((10_000, batch), (1, batch), (10_000, noisy)):
        # plain gradient descent: Adam's first step would blow rounding up
        policy = small_policy(
            tokens_per_microbatch=tokens,
            make_optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=1.0),
        )
        policy.step(given, weighted)
        results.append(torch.cat([p.detach().flatten() for p in policy.model.parameters()]))
    torch.testing.assert_close(results[0], results[1], atol=1e-6, rtol=0)
    torch.testing.assert_close(results[0], results[2], atol=1e-6, rtol=0)


def test_the_gradient_falls_on_action_positions_only() -> None:
    batch = labelled()
    policy = small_policy()
    seen: list[torch.Tensor] = []
    head = policy.model.get_output_embeddings()
    handle = head.register_forward_hook(lambda _m, _i, out: seen.append(out))
    policy.score(batch)
    handle.remove()
    # the head runs once per action token and nowhere else
    assert sum(len(out) for out in seen) == int(batch.action_mask.sum())


def test_restore_brings_every_tensor_back_bitwise() -> None:
    policy, batch = small_policy(), labelled()
    policy.step(batch, weighted)
    before = policy.snapshot()
    policy.fresh_optimizer()
    for _ in range(3):
        policy.step(batch, weighted)
        torch.rand(3)
        policy.version += 1
    assert any(
        not torch.equal(value, before.model[name])
        for name, value in policy.model.state_dict().items()
    )
    policy.restore(before)
    after = policy.snapshot()
    assert all(torch.equal(after.model[name], value) for name, value in before.model.items())
    for index, state in before.optimizer["state"].items():
        for name, value in state.items():
            assert torch.equal(after.optimizer["state"][index][name], value)
    assert after.version == before.version
    assert torch.equal(after.random_state, before.random_state)


def test_a_snapshot_can_be_restored_twice() -> None:
    policy, batch = small_policy(), labelled()
    policy.step(batch, weighted)
    kept = policy.snapshot()
    runs = []
    for _ in range(2):
        policy.restore(kept)
        policy.step(batch, weighted)
        runs.append(torch.cat([p.detach().flatten() for p in policy.model.parameters()]))
    assert torch.equal(runs[0], runs[1])


def test_a_step_with_a_gradient_that_is_not_finite_is_skipped_and_counted() -> None:
    policy, batch = small_policy(), labelled()
    before = policy.snapshot()

    def broken(scores: TokenScores, part: Batch) -> tuple[torch.Tensor, Metrics]:
        return scores.logprob.sum() * float("nan"), {}

    metrics = policy.step(batch, broken)
    assert metrics["skipped_steps"] == 1
    after = policy.snapshot()
    assert all(torch.equal(after.model[name], value) for name, value in before.model.items())
