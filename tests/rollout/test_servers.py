"""Several servers as one engine: shared out, lost, killed, and back with new weights only."""

import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import Future
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chatting import TEMPLATE, Doors, small_tokenizer
from made import small_llama
from rewardswap.rollout import connection
from rewardswap.rollout.connection import NoAnswerError, ServerRefusalError
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import Request, complete
from rewardswap.rollout.episodes import EpisodeRequest, Played, play
from rewardswap.rollout.server import ServerEngine
from server_sessions import ENDS, SAMPLING, SESSIONS, asking, tokens, wanted
from serving import CompletionServer

TROUBLES = ("requests_retried", "requests_moved", "servers_lost", "servers_unchecked")
NOTHING = dict.fromkeys(TROUBLES, 0)


@pytest.fixture(autouse=True)
def in_no_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection, "PAUSE", 0.0)
    monkeypatch.delenv(connection.KEY, raising=False)


@pytest.fixture
def servers() -> Iterator[list[CompletionServer]]:
    with ExitStack() as closing:
        yield [closing.enter_context(CompletionServer(small_llama())) for _ in range(3)]


@pytest.fixture
def engine(servers: list[CompletionServer]) -> Iterator[ServerEngine]:
    engine = ServerEngine(ENDS, urls=[server.url for server in servers], retries=0)
    yield engine
    engine.close()


def played(server: CompletionServer) -> int:
    """Actions that a server was asked for, its first probes left out."""
    bodies = [body for path, body, _ in server.requests if path == "/v1/completions"]
    return sum("prompt" in body and body["prompt"] == [3, 4, 5] for body in bodies)


def gone(server: CompletionServer) -> None:
    """Hang up on whatever comes."""
    server.troubles = [0] * 1000


def test_each_server_has_its_part_and_a_session_stays_where_it_is(
    servers: list[CompletionServer], engine: ServerEngine
) -> None:
    first = complete(engine, asking(SESSIONS), SAMPLING)
    assert tokens(first) == wanted()
    shares = [played(server) for server in servers]
    assert sum(shares) == len(SESSIONS) and min(shares) > 0
    more = [
        Request(one.session, np.array([8], dtype=np.int64), True, (n, 41))
        for n, one in enumerate(first)
    ]
    complete(engine, more, SAMPLING)
    for server in servers:
        prompts = [body["prompt"] for path, body, _ in server.requests if "completions" in path]
        begun = sum(prompt == [3, 4, 5] for prompt in prompts)
        assert sum(len(prompt) > 3 for prompt in prompts) == begun
    assert engine.counted() == NOTHING


def test_what_a_lost_server_was_asked_is_answered_once_by_the_others(
    servers: list[CompletionServer], engine: ServerEngine
) -> None:
    gone(servers[1])
    said = complete(engine, asking(SESSIONS), SAMPLING)
    assert [one.session for one in said] == SESSIONS
    assert tokens(said) == wanted()
    counted = engine.counted()
    assert counted["servers_lost"] == 1 and counted["requests_moved"] > 0
    before = len(servers[1].requests)
    engine.release(SESSIONS)
    complete(engine, asking(SESSIONS), SAMPLING)
    assert len(servers[1].requests) == before  # it is not asked again
    assert set(engine.counted().values()) == {0}


def test_a_lost_server_comes_back_with_new_weights_only(
    servers: list[CompletionServer], engine: ServerEngine, tmp_path: Path
) -> None:
    gone(servers[2])
    complete(engine, asking(SESSIONS), SAMPLING)
    engine.release(SESSIONS)
    small_llama(1).save_pretrained(tmp_path)
    engine.update_weights(tmp_path)  # while it is gone
    assert tokens(complete(engine, asking(SESSIONS), SAMPLING)) == wanted(1)
    engine.release(SESSIONS)
    servers[2].troubles = []  # there again, with the weights of the beginning
    before = played(servers[2])
    assert tokens(complete(engine, asking(SESSIONS), SAMPLING)) == wanted(1)
    assert played(servers[2]) == before
    engine.release(SESSIONS)
    small_llama(2).save_pretrained(tmp_path)
    engine.update_weights(tmp_path)
    assert tokens(complete(engine, asking(SESSIONS), SAMPLING)) == wanted(2)
    assert played(servers[2]) > before
    assert engine.counted()["servers_lost"] == 1


