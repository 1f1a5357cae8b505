"""Models of many families read behind a cache what they read in one pass, or are refused."""

from typing import Any

import numpy as np
import pytest
import torch
import transformers

from chatting import Doors, small_tokenizer
from made import VOCABULARY, small_llama
from rewardswap.models.batching import Row, rows_of
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import Request, SamplingParams, complete, random_key
from rewardswap.rollout.episodes import EpisodeRequest, play
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.types import Trajectory

END = 0
ENDS = (END, *range(21, 30))
"""A third of all tokens, so that most rows of a batch end long before the last one."""

FAMILIES: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Qwen2": {},
    "Qwen3": {},
    "Gemma": {},
    "Gemma3Text": {"sliding_window": 7, "layer_types": ["sliding_attention", "full_attention"]},
    "Mistral": {"sliding_window": 7},
}
CLASSES = {"Gemma3Text": "Gemma3ForCausalLM"}


def small_family(family: str, attention: str = "sdpa", **changes: Any) -> Any:
    config = getattr(transformers, f"{family}Config")(
        vocab_size=VOCABULARY,
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=2,
        num_key_value_heads=1,
        head_dim=8,
        max_position_embeddings=128,
        initializer_range=0.3,
        pad_token_id=0,
        bos_token_id=None,
        eos_token_id=END,
        attn_implementation=attention,
        **{**FAMILIES.get(family, {}), **changes},
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return getattr(transformers, CLASSES.get(family, f"{family}ForCausalLM"))(config).eval()


def played(model: Any) -> list[Trajectory]:
    """Nine episodes of up to five turns through four slots: rows are ragged, slots are refilled."""
    return play(
        [EpisodeRequest(task, n) for task in Doors().tasks("all") for n in range(3)],
        Doors(),
        HuggingFaceEngine(model, ENDS),
        ChatContext(small_tokenizer(), "", ENDS),
        sampling=SamplingParams(max_tokens=8),
        seed=0,
        policy_version=0,
        turn_limit=5,
        slots=4,
    ).trajectories


@torch.no_grad()
def recomputed(model: Any, row: Row, shift: int = 0) -> np.ndarray:
    """log-probs of a row's action tokens by one pass over the whole row, without any cache.

    `shift` moves the positions of all that stands behind the first action.
    """
    turn, start = row.spans[1] if len(row.spans) > 1 else row.spans[0]
    positions = torch.arange(len(row.tokens))
    positions = positions + shift * (positions >= start) * (turn > 0)
    tokens = torch.from_numpy(row.tokens)[None]
    logits = model(tokens, position_ids=positions[None], use_cache=False).logits[0]
    chosen = torch.log_softmax(logits[:-1].double(), -1).gather(-1, tokens[0, 1:, None])[:, 0]
    return chosen.numpy()


def gap(model: Any, trajectory: Trajectory, shift: int = 0) -> float:
    """Largest difference between the engine's log-probs and recomputed ones, in nats."""
    gaps = []
    for row in rows_of(trajectory, 0):
        logprobs = recomputed(model, row, shift)
        for turn, start in row.spans:
            sampled = trajectory.turns[turn].logprobs
            gaps.append(np.abs(logprobs[start - 1 : start - 1 + len(sampled)] - sampled).max())
    return float(max(gaps))


@pytest.mark.parametrize("attention", ["sdpa", "eager"])
@pytest.mark.parametrize("family", FAMILIES)
def test_logprobs_of_whole_episodes_equal_one_pass(family: str, attention: str) -> None:
    model = small_family(family, attention)
    trajectories = played(model)
    assert len({len(turn.action_ids) for t in trajectories for turn in t.turns}) > 2
    assert max(len(t.turns) for t in trajectories) == 5
    for trajectory in trajectories:
        assert gap(model, trajectory) < 1e-5


@pytest.mark.parametrize("kind", ["dynamic", "longrope", "yarn"])
def test_rotations_that_depend_on_the_length_change_no_logprob(kind: str) -> None:
    """Behind its original positions longrope rotates all keys anew: episodes end before."""
    rope = {"rope_type": kind, "factor": 4.0, "original_max_position_embeddings": 32}
    factors = {"short_factor": [1.0] * 4, "long_factor": [4.0, 3.0, 2.0, 1.5]}
    rope |= {"rope_theta": 10000.0, **(factors if kind == "longrope" else {})}
    model = small_family("Llama", rope_parameters=rope)
    assert HuggingFaceEngine(model, ENDS).context_limit == (32 if kind == "longrope" else 128)
    for trajectory in played(model):
        assert gap(model, trajectory) < 1e-5


def test_positions_that_are_off_by_one_would_be_seen() -> None:
    model = small_family("Llama")
    longest = max(played(model), key=lambda trajectory: len(trajectory.turns))
    assert gap(model, longest, shift=1) > 1e-3


def test_training_mode_comes_back_and_does_not_reach_the_samples() -> None:
    model = small_family("Llama", attention_dropout=0.5)
    expected = [t.turns[0].action_ids.tolist() for t in played(model)]
    model.train()
    assert [t.turns[0].action_ids.tolist() for t in played(model)] == expected
    assert model.training


def asking(session: str, tokens: list[int], turn: int) -> Request:
    context = np.array(tokens, dtype=np.int64)
    return Request(session, context, turn > 0, random_key(0, 0, session, 0, turn))


def test_sessions_that_wait_keep_what_they_have_read() -> None:
    def said(engine: HuggingFaceEngine, *requests: Request) -> list[list[int]]:
        return [c.ids.tolist() for c in complete(engine, requests, SamplingParams(max_tokens=4))]

    def a(turn: int) -> Request:
        return asking("a", [4 + turn, 9, 3], turn)

    def c(turn: int) -> Request:
        return asking("c", [8, 2, 6, 5], turn)

    lonely = HuggingFaceEngine(small_llama(), [END])
    alone_a = [said(lonely, a(turn))[0] for turn in range(3)]
    alone_c = [said(lonely, c(turn))[0] for turn in range(3)]
    engine = HuggingFaceEngine(small_llama(), [END])
    b = asking("b", [5, 6], 0)
    first = said(engine, b, a(0), c(0))
    assert [first[1], first[2]] == [alone_a[0], alone_c[0]]
    assert said(engine, c(1)) == [alone_c[1]]  # from the last slot to the first
    engine.release(["b"])
    assert said(engine, asking("d", [7], 0), a(1))[1] == alone_a[1]
    assert said(engine, a(2), c(2)) == [alone_a[2], alone_c[2]]


def test_a_request_beyond_the_context_is_refused() -> None:
    engine = HuggingFaceEngine(small_llama(), [END])
    long = asking("long", [3] * 250, 0)
    assert engine.context_limit == 256
    assert len(complete(engine, [long], SamplingParams(max_tokens=6))) == 1
    with pytest.raises(ValueError, match=r"'long' needs 257 tokens.*holds 256"):
        complete(engine, [long], SamplingParams(max_tokens=7))


def test_models_that_would_be_served_wrongly_are_refused() -> None:
    capped = small_family("Gemma2", "eager", final_logit_softcapping=1.0)
    with pytest.raises(ValueError, match=r"Gemma2ForCausalLM gives other logits .* one pass"):
        HuggingFaceEngine(capped, [END])
    flexible = small_llama()
    flexible.config._attn_implementation = "flex_attention"
    with pytest.raises(ValueError, match=r"'flex_attention' .* no mask per row"):
        HuggingFaceEngine(flexible, [END])
    config = transformers.MambaConfig(
        vocab_size=VOCABULARY, hidden_size=16, state_size=4, num_hidden_layers=1
    )
    with pytest.raises(ValueError, match="MambaForCausalLM"):
        HuggingFaceEngine(transformers.MambaForCausalLM(config), [END])
