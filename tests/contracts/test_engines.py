"""What every engine keeps to."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from made import small_llama
from rewardswap.rollout.engine import (
    Request,
    RolloutEngine,
    SamplingParams,
    complete,
    random_key,
)
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.rollout.scripted import ScriptedEngine

ENDS = (1, 2)
SAYINGS = ([5, 6, 1], [7, 2, 9], [4, 4, 4, 4, 4, 4, 4], [2], [8, 3, 9, 1])


def scripted() -> RolloutEngine:
    def say(session: str, turn: int) -> list[int]:
        return SAYINGS[(len(session) + turn) % len(SAYINGS)]

    return ScriptedEngine(say, ENDS, context_limit=256)


def hugging_face() -> RolloutEngine:
    return HuggingFaceEngine(small_llama(), ENDS)


@pytest.fixture(params=["scripted", "hugging_face", "server", "vllm", "vllm_server"])
def make(request: pytest.FixtureRequest) -> Callable[[], RolloutEngine]:
    maker = {"scripted": scripted, "hugging_face": hugging_face}.get(request.param)
    found: Callable[[], RolloutEngine] = maker or request.getfixturevalue(request.param)
    return found


SESSIONS = ["a", "bb", "ccc", "dddd", "eeeee"]
SAMPLING = SamplingParams(max_tokens=5)


def asking(session: str, turn: int = 0, **changes: Any) -> Request:
    context = np.arange(3, 3 + len(session) + turn, dtype=np.int64)
    settings: dict[str, Any] = {
        "session": session,
        "context_ids": context,
        "extends": turn > 0,
        "random_key": random_key(0, 0, session, 0, turn),
    }
    return Request(**{**settings, **changes})


def test_it_is_an_engine(make: Callable[[], RolloutEngine]) -> None:
    engine = make()
    assert isinstance(engine, RolloutEngine)
    assert engine.context_limit == 256
    assert complete(engine, [], SAMPLING) == []
    assert engine.wait() == []


def test_completions_keep_their_form(make: Callable[[], RolloutEngine]) -> None:
    engine = make()
    kinds = set()
    for turn in range(4):
        for completion in complete(engine, [asking(s, turn) for s in SESSIONS], SAMPLING):
            ended = np.isin(completion.ids, ENDS)
            assert 1 <= len(completion.ids) == len(completion.logprobs) <= SAMPLING.max_tokens
            assert (completion.ids.dtype, completion.logprobs.dtype) == (np.int64, np.float32)
            assert np.isfinite(completion.logprobs).all() and (completion.logprobs <= 0).all()
            assert not ended[:-1].any()
            assert completion.truncated == (not ended[-1])
            kinds.add(completion.truncated)
    assert kinds == {True, False}


def test_order_is_that_of_the_requests(make: Callable[[], RolloutEngine]) -> None:
    forwards, backwards = make(), make()
    for turn in range(3):
        asked = [asking(session, turn) for session in SESSIONS]
        one = complete(forwards, asked, SAMPLING)
        other = complete(backwards, asked[::-1], SAMPLING)[::-1]
        assert [c.ids.tolist() for c in one] == [c.ids.tolist() for c in other]
    assert len({tuple(c.ids) for c in one}) > 1


def test_two_engines_say_the_same_to_the_bit(make: Callable[[], RolloutEngine]) -> None:
    asked = [asking(session) for session in SESSIONS]
    one, other = complete(make(), asked, SAMPLING), complete(make(), asked, SAMPLING)
    for a, b in zip(one, other, strict=True):
        assert a.ids.tolist() == b.ids.tolist()
        assert a.logprobs.tobytes() == b.logprobs.tobytes()


def test_released_sessions_are_gone(make: Callable[[], RolloutEngine]) -> None:
    engine = make()
    complete(engine, [asking("a"), asking("bb")], SAMPLING)
    engine.release(["a", "never there"])
    with pytest.raises(ValueError, match="'a' extends a prompt that is not there"):
        complete(engine, [asking("a", turn=1)], SAMPLING)
    assert len(complete(engine, [asking("bb", turn=1), asking("a")], SAMPLING)) == 2


def test_a_session_may_start_anew(make: Callable[[], RolloutEngine]) -> None:
    engine = make()
    complete(engine, [asking("a")], SAMPLING)
    (again,) = complete(engine, [asking("a", turn=1, extends=False)], SAMPLING)
    assert len(again.ids) >= 1


def test_bad_requests_are_refused(make: Callable[[], RolloutEngine]) -> None:
    with pytest.raises(ValueError, match="name the same session"):
        complete(make(), [asking("a"), asking("a")], SAMPLING)
    long = np.full(252, 3, dtype=np.int64)
    with pytest.raises(ValueError, match=r"'a' needs 257 tokens with its action.* 256"):
        complete(make(), [asking("a", context_ids=long)], SAMPLING)
    assert len(complete(make(), [asking("a", context_ids=long[1:])], SAMPLING)) == 1


def test_a_session_goes_on_while_others_act(make: Callable[[], RolloutEngine]) -> None:
    together = make()
    asked = [asking(session, turn) for turn in range(3) for session in SESSIONS]
    said: dict[str, list[list[int]]] = {session: [] for session in SESSIONS}
    together.submit(asked[: len(SESSIONS)], SAMPLING)
    while any(len(turns) < 3 for turns in said.values()):
        for completion in together.wait():
            turns = said[completion.session]
            turns.append(completion.ids.tolist())
            if len(turns) < 3:
                together.submit([asking(completion.session, len(turns))], SAMPLING)
    lock_step = make()
    for turn in range(3):
        asked = [asking(session, turn) for session in SESSIONS]
        for completion in complete(lock_step, asked, SAMPLING):
            assert said[completion.session][turn] == completion.ids.tolist()


def test_a_session_may_be_released_in_the_middle_of_its_action(
    make: Callable[[], RolloutEngine],
) -> None:
    engine, other = make(), make()
    engine.submit([asking("a"), asking("bb")], SAMPLING)
    with pytest.raises(ValueError, match="'a' waits for an action already"):
        engine.submit([asking("a", 1)], SAMPLING)
    engine.release(["a"])
    (completion,) = engine.wait()
    (alone,) = complete(other, [asking("bb")], SAMPLING)
    assert (completion.session, completion.ids.tolist()) == ("bb", alone.ids.tolist())
    assert engine.wait() == []
    assert len(complete(engine, [asking("a")], SAMPLING)) == 1


def test_weights_stay_while_a_session_lives(make: Callable[[], RolloutEngine]) -> None:
    engine = make()
    complete(engine, [asking("a")], SAMPLING)
    with pytest.raises(ValueError, match="'a' among them; release them before"):
        engine.update_weights([])