def test_a_lost_server_is_looked_for_where_it_is_by_then(
    servers: list[CompletionServer], tmp_path: Path
) -> None:
    """Somebody starts it again at another address: nowhere, then there, with older weights."""
    now: dict[int, str | None] = {0: servers[0].url, 1: None}
    urls = [servers[0].url, servers[1].url]
    engine = ServerEngine(ENDS, urls=urls, retries=1, whereabouts=now.__getitem__)
    gone(servers[1])
    assert tokens(complete(engine, asking(SESSIONS), SAMPLING)) == wanted()
    retried = engine.retried
    assert retried > 0
    for seed in (1, 2):
        engine.release(SESSIONS)
        small_llama(seed).save_pretrained(tmp_path)
        engine.update_weights(tmp_path)
        assert tokens(complete(engine, asking(SESSIONS), SAMPLING)) == wanted(seed)
        assert (played(servers[2]) > 0) == (seed == 2)
        now[1] = servers[2].url
    assert engine.retried == retried  # what was counted at the old address is not forgotten
    assert engine.counted()["servers_lost"] == 1
    engine.close()


def test_a_lost_server_that_is_back_with_another_context_is_refused(
    servers: list[CompletionServer], tmp_path: Path
) -> None:
    urls = [servers[0].url, servers[1].url]
    engine = ServerEngine(ENDS, urls=urls, retries=0, whereabouts=lambda n: servers[n + 1].url)
    gone(servers[1])
    complete(engine, asking(SESSIONS), SAMPLING)
    engine.release(SESSIONS)
    servers[2].models = [{"id": "small", "max_model_len": 128}]
    small_llama(1).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="the servers' max_model_len differ"):
        engine.update_weights(tmp_path)
    engine.close()


def test_a_push_that_is_cut_leaves_a_server_out(
    servers: list[CompletionServer], engine: ServerEngine, tmp_path: Path
) -> None:
    """Its weights may be half of one version and half of another: it is asked nothing."""
    small_llama(1).save_pretrained(tmp_path)
    gone(servers[0])
    engine.update_weights(tmp_path)
    servers[0].troubles = []
    before = played(servers[0])
    assert tokens(complete(engine, asking(SESSIONS), SAMPLING)) == wanted(1)
    assert played(servers[0]) == before
    assert engine.counted() == {**NOTHING, "servers_lost": 1}


def test_a_server_that_says_it_could_not_load_is_no_lost_one(
    servers: list[CompletionServer], engine: ServerEngine, tmp_path: Path
) -> None:
    small_llama(1).save_pretrained(tmp_path)
    servers[0].troubles = [500]
    with pytest.raises(ValueError, match=r"did not answer POST /collective_rpc.*status 500"):
        engine.update_weights(tmp_path)


def test_a_server_started_again_unnoticed_is_noticed_behind_the_rollout(
    servers: list[CompletionServer], engine: ServerEngine, tmp_path: Path
) -> None:
    """It answers at once, with the weights of its folder: nobody was lost."""
    small_llama(1).save_pretrained(tmp_path)
    engine.update_weights(tmp_path)
    complete(engine, asking(SESSIONS), SAMPLING)
    engine.release(SESSIONS)
    servers[1].version = "default"
    with pytest.raises(ValueError, match=f"{servers[1].url} has other weights than it was given"):
        engine.counted()
    engine.update_weights(tmp_path)  # with these it is as good as any
    assert tokens(complete(engine, asking(SESSIONS), SAMPLING)) == wanted(1)
    gone(servers[2])  # behind its last answer: the next weights will find out
    assert engine.counted() == {**NOTHING, "servers_unchecked": 1}


