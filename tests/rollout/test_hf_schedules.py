"""Whatever is asked, awaited and released when: every action is that of its own row and key."""

from dataclasses import dataclass
from functools import cache
from typing import Any
from unittest.mock import patch

import numpy as np
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from test_slot_model import small_family

from made import VOCABULARY
from rewardswap.rollout import hf
from rewardswap.rollout.engine import Completion, Request, SamplingParams, random_key, uniforms
from rewardswap.rollout.hf import HuggingFaceEngine

ENDS = (0, *range(21, 26))
NAMES = "abcdef"
FAMILIES: dict[str, dict[str, Any]] = {
    "Llama": {},
    "Qwen2": {
        "use_sliding_window": True,
        "sliding_window": 9,
        "layer_types": ["full_attention", "sliding_attention"],
    },
    "Gemma3Text": {},
    "Mistral": {},
}
SAMPLINGS = (
    SamplingParams(max_tokens=3),
    SamplingParams(max_tokens=9, temperature=0.6),
    SamplingParams(max_tokens=20, top_k=4),
    SamplingParams(max_tokens=1, temperature=0.0),
)


@cache
def model_of(family: str) -> Any:
    return small_family(family, **FAMILIES[family])


@dataclass
class Asked:
    """What an action is sampled behind."""

    row: list[int]
    request: Request
    sampling: SamplingParams


def asked(name: str, before: list[int], turn: int, length: int, sampling: SamplingParams) -> Asked:
    """The next action of a session; it starts anew where `before` is empty or leaves no room."""
    extends = bool(before) and len(before) + length + sampling.max_tokens <= 128
    stream = np.random.default_rng([ord(name), turn])
    context = stream.integers(1, VOCABULARY, length if extends else max(1, length))
    request = Request(name, context, extends, random_key(0, 0, name, 0, turn))
    return Asked([*(before if extends else []), *context.tolist()], request, sampling)


@torch.no_grad()
def check(model: Any, ask: Asked, said: Completion) -> None:
    """One pass over the whole row: each token is where its number falls, with its log-prob."""
    sampling, action = ask.sampling, said.ids.tolist()
    logits = model(torch.tensor([ask.row + action]), use_cache=False).logits[
        0, -len(action) - 1 : -1
    ]
    chances = torch.softmax(logits.double() / (sampling.temperature or 1.0), dim=-1)
    if sampling.top_k:
        least = chances.topk(sampling.top_k).values[:, -1:]
        chances = torch.where(chances >= least, chances, 0.0)
        chances /= chances.sum(dim=-1, keepdim=True)
    drawn = uniforms(ask.request.random_key, sampling.max_tokens)
    for token, p, number in zip(action, chances, drawn, strict=False):
        below = float(p[:token].sum())
        if sampling.temperature:
            assert below - 1e-5 < number < below + float(p[token]) + 1e-5
        else:
            assert float(p[token]) > float(p.max()) - 1e-6
    expected = chances.gather(1, torch.tensor(action)[:, None])[:, 0].log().numpy()
    np.testing.assert_allclose(said.logprobs, expected, atol=1e-4)


STEPS = st.lists(
    st.tuples(
        st.sampled_from(["ask", "ask anew", "ask", "wait", "wait", "release"]),
        st.sets(st.sampled_from(NAMES), min_size=1),
        st.sampled_from([0, 1, 2, 5, 40]),
        st.sampled_from(SAMPLINGS),
    ),
    min_size=6,
    max_size=30,
)


@settings(max_examples=15, deadline=None, derandomize=True)
@given(
    family=st.sampled_from(sorted(FAMILIES)),
    refill=st.sampled_from([0.01, 0.5, 1.0]),
    worth=st.sampled_from([1, 256]),
    steps=STEPS,
)
def test_any_schedule_gives_each_row_its_own_actions(
    family: str, refill: float, worth: int, steps: list[tuple[str, set[str], int, SamplingParams]]
) -> None:
    model = model_of(family)
    engine = HuggingFaceEngine(model, ENDS, refill=refill)
    rows: dict[str, list[int]] = {}
    waiting: dict[str, Asked] = {}
    turn = 0

    def hear() -> None:
        completions = engine.wait()
        assert bool(completions) == bool(waiting)
        for completion in completions:
            ask = waiting.pop(completion.session)
            check(model, ask, completion)
            ended = [token in ENDS for token in completion.ids]
            assert completion.truncated == (not any(ended)) and not any(ended[:-1])
            assert not completion.truncated or len(ended) == ask.sampling.max_tokens
            rows[completion.session] = ask.row + completion.ids.tolist()

    with patch.object(hf, "PASS", worth):
        for kind, names, length, sampling in steps:
            turn += 1
            if kind == "wait":
                hear()
            elif kind == "release":
                engine.release(sorted(names))
                for name in names:
                    rows.pop(name, None)
                    waiting.pop(name, None)
            else:
                free = sorted(names - waiting.keys())
                before = {n: rows.get(n, []) if kind == "ask" else [] for n in free}
                new = {n: asked(n, before[n], turn, length, sampling) for n in free}
                engine.submit([ask.request for ask in new.values()], sampling)
                waiting |= new
        while waiting:
            hear()
    engine.release(NAMES)
    assert engine._model._cache._keys == []


def test_an_action_in_progress_takes_its_sampling_along() -> None:
    model = model_of("Llama")
    engine = HuggingFaceEngine(model, [0], refill=0.01)
    short = asked("a", [], 0, 5, SamplingParams(max_tokens=1))
    long = asked("b", [], 0, 5, SamplingParams(max_tokens=20, temperature=0.2))
    for ask in (short, long):
        engine.submit([ask.request], ask.sampling)
    assert [said.session for said in engine.wait()] == ["a"]
    engine.release(["a"])  # "b" goes on in its place
    (said,) = engine.wait()
    assert len(said.ids) > 5
    check(model, long, said)
