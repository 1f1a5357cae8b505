"""Sampling by servers elsewhere: vLLM's, or such that answer as it does."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any
from uuid import uuid4
from zlib import crc32

from safetensors.torch import save_file

from rewardswap.errors import EngineError
from rewardswap.rollout.config import LOCAL, Transfer
from rewardswap.rollout.connection import NoAnswerError
from rewardswap.rollout.engine import Completion, Request, SamplingParams, Weights
from rewardswap.rollout.served import ServedModel
from rewardswap.rollout.transcripts import Transcripts, seed_of
from rewardswap.rollout.transfer import refuse_without
from rewardswap.rollout.weights import named_weights
from rewardswap.rollout.wire import said
from rewardswap.whole import naming


@dataclass(frozen=True)
class Asked:
    """An action that a session waits for, and all that it takes to ask for it again."""

    server: int
    prompt: list[int]
    sampling: SamplingParams
    seed: int
    answer: "Future[Any]"


class ServerEngine:
    """Samples by POST /v1/completions: token ids and their log-probs over HTTP.

    Requests run at once, `at_once` at a time and server; each has its own seed, so a lost one is
    asked again and says the same. `model` is the name under which the servers have it (none: their
    only one). `timeout` in seconds. Weights go through a folder in `exchange` (none: the temporary
    folder), which the servers must see too, or by NCCL, as `transfer` says.

    Of several servers each has a part of the sessions, by their names. One that does not answer is
    lost: what it was asked is asked of the others, and it comes back with the next weights that it
    loads, never with older ones. `whereabouts` says at which address a lost one is by then, none
    while it is nowhere (without it: where it was). Raises ValueError for a server that does not
    answer at first, gives no token ids or no log-probs, or gives those before the temperature, for
    servers whose contexts differ, when all are lost, for an `exchange` that is no folder, and for
    NCCL without vLLM or a GPU.
    """

    def __init__(
        self,
        end_token_ids: Sequence[int],
        *,
        urls: Sequence[str] = (LOCAL,),
        model: str | None = None,
        timeout: float = 600.0,
        retries: int = 3,
        at_once: int = 256,
        transfer: Transfer = "folder",
        exchange: Path | None = None,
        whereabouts: Callable[[int], str | None] | None = None,
    ) -> None:
        if transfer == "nccl":
            refuse_without()
        if exchange is not None and not exchange.is_dir():
            raise EngineError(f"exchange {exchange} is no folder; give one that the servers see")
        self._transfer, self._exchange, self._whereabouts = transfer, exchange, whereabouts
        self._serve = partial(
            ServedModel,
            model=model,
            end_token_ids=end_token_ids,
            timeout=timeout,
            retries=retries,
            at_once=at_once,
        )
        self._servers: list[ServedModel] = []
        self._retried_before = 0
        """By connections that were left for a server's new address."""
        self._lost: dict[int, NoAnswerError] = {}
        self._asked: dict[str, Asked] = {}
        self._moved = self._losses = self._unchecked = 0
        self._told: dict[str, int] = {}
        try:
            for url in urls:
                self._servers.append(self._serve(url))
            named = [server.url for server in self._servers]  # in one spelling
            if len(set(named)) < len(named):
                raise EngineError(f"a server is named twice in {', '.join(urls)}; name each once")
            self._transcripts = Transcripts(self._common_limit(), end_token_ids)
        except BaseException:
            self.close()
            raise

    @property
    def context_limit(self) -> int:
        """Most tokens of a session: the servers' `max_model_len`."""
        return self._transcripts.sessions.context_limit

    @property
    def retried(self) -> int:
        """Requests that were asked again so far, of the same server."""
        now = sum(server.connection.retried for server in self._servers)
        return self._retried_before + now

    def counted(self) -> Mapping[str, int]:
        """What went wrong since this was asked last, behind a collection.

        Raises EngineError for a server that has other weights than those that it was given: it was
        started again unnoticed, or somebody else loads into it.
        """
        self._refuse_other_weights()
        now = {
            "requests_retried": self.retried,
            "requests_moved": self._moved,
            "servers_lost": self._losses,
            "servers_unchecked": self._unchecked,
        }
        new = {name: count - self._told.get(name, 0) for name, count in now.items()}
        self._told = now
        return new

    def submit(self, requests: Sequence[Request], sampling: SamplingParams) -> None:
        """Send requests; raises ValueError also where vLLM would draw other numbers."""
        self._refuse_none()
        prompts = self._transcripts.ask(requests, sampling)
        for request, prompt in zip(requests, prompts, strict=True):
            self._ask(request.session, prompt, sampling, seed_of(request.random_key))

    def wait(self) -> list[Completion]:
        """What the servers have answered, in the order of asking."""
        answers: dict[str, Any] = {}
        while self._asked and not answers:
            wait([asked.answer for asked in self._asked.values()], return_when=FIRST_COMPLETED)
            for session, asked in list(self._asked.items()):
                if not asked.answer.done() or self._asked[session] is not asked:
                    continue  # not yet, or moved to another server in this very loop
                try:
                    answers[session] = asked.answer.result()
                except NoAnswerError as error:
                    self._lose(asked.server, error)
                    continue
                del self._asked[session]
        return [
            self._transcripts.answer(session, *said(answer)) for session, answer in answers.items()
        ]

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions; the connection of an action in progress is closed, which ends it."""
        for session in self._transcripts.release(sessions):
            asked = self._asked.pop(session, None)  # none: answered, and then another one broke
            if asked is not None:
                asked.answer.cancel()

    def update_weights(self, weights: Weights) -> None:
        """Let the servers load weights in place, and forget their caches.

        It needs vLLM's endpoints for development. Raises ValueError where they are not there, where
        a server answers that it could not, and where none is left.
        """
        self._transcripts.sessions.refuse_live()
        version = uuid4().hex
        with self._begun(weights, version) as loading:
            for number, end in loading.items():
                try:
                    end()
                    if number in self._lost:  # it may have been started again, otherwise
                        self._servers[number].probe()
                except NoAnswerError as error:
                    if error.status is not None:
                        raise
                    self._lose(number, error)
                else:
                    self._lost.pop(number, None)
        self._refuse_none()

    def close(self) -> None:
        """Close the connections; the engine is not used again."""
        for server in self._servers:
            server.close()

    @contextmanager
    def _begun(self, weights: Weights, version: str) -> Iterator[Mapping[int, Callable[[], None]]]:
        """What ends the loading of each server that is there."""
        there = [n for n in range(len(self._servers)) if n not in self._lost or self._is_back(n)]
        if self._transfer == "nccl":
            given = named_weights(weights)
            yield {n: partial(self._servers[n].receive, given, version) for n in there}
            return
        with self._as_folder(weights) as folder:
            begun = {n: self._servers[n].begin_loading(folder) for n in there}
            yield {
                n: partial(self._servers[n].end_loading, loading, version)
                for n, loading in begun.items()
            }

    def _refuse_other_weights(self) -> None:
        for number, server in enumerate(self._servers):
            if number in self._lost:
                continue
            its_own = server.has_its_weights()
            if its_own is None:
                self._unchecked += 1
            elif not its_own:
                raise EngineError(
                    f"the server at {server.url} has other weights than it was given: it was "
                    "started again meanwhile, or somebody else loads into it; what it sampled is "
                    "not used, go on from the last checkpoint"
                )

    def _common_limit(self) -> int:
        limits = {server.url: server.context_limit for server in self._servers}
        if len(set(limits.values())) > 1:
            raise EngineError(
                f"the servers' max_model_len differ, {limits}: an episode could go on at one and "
                "not at another; start them alike"
            )
        return next(iter(limits.values()))

    def _ask(self, session: str, prompt: list[int], sampling: SamplingParams, seed: int) -> None:
        """Ask the session's server, the same for all of its turns while none is lost."""
        there = [number for number in range(len(self._servers)) if number not in self._lost]
        number = there[crc32(session.encode()) % len(there)]
        answer = self._servers[number].begin(prompt, sampling, seed)
        self._asked[session] = Asked(number, prompt, sampling, seed, answer)

    def _lose(self, number: int, error: NoAnswerError) -> None:
        """Ask the others what a server was asked; raises the error where there are no others."""
        if number not in self._lost:
            self._losses += 1
        self._lost[number] = error
        self._refuse_none()
        for session, asked in list(self._asked.items()):
            if asked.server == number:
                asked.answer.cancel()
                self._moved += 1
                self._ask(session, asked.prompt, asked.sampling, asked.seed)

    def _is_back(self, number: int) -> bool:
        """Whether a lost server answers again, where it is now."""
        server = self._servers[number]
        url = server.url if self._whereabouts is None else self._whereabouts(number)
        if url is None:
            return False
        if url == server.url:
            there = server.is_there()
            self._common_limit()
            return there
        try:
            self._servers[number] = self._serve(url)
        except NoAnswerError:
            return False
        self._retried_before += server.connection.retried
        server.close()
        self._common_limit()
        return True

    def _refuse_none(self) -> None:
        if len(self._lost) == len(self._servers):
            raise list(self._lost.values())[-1]

    @contextmanager
    def _as_folder(self, weights: Weights) -> Iterator[Path]:
        if isinstance(weights, Path):
            yield weights.absolute()
            return
        with TemporaryDirectory(dir=self._exchange) as name:
            copies = {key: value.detach().cpu().clone() for key, value in weights}
            with naming(Path(name)):
                save_file(copies, Path(name) / "model.safetensors")
            yield Path(name)
