"""A server of completions as an engine: what it is sent, what it may get wrong, what is retried."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from made import small_llama
from rewardswap.rollout import connection
from rewardswap.rollout.engine import Request, SamplingParams, complete
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.rollout.server import ServerEngine
from rewardswap.rollout.transcripts import seed_of
from serving import Answer, CompletionServer

ENDS = (1, 2)
SAMPLING = SamplingParams(temperature=0.7, max_tokens=4)
SECRET = "a-key-of-nobody"


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAUSE", 0.0)
    monkeypatch.delenv(connection.KEY, raising=False)


@pytest.fixture
def served() -> Iterator[CompletionServer]:
    with CompletionServer(small_llama()) as server:
        yield server


@pytest.fixture
def engine(served: CompletionServer) -> Iterator[ServerEngine]:
    engine = ServerEngine(ENDS, urls=[served.url + "/"], timeout=20.0)
    yield engine
    engine.close()


def asking(session: str, *context: int, extends: bool = False) -> Request:
    words = np.array(context or (3, 4, 5), dtype=np.int64)
    return Request(session, words, extends, (len(session), 40))


def refused(served: CompletionServer, match: str, **settings: Any) -> None:
    with pytest.raises(ValueError, match=match):
        ServerEngine(ENDS, **{"urls": [served.url], "retries": 0, **settings})


def test_what_is_sent_and_read_are_token_ids(
    served: CompletionServer, engine: ServerEngine
) -> None:
    first, second = asking("a"), asking("a", 8, extends=True)
    (one,) = complete(engine, [first], SAMPLING)
    (two,) = complete(engine, [second], SAMPLING)
    sent = [body for path, body, _ in served.requests if path == "/v1/completions"][-2:]
    assert sent[0]["prompt"] == [3, 4, 5]
    assert sent[1]["prompt"] == [3, 4, 5, *one.ids.tolist(), 8]
    assert sent[0] | {"prompt": None} == {
        "model": "small",
        "prompt": None,
        "add_special_tokens": False,
        "seed": seed_of((1, 40)),
        "temperature": 0.7,
        "top_p": 1.0,
        "top_k": 0,
        "min_p": 0.0,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "max_tokens": 4,
        "stop_token_ids": [1, 2],
        "ignore_eos": True,
        "logprobs": 0,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
    }
    reading = HuggingFaceEngine(small_llama(), ENDS)
    whole = Request("b", np.array(sent[1]["prompt"]), False, (seed_of((1, 40)), 0))
    (expected,) = complete(reading, [whole], SAMPLING)
    assert two.ids.tolist() == expected.ids.tolist()
    assert two.logprobs.tobytes() == expected.logprobs.tobytes()


@pytest.mark.parametrize("trouble", [0, 429, 500, 503])
def test_what_is_lost_is_asked_again_and_counted(
    served: CompletionServer, engine: ServerEngine, trouble: int
) -> None:
    (smooth,) = complete(engine, [asking("a")], SAMPLING)
    engine.release(["a"])
    served.troubles = [trouble] * 3
    (completion,) = complete(engine, [asking("a")], SAMPLING)
    assert engine.retried == 3
    assert completion.ids.tolist() == smooth.ids.tolist()
    engine.release(["a"])
    served.troubles = [trouble] * 4
    with pytest.raises(ValueError, match=r"POST /v1/completions in 4 attempts, the last one: "):
        complete(engine, [asking("a")], SAMPLING)
    assert engine.retried == 6


def test_a_server_that_says_nothing_is_given_up(served: CompletionServer) -> None:
    served.gate.clear()
    refused(served, "in 2 attempts, the last one: ReadTimeout", timeout=0.2, retries=1)


def test_an_error_of_the_request_is_not_asked_again(
    served: CompletionServer, engine: ServerEngine
) -> None:
    served.troubles = [400]
    with pytest.raises(ValueError, match="refused POST /v1/completions: status 400"):
        complete(engine, [asking("a")], SAMPLING)
    assert engine.retried == 0


def test_no_server() -> None:
    with CompletionServer(small_llama()) as gone:
        pass
    refused(gone, r"did not answer GET /v1/models in 1 attempts, the last one: ConnectError")


def test_an_action_in_progress_is_given_up_when_it_is_released(
    served: CompletionServer, engine: ServerEngine
) -> None:
    served.gate.clear()
    engine.submit([asking("a"), asking("bb")], SAMPLING)
    engine.release(["a"])
    served.gate.set()
    assert [completion.session for completion in engine.wait()] == ["bb"]
    assert engine.wait() == []


def test_what_ends_together_comes_in_the_order_of_asking(
    served: CompletionServer, engine: ServerEngine
) -> None:
    names = ["dddd", "a", "ccc", "bb"]
    engine.submit([asking(name) for name in names], SAMPLING)
    for future in list(engine._asked.values()):
        future.answer.result()
    assert [completion.session for completion in engine.wait()] == names


def raw(body: Answer, answer: Answer) -> Answer:
    """As vLLM without --logprobs-mode: log-probs at temperature 1."""
    model = small_llama()
    engine = HuggingFaceEngine(model, ENDS)
    prompt = Request("it", np.array(body["prompt"]), False, (0, 0))
    (greedy,) = complete(engine, [prompt], SamplingParams(temperature=0.0, max_tokens=1))
    answer["choices"][0]["logprobs"]["top_logprobs"] = [{"x": float(greedy.logprobs[0])}]
    return answer


def without_ids(body: Answer, answer: Answer) -> Answer:
    del answer["choices"][0]["token_ids"]
    return answer


def without_logprobs(body: Answer, answer: Answer) -> Answer:
    answer["choices"][0]["logprobs"] = None
    return answer


def with_a_first_token(body: Answer, answer: Answer) -> Answer:
    answer["choices"][0]["prompt_token_ids"] = [9, *body["prompt"]]
    return answer


@pytest.mark.parametrize(
    ("changed", "match"),
    [
        (raw, "start it with --logprobs-mode processed_logprobs"),
        (without_ids, "gives no token ids; take one that knows return_token_ids"),
        (without_logprobs, "gives no log-probs; start it with --max-logprobs"),
        (with_a_first_token, r"reads the tokens \[9, 0\] where it is given \[0\]"),
    ],
)
def test_a_server_of_other_numbers_is_refused_before_anything_is_played(
    changed: Callable[[Answer, Answer], Answer], match: str
) -> None:
    with CompletionServer(small_llama(), changed=changed) as served:
        refused(served, match)


def test_an_action_that_the_server_ends_elsewhere_is_refused(
    served: CompletionServer, engine: ServerEngine
) -> None:
    def cut(body: Answer, answer: Answer) -> Answer:
        choice = answer["choices"][0]
        choice["token_ids"], choice["logprobs"]["token_logprobs"] = [7], [-1.0]
        return answer

    served.changed = cut
    with pytest.raises(ValueError, match="let nothing but its first end token and the cap"):
        complete(engine, [asking("a")], SAMPLING)


def test_the_model_is_the_only_one_or_named(served: CompletionServer) -> None:
    served.models = [{"id": "one", "max_model_len": 99}, {"id": "two", "max_model_len": 256}]
    refused(served, r"has the models \['one', 'two'\], not None; give the name of one")
    refused(served, "not 'three'", model="three")
    named = ServerEngine(ENDS, urls=[served.url], model="one")
    assert named.context_limit == 99
    named.close()
    served.models = [{"id": "one"}]
    refused(served, "does not say max_model_len of 'one'")


def test_the_key_is_sent_and_never_told_even_where_the_server_echoes_it(
    served: CompletionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(connection.KEY, SECRET)
    engine = ServerEngine(ENDS, urls=[served.url])
    assert {key for _, _, key in served.requests} == {f"Bearer {SECRET}"}
    served.troubles = [401]
    with pytest.raises(ValueError, match=rf"\*\*\*.*set {connection.KEY} to its key") as told:
        complete(engine, [asking("a")], SAMPLING)
    engine.close()
    assert SECRET not in str(told.value)


@pytest.mark.parametrize(
    ("url", "key", "match"),
    [
        ("http://someone:word@127.0.0.1:8000", "", "holds credentials"),
        ("127.0.0.1:8000", "", "is none; give one such as"),
        ("ftp://127.0.0.1", "", "is none; give one such as"),
        ("http://127.0.0.1:99999", "", "is none; give one such as"),
        ("http://far.example", SECRET, "plain text to 'far.example'; give an https URL"),
        ("http://127.0.0.1:1", "two\nlines", "characters that no HTTP header may hold"),
    ],
)
def test_urls_and_keys_that_are_refused(
    url: str, key: str, match: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(connection.KEY, key)
    with pytest.raises(ValueError, match=match) as told:
        ServerEngine(ENDS, urls=[url], retries=0)
    assert not key or key not in str(told.value)


def test_proxies_of_the_environment_are_not_used(
    served: CompletionServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "http://127.0.0.1:9")
    ServerEngine(ENDS, urls=[served.url], retries=0).close()


def other(folder: Path) -> Any:
    return folder


def named(folder: Path) -> Any:
    return iter(small_llama(7).state_dict().items())


@pytest.mark.parametrize("given", [other, named])
def test_new_weights_are_those_of_a_server_on_them(
    served: CompletionServer,
    engine: ServerEngine,
    given: Callable[[Path], Any],
    tmp_path: Path,
) -> None:
    small_llama(7).save_pretrained(tmp_path)
    (before,) = complete(engine, [asking("a")], SAMPLING)
    with pytest.raises(ValueError, match="'a' among them; release them before the weights change"):
        engine.update_weights(tmp_path)
    engine.release(["a"])
    engine.update_weights(given(tmp_path))
    (after,) = complete(engine, [asking("a")], SAMPLING)
    with CompletionServer(small_llama(7)) as fresh:
        new = ServerEngine(ENDS, urls=[fresh.url])
        (expected,) = complete(new, [asking("a")], SAMPLING)
        new.close()
    assert after.logprobs.tobytes() == expected.logprobs.tobytes()
    assert after.logprobs.tobytes() != before.logprobs.tobytes()
    assert served.cache_resets == 1


def test_a_server_that_cannot_change_its_weights_says_how(
    served: CompletionServer, engine: ServerEngine, tmp_path: Path
) -> None:
    served.development = False
    with pytest.raises(ValueError, match="start it with VLLM_SERVER_DEV_MODE=1"):
        engine.update_weights(tmp_path)
    served.development = True
    with pytest.raises(ValueError, match=r"status 500.*is not here"):
        engine.update_weights(tmp_path / "nothing")


def test_closing_twice_is_closing(engine: ServerEngine) -> None:
    engine.close()
    engine.close()
