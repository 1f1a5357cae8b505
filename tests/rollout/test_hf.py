"""Log-probs through the cache equal a forward pass from scratch; draws belong to their keys."""

from typing import Any

import numpy as np
import pytest
import torch

from made import VOCABULARY, small_llama
from rewardswap.rollout.engine import (
    Completion,
    Request,
    SamplingParams,
    complete,
    random_key,
    uniforms,
)
from rewardswap.rollout.hf import HuggingFaceEngine

END = 1


def request(name: str, turn: int, length: int, extends: bool) -> Request:
    stream = np.random.default_rng([sum(map(ord, name)), turn])
    context = stream.integers(2, VOCABULARY, length)
    return Request(name, context, extends, random_key(0, 0, name, 0, turn))


def chat(engine: HuggingFaceEngine, plan: dict[str, list[int]], **sampling: Any) -> Any:
    """Play sessions with the given context lengths per turn; all tokens and log-probs of each."""
    params = SamplingParams(**{"max_tokens": 6, **sampling})
    rows: dict[str, list[int]] = {name: [] for name in plan}
    sampled: dict[str, list[tuple[int, float]]] = {name: [] for name in plan}
    turns = max(len(lengths) for lengths in plan.values())
    for turn in range(turns):
        asked = [
            request(name, turn, lengths[turn], turn > 0)
            for name, lengths in plan.items()
            if turn < len(lengths)
        ]
        for one, completion in zip(asked, complete(engine, asked, params), strict=True):
            rows[one.session] += one.context_ids.tolist()
            start = len(rows[one.session])
            rows[one.session] += completion.ids.tolist()
            places = enumerate(completion.logprobs.tolist(), start)
            sampled[one.session] += list(places)
        engine.release([n for n, lengths in plan.items() if turn == len(lengths) - 1])
    return rows, sampled


PLAN = {"a": [5, 3, 2], "b": [2, 7], "c": [9], "d": [1, 1, 4]}


@pytest.mark.parametrize("temperature", [1.0, 0.6])
def test_every_sampled_logprob_equals_a_pass_over_the_whole_row(temperature: float) -> None:
    model = small_llama()
    rows, sampled = chat(HuggingFaceEngine(model, [END]), PLAN, temperature=temperature)
    for name, row in rows.items():
        logits = model(torch.tensor([row])).logits[0].detach() / temperature
        every = torch.log_softmax(logits, dim=-1)
        for place, logprob in sampled[name]:
            assert logprob == pytest.approx(float(every[place - 1, row[place]]), abs=1e-5)
    assert sum(len(pairs) for pairs in sampled.values()) > 20


def test_a_session_alone_samples_what_it_samples_among_others() -> None:
    together, _ = chat(HuggingFaceEngine(small_llama(), [END]), PLAN)
    for name, lengths in PLAN.items():
        alone, _ = chat(HuggingFaceEngine(small_llama(), [END]), {name: lengths})
        assert alone[name] == together[name]
    backwards, _ = chat(HuggingFaceEngine(small_llama(), [END]), dict(reversed(PLAN.items())))
    assert backwards == together


def test_the_same_keys_give_the_same_bits() -> None:
    first = chat(HuggingFaceEngine(small_llama(), [END]), PLAN)
    assert first == chat(HuggingFaceEngine(small_llama(), [END]), PLAN)


def test_only_new_tokens_are_fed() -> None:
    engine = HuggingFaceEngine(small_llama(), [END])
    rows, _ = chat(engine, PLAN)
    # every token is fed once, but for the last token of each session, which nothing follows
    assert engine.fed_tokens == sum(len(row) for row in rows.values()) - len(rows)


def test_changed_weights_give_what_a_new_engine_gives() -> None:
    model = small_llama()
    engine = HuggingFaceEngine(model, [END])
    before, _ = chat(engine, PLAN)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(1.5)
    after, _ = chat(engine, PLAN)
    assert after != before
    assert after == chat(HuggingFaceEngine(model, [END]), PLAN)[0]


def test_greedy_takes_the_likeliest_token() -> None:
    model = small_llama()
    (completion,) = complete(
        HuggingFaceEngine(model, [END]),
        [request("a", 0, 4, False)],
        SamplingParams(temperature=0.0, max_tokens=1),
    )
    context = torch.from_numpy(request("a", 0, 4, False).context_ids)
    logits = model(context[None]).logits[0, -1]
    assert completion.ids.tolist() == [int(logits.argmax())]


def test_frequencies_follow_the_distribution() -> None:
    model = small_llama()
    engine = HuggingFaceEngine(model, [END])
    context = np.array([3, 4, 5])
    asked = [Request(str(n), context, False, random_key(0, 0, "x", n, 0)) for n in range(4000)]
    drawn = complete(engine, asked, SamplingParams(max_tokens=1))
    expected = torch.softmax(model(torch.tensor([[3, 4, 5]])).logits[0, -1], -1).detach().numpy()
    counts = np.bincount([int(c.ids[0]) for c in drawn], minlength=VOCABULARY) / 4000
    # 5 standard errors of the likeliest token's share
    assert np.abs(counts - expected).max() < 5 * np.sqrt(0.25 / 4000)


def test_truncation_is_the_cap_without_an_end_token() -> None:
    engine = HuggingFaceEngine(small_llama(), [END, 7])
    asked = [request(str(n), 0, 3, False) for n in range(200)]
    completions: list[Completion] = complete(engine, asked, SamplingParams(max_tokens=3))
    kinds = {(c.truncated, int(c.ids[-1]) in (END, 7)) for c in completions}
    assert kinds == {(True, False), (False, True)}
    assert all(len(c.ids) == 3 for c in completions if c.truncated)
    assert {int(c.ids[-1]) for c in completions if not c.truncated} == {END, 7}


def test_bad_requests() -> None:
    engine = HuggingFaceEngine(small_llama(), [END])
    assert complete(engine, [], SamplingParams()) == []
    with pytest.raises(ValueError, match="'a' extends a prompt that is not there"):
        complete(engine, [request("a", 1, 2, True)], SamplingParams())
    with pytest.raises(ValueError, match="no token to read"):
        complete(engine, [request("a", 0, 0, False)], SamplingParams())
    twice = [request("a", 0, 2, False)] * 2
    with pytest.raises(ValueError, match="same session"):
        complete(engine, twice, SamplingParams())
    with pytest.raises(ValueError, match="end token"):
        HuggingFaceEngine(small_llama(), [])
    with pytest.raises(ValueError, match="temperature"):
        SamplingParams(temperature=-1.0)


def test_streams_do_not_depend_on_the_process() -> None:
    # worked out once; a change of the key or of the generator changes every run
    assert random_key(1, 2, "task", 3, 4) != random_key(1, 2, "task", 34, 0)
    assert uniforms((1, 2), 3).tolist() == uniforms((1, 2), 5).tolist()[:3]
