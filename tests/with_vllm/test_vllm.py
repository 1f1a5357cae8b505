"""vLLM's tokens and log-probs are those of our contract, against the Hugging Face engine."""

from collections.abc import Callable, Sequence
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from engines import ENDS, vllm_engine, wide_llama
from rewardswap.rollout.engine import (
    Completion,
    Request,
    RolloutEngine,
    SamplingParams,
    complete,
    random_key,
)
from rewardswap.rollout.hf import HuggingFaceEngine

Make = Callable[[], Any]
NAMES = [f"n{number}" for number in range(12)]
LONG = 150
"""Tokens of a prompt that vLLM keeps: a block of its cache on a CPU holds 128."""


def asking(session: str, turn: int = 0, length: int = 0) -> Request:
    stream = np.random.default_rng([int(session[1:]), turn])
    context = stream.integers(3, 30, length or 4 + int(session[1:]) % 5)
    return Request(session, context, turn > 0, random_key(0, 0, session, 0, turn))


def rows(
    engine: RolloutEngine, names: Sequence[str], sampling: SamplingParams, turns: int = 3
) -> dict[str, tuple[list[int], list[tuple[int, float]]]]:
    """Tokens of each session after `turns`, and (place, log-prob) of what was sampled."""
    played: dict[str, tuple[list[int], list[tuple[int, float]]]] = {n: ([], []) for n in names}
    for turn in range(turns):
        asked = [asking(name, turn) for name in names]
        for request, completion in zip(asked, complete(engine, asked, sampling), strict=True):
            row, sampled = played[request.session]
            row += request.context_ids.tolist()
            sampled += enumerate(completion.logprobs.tolist(), len(row))
            row += completion.ids.tolist()
    engine.release(names)
    return played


def distribution(model: Any, row: Sequence[int], temperature: float = 1.0) -> torch.Tensor:
    logits = model(torch.tensor(row)[None]).logits[0].detach()
    return torch.log_softmax(logits / temperature, dim=-1)


@pytest.mark.parametrize("temperature", [1.0, 0.6, 0.0])
def test_every_logprob_is_that_of_a_pass_over_the_whole_row(vllm: Make, temperature: float) -> None:
    model = wide_llama()
    played = rows(vllm(), NAMES, SamplingParams(temperature=temperature, max_tokens=8))
    gaps = []
    for row, sampled in played.values():
        every = distribution(model, row, temperature or 1.0)
        for place, logprob in sampled:
            gaps.append(abs(logprob - float(every[place - 1, row[place]])))
            if temperature == 0:
                assert row[place] == int(every[place - 1].argmax())
    assert len(gaps) > 50
    print(f"largest gap at temperature {temperature}: {max(gaps):.1e}")
    assert max(gaps) < 1e-4


@pytest.mark.parametrize(
    "truncated", [{"top_p": 0.7}, {"top_k": 4}, {"min_p": 0.2}, {"top_k": 6, "top_p": 0.7}]
)
def test_truncation_keeps_the_tokens_of_our_own_and_normalises_again(
    vllm: Make, truncated: dict[str, Any]
) -> None:
    sampling = SamplingParams(temperature=0.8, max_tokens=1, **truncated)
    names = [f"n{number}" for number in range(1000)]
    asked = [
        Request(name, np.array([5, 6, 7]), False, random_key(1, 0, name, 0, 0)) for name in names
    ]
    theirs = complete(vllm(), asked, sampling)
    ours = complete(HuggingFaceEngine(wide_llama(), ENDS), asked, sampling)

    def of(completions: Sequence[Completion]) -> dict[int, float]:
        return {int(c.ids[0]): float(c.logprobs[0]) for c in completions}

    assert of(theirs) == pytest.approx(of(ours), abs=1e-4)
    assert len(of(ours)) > 1


def test_tokens_belong_to_the_key_whoever_else_is_there(vllm: Make) -> None:
    sampling = SamplingParams(max_tokens=8)
    together, alone = rows(vllm(), NAMES, sampling), vllm()
    backwards = rows(vllm(), NAMES[::-1], sampling)
    for name in NAMES:
        (apart,) = rows(alone, [name], sampling).values()
        for other in (together[name], backwards[name]):
            assert apart[0] == other[0]
            assert [p for _, p in apart[1]] == pytest.approx([p for _, p in other[1]], abs=1e-4)


def test_another_key_says_something_else(vllm: Make) -> None:
    engine = vllm()
    said = set()
    for seed, version, index, turn in product(range(2), repeat=4):
        request = Request(
            "n1", np.array([5, 6]), False, random_key(seed, version, "t", index, turn)
        )
        (completion,) = complete(engine, [request], SamplingParams(max_tokens=8))
        said.add(tuple(completion.ids))
        engine.release(["n1"])
    assert len(said) == 16


def test_frequencies_follow_the_distribution(vllm: Make) -> None:
    names = [f"n{number}" for number in range(2000)]
    asked = [Request(n, np.array([3, 4, 5]), False, random_key(0, 0, n, 0, 0)) for n in names]
    drawn = complete(vllm(), asked, SamplingParams(max_tokens=1))
    counts = np.bincount([int(c.ids[0]) for c in drawn], minlength=30) / len(drawn)
    expected = distribution(wide_llama(), [3, 4, 5])[-1].exp().numpy()
    # 5 standard errors of the likeliest token's share
    assert np.abs(counts - expected).max() < 5 * np.sqrt(0.25 / len(drawn))