def lost_and_back(server: CompletionServer, engine: ServerEngine) -> None:
    """It hangs up in a collection, and answers behind it."""
    gone(server)
    complete(engine, asking(SESSIONS), SAMPLING)
    engine.release(SESSIONS)
    server.troubles = []


def test_a_lost_server_is_looked_at_anew_at_its_old_address(
    servers: list[CompletionServer], engine: ServerEngine, tmp_path: Path
) -> None:
    """Started again with other settings it would sample in a way that nobody checked."""
    lost_and_back(servers[1], engine)
    servers[1].models = [{"id": "small", "max_model_len": 64}]
    small_llama(1).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="the servers' max_model_len differ"):
        engine.update_weights(tmp_path)


def test_a_lost_server_with_other_logprobs_is_refused_once_it_has_weights(
    servers: list[CompletionServer], engine: ServerEngine, tmp_path: Path
) -> None:
    lost_and_back(servers[1], engine)

    def raw(body: Any, answer: Any) -> Any:
        """Whatever the temperature, the same."""
        answer["choices"][0]["logprobs"]["top_logprobs"][0]["likeliest"] = -1.0
        return answer

    servers[1].changed = raw
    asked = len(servers[1].requests)
    small_llama(1).save_pretrained(tmp_path)
    with pytest.raises(ValueError, match="start it with --logprobs-mode processed_logprobs"):
        engine.update_weights(tmp_path)
    paths = [path for path, _, _ in servers[1].requests[asked:]]
    assert paths.index("/collective_rpc") < paths.index("/v1/completions")  # nothing before weights


def test_what_went_wrong_first_is_what_is_said(tmp_path: Path) -> None:
    """Not that the server has other weights by then."""
    with CompletionServer(small_llama()) as server:
        engine = ServerEngine(ENDS, urls=[server.url])
        small_llama(1).save_pretrained(tmp_path)
        engine.update_weights(tmp_path)

        def stop() -> None:
            server.version = "default"
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            rollout(engine, between_turns=stop)
        with pytest.raises(ValueError, match="has other weights than it was given"):
            rollout(engine)
        engine.close()


@pytest.mark.parametrize("trouble", [0, 400])
def test_sessions_answered_beside_one_that_broke_can_be_released(trouble: int) -> None:
    with CompletionServer(small_llama()) as server:
        engine = ServerEngine(ENDS, urls=[server.url], retries=0)
        server.gate.clear()
        engine.submit(asking(SESSIONS[:1]), SAMPLING)
        engine.submit(asking(SESSIONS[1:]), SAMPLING)
        while sum("completions" in path for path, _, _ in server.requests) < len(SESSIONS):
            pass
        server.gate.set()
        engine._asked[SESSIONS[0]].answer.result()
        last = engine._asked[SESSIONS[-1]]
        broken: Future[Any] = Future()
        error = NoAnswerError("gone", None) if trouble == 0 else ServerRefusalError("no", trouble)
        broken.set_exception(error)
        engine._asked[SESSIONS[-1]] = replace(last, answer=broken)
        with pytest.raises(ValueError, match=r"gone|no"):
            engine.wait()
        engine.release(SESSIONS)
        engine.close()


@pytest.mark.parametrize("end", ["", "/"])
def test_a_server_is_named_once(servers: list[CompletionServer], end: str) -> None:
    url = servers[0].url
    with pytest.raises(ValueError, match="a server is named twice"):
        ServerEngine(ENDS, urls=[url, url + end])


def test_the_folder_of_an_exchange_is_looked_for_first(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"exchange .*nowhere is no folder"):
        ServerEngine(ENDS, urls=["http://127.0.0.1:9"], exchange=tmp_path / "nowhere")


