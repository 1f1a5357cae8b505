"""Packed rows: the numbers of padded ones, by what the trunk is told of positions alone."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from transformers import (
    AutoModelForCausalLM,
    Gemma3TextConfig,
    LlamaConfig,
    MambaConfig,
    MistralConfig,
    Qwen2Config,
    Qwen3Config,
)

from made import MadePlay, made_group, made_trajectory, small_llama, small_policy
from rewardswap.learners import make_learners
from rewardswap.methods.ppo import PPO
from rewardswap.models.batching import Batch, TokenScores, collate, microbatches
from rewardswap.models.critic import Critic, ValueModel
from rewardswap.models.learner import Metrics
from rewardswap.models.packing import Layout, prove_packing
from rewardswap.models.policy import Policy
from rewardswap.policy_config import PolicyConfig
from rewardswap.rewards.outcome import OutcomeReward
from training import parameters, trainer_of

SIZES: Mapping[str, Any] = {
    "vocab_size": 30,
    "hidden_size": 16,
    "intermediate_size": 32,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "num_key_value_heads": 1,
    "head_dim": 8,
    "initializer_range": 0.3,
    "pad_token_id": 0,
    "bos_token_id": 0,
    "eos_token_id": 1,
}
FAMILIES: Mapping[str, Any] = {
    "Llama": LlamaConfig(**SIZES),
    "Qwen2": Qwen2Config(**SIZES),
    "Qwen3": Qwen3Config(**SIZES),
    "Mistral, a window of 3": MistralConfig(**SIZES, sliding_window=3),
    "Gemma 3, every second layer a window of 3": Gemma3TextConfig(
        **SIZES, sliding_window=3, layer_types=["sliding_attention", "full_attention"]
    ),
}


def model_of(family: str, attention: str) -> Any:
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        made: Any = AutoModelForCausalLM.from_config(
            FAMILIES[family], attn_implementation=attention
        )
    return made.eval()


def policy_of(model: Any, **settings: Any) -> Policy:
    return Policy(
        model,
        make_optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=1.0),
        gradient_clip=1e9,
        **settings,
    )


def ragged() -> Batch:
    """Rows of 4 to 19 tokens, of one to three turns."""
    shapes = [((3, 2), (2, 3)), ((1, 3),), ((9, 4), (1, 1), (3, 1)), ((2, 6),)]
    members = tuple(made_trajectory("a", n, shape) for n, shape in enumerate(shapes))
    return collate([replace(made_group(), trajectories=members, selected=())])


def squares(scores: TokenScores, batch: Batch) -> tuple[Tensor, Metrics]:
    return (scores.logprob.square() + scores.entropy)[batch.action_mask].sum() / 100, {}


def test_places_by_hand() -> None:
    layout = Layout(torch.tensor([2, 3, 1]), 3, packing=True)
    values = torch.tensor([[1, 2, 0], [3, 4, 5], [6, 0, 0]])
    assert layout.place(values).tolist() == [[1, 2, 3, 4, 5, 6]]
    assert torch.equal(layout.back(layout.place(values)), values)
    told: dict[str, Any] = {}

    def trunk(**arguments: Any) -> Any:
        told.update(arguments)
        return type("Output", (), {"last_hidden_state": torch.zeros(1, 6, 1)})

    layout.read(trunk, values)
    assert told["position_ids"].tolist() == [[0, 1, 0, 1, 2, 0]]
    assert told["attention_mask"] is None


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("family", FAMILIES)
def test_scores_and_gradients_are_those_of_padded_rows(family: str, attention: str) -> None:
    batch, scores, moved = ragged(), [], []
    for packing in (False, True):
        policy = policy_of(model_of(family, attention), packing=packing)
        scores.append(policy.score(batch))
        before = parameters(policy)
        policy.step(batch, squares, entropy_gradient=True)
        moved.append(parameters(policy) - before)
    for name in ("logprob", "entropy"):
        padded, packed = (getattr(found, name) for found in scores)
        torch.testing.assert_close(packed, padded, atol=1e-5, rtol=0)
    torch.testing.assert_close(moved[1], moved[0], atol=1e-5, rtol=1e-5)
    assert float(moved[0].abs().max()) > 0.01


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
def test_a_row_says_the_same_bits_whatever_stands_in_the_others(attention: str) -> None:
    policy, batch = policy_of(model_of("Llama", attention), packing=True), ragged()
    before = policy.score(batch).logprob
    for b in range(len(batch)):
        others = batch.tokens.clone()
        others[torch.arange(len(batch)) != b] = 7
        after = policy.score(replace(batch, tokens=others)).logprob
        assert torch.equal(after[b], before[b])
        assert not torch.equal(after, before)


def test_the_order_of_rows_changes_nothing() -> None:
    policy, batch = small_policy(packing=True), ragged()
    order = torch.tensor([2, 0, 3, 1])
    found = policy.score(batch.take(order)).logprob
    torch.testing.assert_close(found, policy.score(batch).logprob[order], atol=1e-5, rtol=0)


def test_micro_batches_are_cut_by_real_tokens() -> None:
    batch = ragged()
    assert batch.lengths.tolist() == [10, 4, 19, 8]
    cut = [part.tolist() for part in microbatches(batch, 22, packing=True)]
    # by length: 4 + 8 + 10 = 22, then 19; padded it would be 2 x 8, then 10, then 19
    assert cut == [[1, 3, 0], [2]]
    assert [part.tolist() for part in microbatches(batch, 22)] == [[1, 3], [0], [2]]
    assert [len(part) for part in microbatches(batch, 1, packing=True)] == [1] * 4


def test_a_pass_reads_as_many_real_tokens_as_the_setting_says() -> None:
    policy = small_policy(packing=True, tokens_per_microbatch=22)
    read = []
    policy.trunk.register_forward_hook(lambda _m, _i, out: read.append(out[0].shape[:2]))
    policy.score(ragged())
    assert read == [(1, 22), (1, 19)]


def test_a_critics_values_and_steps_are_those_of_padded_rows() -> None:
    group = made_group(outcomes=(0.0, 1.0, 1.0))
    group = replace(
        group, trajectories=tuple(replace(t, stop="turn_limit") for t in group.trajectories)
    )
    values, bootstraps, moved = [], [], []
    for packing in (False, True):
        model = ValueModel(small_llama(1))
        nn.init.normal_(model.head.weight, generator=torch.Generator().manual_seed(0))
        critic = Critic(
            model,
            make_optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=0.1),
            packing=packing,
        )
        (annotated,) = critic.annotate([group])
        values.append(annotated.columns["value"])
        bootstraps.append(annotated.columns["bootstrap"])
        critic.step(collate([group]), lambda v, part: (((v - 1) ** 2).sum() / 10, {}))
        moved.append(parameters(critic))
    for padded, packed in (values, bootstraps, moved):
        torch.testing.assert_close(packed, padded, atol=1e-5, rtol=1e-5)
        assert padded.std() > 0.05


def test_an_update_of_the_trainer_is_that_of_padded_rows() -> None:
    found = []
    for packing in (False, True):
        trainer = trainer_of(MadePlay(), policy=policy_of(small_llama(), packing=packing))
        trainer.update(trainer.collect("learn", 3, 4), OutcomeReward(), "learn")
        found.append(parameters(trainer))
    torch.testing.assert_close(found[1], found[0], atol=1e-5, rtol=1e-5)
    assert not torch.equal(found[0], parameters(policy_of(small_llama())))


def test_the_setting_reaches_policy_reference_and_critic() -> None:
    algorithm = PPO(kl_coefficient=0.1).algorithm()
    for packing in (False, True):
        config = PolicyConfig(packing=packing)
        learners = make_learners(config, small_llama(), small_llama(), algorithm)
        assert learners.reference is not None and learners.critic is not None
        made = (learners.policy, learners.reference, learners.critic)
        assert [learner.packing for learner in made] == [packing] * 3


def test_a_trunk_that_carries_a_state_from_row_to_row_is_refused() -> None:
    config = MambaConfig(vocab_size=30, hidden_size=16, num_hidden_layers=2, state_size=4)
    model: Any = AutoModelForCausalLM.from_config(config)
    with pytest.raises(ValueError, match=r"MambaModel .*packed rows.*leave policy.packing out"):
        prove_packing(model.get_decoder().eval())


class Deaf(nn.Module):
    """A trunk that does not hear of positions."""

    def __init__(self, *, accepts: bool) -> None:
        super().__init__()
        self.inner, self.accepts = small_llama().model, accepts

    def forward(self, position_ids: Tensor | None = None, **arguments: Any) -> Any:
        if position_ids is not None and not self.accepts:
            raise TypeError("no position_ids")
        return self.inner(**arguments)


def test_a_trunk_that_counts_positions_itself_is_refused() -> None:
    with pytest.raises(ValueError, match=r"Deaf says other things of packed rows .*gap 1\.4"):
        prove_packing(Deaf(accepts=True))
    with pytest.raises(ValueError, match=r"Deaf cannot read packed rows \(TypeError: no position"):
        prove_packing(Deaf(accepts=False))
    prove_packing(small_llama().model)
