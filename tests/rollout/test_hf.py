"""Log-probs through the cache equal a forward pass from scratch; draws belong to their keys."""

from typing import Any

import numpy as np
import pytest
import torch

from made import VOCABULARY, small_llama
from rewardswap.rollout import hf
from rewardswap.rollout.engine import (
    Completion,
    Request,
    SamplingParams,
    complete,
    random_key,
    uniforms,
)
from rewardswap.rollout.hf import HuggingFaceEngine, _of_like_length

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


class Watched(HuggingFaceEngine):
    """Notes rows and tokens of each pass of the model."""

    def __init__(self, *arguments: Any, **settings: Any) -> None:
        super().__init__(*arguments, **settings)
        self.passes: list[tuple[int, int]] = []
        forward = self._model.forward

        def watched(ids: Any, positions: Any, rows: Any) -> Any:
            self.passes.append(ids.shape)
            return forward(ids, positions, rows)

        self._model.forward = watched  # type: ignore[method-assign]


def play_on(engine: HuggingFaceEngine, turns: int = 4, max_tokens: int = 20) -> dict[str, Any]:
    """Eight sessions, each of which goes on as soon as its action has ended: what each says."""
    said: dict[str, list[list[int]]] = {f"s{n}": [] for n in range(8)}
    ready = list(said)
    while any(len(actions) < turns for actions in said.values()):
        asked = [request(name, len(said[name]), 3, bool(said[name])) for name in ready]
        engine.submit(asked, SamplingParams(max_tokens=max_tokens))
        ready = []
        for completion in engine.wait():
            said[completion.session].append(completion.ids.tolist())
            if len(said[completion.session]) < turns:
                ready.append(completion.session)
            else:
                engine.release([completion.session])
    return said


def test_no_action_waits_for_the_longest_one() -> None:
    lock_step, refilled = (Watched(small_llama(), [END, 7, 9], refill=r) for r in (1.0, 0.25))
    assert play_on(lock_step) == play_on(refilled)
    assert lock_step.fed_tokens == refilled.fed_tokens

    def decoding(engine: Watched) -> list[int]:
        return [rows for rows, tokens in engine.passes if tokens == 1]

    # the same tokens in fewer passes, because each has more rows
    assert len(decoding(refilled)) < 0.8 * len(decoding(lock_step))


def test_wait_gives_a_share_of_what_is_in_progress() -> None:
    engine = HuggingFaceEngine(small_llama(), [END, 7, 9], refill=0.25)
    names = [f"s{n}" for n in range(8)]
    engine.submit([request(name, 0, 3, False) for name in names], SamplingParams(max_tokens=20))
    first = engine.wait()
    assert 2 <= len(first) < 8
    # the others are in the middle of their actions; one of them is thrown away there
    left = [name for name in names if name not in {c.session for c in first}]
    engine.release(left[:1])
    later: list[Completion] = []
    while len(later) < len(left) - 1:
        found = engine.wait()
        assert found
        later += found
    assert engine.wait() == []
    whole = complete(
        HuggingFaceEngine(small_llama(), [END, 7, 9]),
        [request(name, 0, 3, False) for name in names],
        SamplingParams(max_tokens=20),
    )
    expected = {c.session: c.ids.tolist() for c in whole if c.session != left[0]}
    assert {c.session: c.ids.tolist() for c in (*first, *later)} == expected


def test_prompts_of_other_lengths_may_come_in_the_middle() -> None:
    """What pads a short prompt beside a long one is not written into a neighbour's slot."""
    engine = HuggingFaceEngine(small_llama(), [END, 7, 9], refill=0.1)
    plan = {"a": 90, "b": 2, "c": 60, "d": 3, "e": 1}
    params, said = SamplingParams(max_tokens=9), dict[str, list[int]]()
    engine.submit([request(name, 0, plan[name], False) for name in "ab"], params)
    said |= {c.session: c.ids.tolist() for c in engine.wait()}
    engine.submit([request(name, 0, plan[name], False) for name in "cde"], params)
    while len(said) < len(plan):
        said |= {c.session: c.ids.tolist() for c in engine.wait()}
    # behind 90 tokens stands one more, and beside it a long prompt begins: 99 + 61 positions
    engine.submit([request("a", 1, 1, True), request("e", 1, 61, False)], params)
    after = dict[str, list[int]]()
    while len(after) < 2:
        after |= {c.session: c.ids.tolist() for c in engine.wait()}
    for name, length in plan.items():
        alone = HuggingFaceEngine(small_llama(), [END, 7, 9])
        (expected,) = complete(alone, [request(name, 0, length, False)], params)
        assert said[name] == expected.ids.tolist()
        if name == "a":
            (expected,) = complete(alone, [request("a", 1, 1, True)], params)
            assert after[name] == expected.ids.tolist()


@pytest.mark.parametrize("refill", [0.0, -1.0, 1.5, float("nan")])
def test_a_refill_that_is_no_share_is_refused(refill: float) -> None:
    with pytest.raises(ValueError, match="refill must be above 0 and at most 1"):
        HuggingFaceEngine(small_llama(), [END], refill=refill)


@pytest.mark.parametrize("sampling", [{"top_p": 0.7}, {"top_k": 4}, {"min_p": 0.2}])
def test_logprobs_of_a_truncating_sampler_are_not_the_policys(sampling: Any) -> None:
    """Why training refuses them: on policy their ratio is not 1."""
    model = small_llama()
    rows, sampled = chat(HuggingFaceEngine(model, [END]), PLAN, **sampling)
    gaps = []
    for name, row in rows.items():
        every = torch.log_softmax(model(torch.tensor([row])).logits[0].detach(), dim=-1)
        gaps += [logprob - float(every[place - 1, row[place]]) for place, logprob in sampled[name]]
    assert min(gaps) > -1e-5
    assert max(gaps) > 0.1


def test_prompts_of_like_length_are_read_together() -> None:
    # five prompts of 10 beside one of 100: apart they save 5 x 90 tokens of padding
    assert _of_like_length({0: 10, 1: 10, 2: 100, 3: 10, 4: 10, 5: 10}) == [[2], [0, 1, 3, 4, 5]]
    # here only 2 x 90, which is not worth a pass
    assert _of_like_length({0: 10, 1: 100, 2: 10}) == [[0, 1, 2]]
    # 1000 | 400 400 | 30 30 30: 2 x 600 + 3 x 970 is not all that is saved
    lengths = {0: 30, 1: 400, 2: 1000, 3: 30, 4: 400, 5: 30}
    assert _of_like_length(lengths) == [[2], [1, 4], [0, 3, 5]]
    assert _of_like_length({}) == []
    assert _of_like_length({n: 7 for n in (4, 2, 9)}) == [[2, 4, 9]]


def test_parts_are_whole_and_change_no_token(monkeypatch: pytest.MonkeyPatch) -> None:
    plan = {"a": [50, 3, 2], "b": [2, 70], "c": [90], "d": [1, 1, 4], "e": [60, 1]}
    together, _ = chat(HuggingFaceEngine(small_llama(), [END]), plan)
    monkeypatch.setattr(hf, "PASS", 1)
    engine = Watched(small_llama(), [END])
    apart, _ = chat(engine, plan)
    assert apart == together
    assert engine.fed_tokens == sum(len(row) for row in together.values()) - len(together)
    # without padding: 284 tokens of prompts and the last one of 6 turns before; d begins with 1
    assert sum(rows * tokens for rows, tokens in engine.passes if tokens > 1) == 289