def test_two_who_load_into_one_server_are_told(
    servers: list[CompletionServer], tmp_path: Path
) -> None:
    small_llama(1).save_pretrained(tmp_path)
    one, other = (ServerEngine(ENDS, urls=[servers[0].url]) for _ in range(2))
    for engine in (one, other):
        engine.update_weights(tmp_path)
        complete(engine, asking(SESSIONS), SAMPLING)
    with pytest.raises(ValueError, match="somebody else loads into it"):
        one.counted()
    other.counted()
    for engine in (one, other):
        engine.close()


def test_weights_by_nccl_need_a_gpu_and_vllm(monkeypatch: pytest.MonkeyPatch) -> None:
    """Said before a server is looked for."""
    nowhere = ["http://127.0.0.1:1"]
    monkeypatch.setattr("torch.cuda.is_available", lambda: False)
    with pytest.raises(ValueError, match="nccl goes from GPU to GPU, and there is none here"):
        ServerEngine(ENDS, urls=nowhere, transfer="nccl")
    monkeypatch.setattr("torch.cuda.is_available", lambda: True)
    monkeypatch.setattr("torch.cuda.current_device", lambda: 0)
    monkeypatch.setitem(sys.modules, "vllm", None)
    with pytest.raises(ValueError, match="transfer nccl needs vLLM here too"):
        ServerEngine(ENDS, urls=nowhere, transfer="nccl")


def test_when_all_are_lost_the_last_ones_reason_is_told(
    servers: list[CompletionServer], engine: ServerEngine
) -> None:
    for server in servers:
        gone(server)
    engine.submit(asking(SESSIONS), SAMPLING)
    with pytest.raises(ValueError, match="did not answer POST /v1/completions in 1 attempts"):
        for _ in SESSIONS:
            engine.wait()
    with pytest.raises(ValueError, match="did not answer"):
        engine.submit(asking(["another"]), SAMPLING)


def test_servers_of_different_contexts_are_refused(servers: list[CompletionServer]) -> None:
    servers[1].models = [{"id": "small", "max_model_len": 128}]
    with pytest.raises(ValueError, match="the servers' max_model_len differ"):
        ServerEngine(ENDS, urls=[server.url for server in servers])


@contextmanager
def in_a_process(seed: int) -> Iterator[tuple[str, "subprocess.Popen[str]"]]:
    script = Path(__file__).parents[1] / "serving_process.py"
    process = subprocess.Popen(
        [sys.executable, str(script), str(seed)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env={"PYTHONPATH": str(script.parent), "OMP_NUM_THREADS": "1"},
    )
    try:
        assert process.stdout is not None
        yield process.stdout.readline().strip(), process
    finally:
        process.kill()
        process.communicate()


def rollout(engine: Any, **settings: Any) -> Played:
    task = Doors().tasks("all")[0]
    return play(
        [EpisodeRequest(task, index) for index in range(8)],
        Doors(),
        engine,
        ChatContext(small_tokenizer(TEMPLATE), "", ENDS),
        sampling=SAMPLING,
        seed=0,
        policy_version=0,
        turn_limit=4,
        **settings,
    )


def test_a_server_killed_in_the_middle_of_a_rollout_changes_no_episode() -> None:
    with in_a_process(0) as (one, _), in_a_process(0) as (other, process):
        engine = ServerEngine(ENDS, urls=[one], retries=1)
        alone = rollout(engine)
        engine.close()
        engine = ServerEngine(ENDS, urls=[one, other], retries=1)
        turns = iter(range(100))

        def kill_it() -> None:
            if next(turns) == 3:
                process.kill()

        shared = rollout(engine, between_turns=kill_it)
        engine.close()
    assert shared.counters["servers_lost"] == 1 and shared.counters["requests_moved"] > 0
    assert len(shared.trajectories) == 8 and not shared.failures
    for a, b in zip(alone.trajectories, shared.trajectories, strict=True):
        assert a.index == b.index
        assert [t.action_ids.tolist() for t in a.turns] == [t.action_ids.tolist() for t in b.turns]
    same = ("environment_steps", "generated_tokens", "prompt_tokens")
    assert [alone.counters[n] for n in same] == [shared.counters[n] for n in same]