@pytest.mark.parametrize("as_folder", [True, False])
def test_new_weights_say_what_a_new_engine_says(
    vllm: Make, tmp_path: Path, as_folder: bool
) -> None:
    """Faults 25: without forgetting what was read, the long prompt is answered as before."""
    new = wide_llama(7)
    new.save_pretrained(tmp_path)
    engine, sampling = vllm(), SamplingParams(max_tokens=8)
    asked = [asking(name, length=LONG) for name in NAMES]
    before = complete(engine, asked, sampling)
    with pytest.raises(ValueError, match="'n0' among them; release them"):
        engine.update_weights(tmp_path)
    engine.release(NAMES)
    engine.update_weights(tmp_path if as_folder else iter(new.state_dict().items()))
    after = complete(engine, asked, sampling)
    fresh = vllm_engine(tmp_path)
    for one, other in zip(after, complete(fresh, asked, sampling), strict=True):
        assert one.ids.tolist() == other.ids.tolist()
        assert one.logprobs.tobytes() == other.logprobs.tobytes()
    assert [c.logprobs.tobytes() for c in before] != [c.logprobs.tobytes() for c in after]


def test_weights_of_another_model_change_nothing(vllm: Make, tmp_path: Path) -> None:
    engine, sampling = vllm(), SamplingParams(max_tokens=8)
    (before,) = complete(engine, [asking("n1")], sampling)
    engine.release(["n1"])
    state = wide_llama(7).state_dict()
    with pytest.raises(ValueError, match=r"'model\.norm\.weight' is missing"):
        engine.update_weights((n, w) for n, w in state.items() if n != "model.norm.weight")
    with pytest.raises(ValueError, match="has the shape"):
        engine.update_weights({**state, "model.norm.weight": torch.ones(3)}.items())
    with pytest.raises(ValueError, match="no safetensors files"):
        engine.update_weights(tmp_path)
    (after,) = complete(engine, [asking("n1")], sampling)
    assert after.logprobs.tobytes() == before.logprobs.tobytes()


def test_a_tied_head_may_come_along(tmp_path: Path) -> None:
    wide_llama(tie_word_embeddings=True).save_pretrained(tmp_path)
    new = wide_llama(7, tie_word_embeddings=True)
    engine, sampling = vllm_engine(tmp_path), SamplingParams(max_tokens=8)
    engine.update_weights(new.state_dict().items())
    (completion,) = complete(engine, [asking("n1")], sampling)
    row = asking("n1").context_ids.tolist()
    every = distribution(new, [*row, *completion.ids])
    expected = [float(every[len(row) - 1 + n, token]) for n, token in enumerate(completion.ids)]
    assert completion.logprobs.tolist() == pytest.approx(expected, abs=1e-4)


def test_the_end_tokens_of_the_folder_end_nothing(wide_folder: Path) -> None:
    engine = vllm_engine(wide_folder, ends=[7])
    said = complete(engine, [asking(name) for name in NAMES], SamplingParams(max_tokens=40))
    assert any(1 in completion.ids[:-1] for completion in said)
    assert {bool(c.ids[-1] == 7) for c in said if not c.truncated} == {True}


def test_a_released_action_is_aborted(vllm: Make) -> None:
    engine = vllm()
    engine.submit([asking("n1"), asking("n2")], SamplingParams(max_tokens=40))
    engine.release(["n1", "n2"])
    assert not engine._engine.has_unfinished_requests()


def test_earlier_turns_come_from_the_cache(vllm: Make) -> None:
    engine = vllm()
    cached = []
    step = engine._engine.step

    def watched() -> Any:
        outputs = step()
        cached.extend(output.num_cached_tokens for output in outputs)
        return outputs

    engine._engine.step = watched
    try:
        complete(engine, [asking("n1", length=LONG)], SamplingParams(max_tokens=8))
        complete(engine, [asking("n1", turn=1)], SamplingParams(max_tokens=8))
    finally:
        engine._engine.step = step
    assert cached == [0, 128]


def test_torchs_own_stream_is_left_alone(vllm: Make) -> None:
    engine = vllm()
    torch.manual_seed(3)
    expected = torch.rand(1)
    torch.manual_seed(3)
    complete(engine, [asking("n1")], SamplingParams(max_tokens=8))
    assert torch.equal(torch.rand(1), expected)


def test_sleeping_needs_a_gpu_and_says_so(vllm: Make, wide_folder: Path) -> None:
    engine = vllm()
    with pytest.raises(ValueError, match="cannot sleep; build it with sleeps=True, on a GPU"):
        engine.sleep()
    engine.wake()
    if not torch.cuda.is_available():
        with pytest.raises(ValueError, match="Sleep mode is not supported"):
            vllm_engine(wide_folder, sleeps=True)


def test_what_would_be_other_numbers_is_refused(vllm: Make) -> None:
    engine = vllm()
    with pytest.raises(ValueError, match="vLLM cuts by min_p first"):
        engine.submit([asking("n1")], SamplingParams(min_p=0.1, top_p=0.9))
    assert engine.wait() == []
