"""Sampling by a server elsewhere: vLLM's, or one that answers as it does."""

from collections.abc import Iterable, Iterator, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, wait
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from safetensors.torch import save_file

from rewardswap.rollout.config import LOCAL
from rewardswap.rollout.connection import Connection, ServerRefusalError
from rewardswap.rollout.engine import Completion, Request, SamplingParams, Weights
from rewardswap.rollout.transcripts import Transcripts, seed_of
from rewardswap.rollout.wire import (
    completion_request,
    likeliest_logprob,
    refuse_other_prompt,
    said,
)
from rewardswap.whole import naming

PROBES = ([0], [1], [2])
"""Prompts of the first requests: every vocabulary has these tokens."""


class ServerEngine:
    """Samples by POST /v1/completions: token ids and their log-probs over HTTP.

    Requests run at once, `at_once` at a time; each has its own seed, so a lost one is asked again
    and says the same. `model` is the name under which the server has it (none: its only one).
    `timeout` in seconds. An iterable of weights goes through a folder in `exchange` (none: the
    temporary folder), which the server must see too. Raises ValueError for a server that does not
    answer, gives no token ids or no log-probs, or gives those before the temperature.
    """

    def __init__(
        self,
        end_token_ids: Sequence[int],
        *,
        url: str = LOCAL,
        model: str | None = None,
        timeout: float = 600.0,
        retries: int = 3,
        at_once: int = 256,
        exchange: Path | None = None,
    ) -> None:
        self._exchange, self._ends = exchange, tuple(end_token_ids)
        self._connection = Connection(url, timeout=timeout, retries=retries, at_once=at_once)
        try:
            self._model, limit = self._served(model)
            self._transcripts = Transcripts(limit, end_token_ids)
            self._probe()
        except BaseException:
            self.close()
            raise
        self._asked: dict[str, Future[Any]] = {}

    @property
    def context_limit(self) -> int:
        """Most tokens of a session: the server's `max_model_len`."""
        return self._transcripts.sessions.context_limit

    @property
    def retried(self) -> int:
        """Requests that were asked again so far."""
        return self._connection.retried

    def submit(self, requests: Sequence[Request], sampling: SamplingParams) -> None:
        """Send requests; raises ValueError also where vLLM would draw other numbers."""
        prompts = self._transcripts.ask(requests, sampling)
        for request, prompt in zip(requests, prompts, strict=True):
            seed = seed_of(request.random_key)
            body = completion_request(self._model, prompt, sampling, self._ends, seed=seed)
            self._asked[request.session] = self._connection.begin("POST", "/v1/completions", body)

    def wait(self) -> list[Completion]:
        """What the server has answered, in the order of asking."""
        wait(self._asked.values(), return_when=FIRST_COMPLETED)
        ended = [session for session, asked in self._asked.items() if asked.done()]
        answers = [said(self._asked.pop(session).result()) for session in ended]
        return [
            self._transcripts.answer(session, ids, logprobs)
            for session, (ids, logprobs) in zip(ended, answers, strict=True)
        ]

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions; the connection of an action in progress is closed, which ends it."""
        for session in self._transcripts.release(sessions):
            self._asked.pop(session).cancel()

    def update_weights(self, weights: Weights) -> None:
        """Let the server load a folder in place, and forget its cache.

        It needs vLLM's endpoints for development. Raises ValueError where they are not there.
        """
        self._transcripts.sessions.refuse_live()
        with self._as_folder(weights) as folder:
            loading = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
            try:
                self._connection.ask("POST", "/collective_rpc", loading)
            except ServerRefusalError as error:
                if error.status != 404:
                    raise
                raise ValueError(
                    f"the server at {self._connection.url} cannot change its weights; start it "
                    "with VLLM_SERVER_DEV_MODE=1 (where nobody else reaches it), or start it anew "
                    "on the new folder"
                ) from error
        answer = self._connection.ask("POST", "/reset_prefix_cache")
        if not answer or not answer.get("success"):
            raise ValueError(
                f"the server at {self._connection.url} kept its prefix cache of earlier weights; "
                "let nobody else use it meanwhile"
            )

    def close(self) -> None:
        """Close the connections; the engine is not used again."""
        self._connection.close()

    def _served(self, model: str | None) -> tuple[str, int]:
        """Name and context of the model."""
        listed = self._connection.ask("GET", "/v1/models")
        found = {one["id"]: one for one in listed.get("data", ())}
        only = next(iter(found)) if len(found) == 1 else None
        name = only if model is None else model
        if name is None or name not in found:
            raise ValueError(
                f"the server at {self._connection.url} has the models {sorted(found)}, not "
                f"{model!r}; give the name of one"
            )
        limit = found[name].get("max_model_len")
        if limit is None:
            raise ValueError(
                f"the server at {self._connection.url} does not say max_model_len of {name!r} in "
                "/v1/models; take one that does, as vllm serve"
            )
        return name, int(limit)

    def _probe(self) -> None:
        """Refuse a server whose log-probs are not those of the distribution that it draws from."""
        if not any(
            self._likeliest(prompt, 0.5) - self._likeliest(prompt, 1.0) > 1e-3 for prompt in PROBES
        ):
            raise ValueError(
                f"the server at {self._connection.url} gives log-probs before the temperature; "
                "start it with --logprobs-mode processed_logprobs"
            )

    def _likeliest(self, prompt: list[int], temperature: float) -> float:
        sampling = SamplingParams(temperature=temperature, max_tokens=1)
        request = completion_request(self._model, prompt, sampling, self._ends, seed=0, likeliest=1)
        answer = self._connection.ask("POST", "/v1/completions", request)
        said(answer)
        refuse_other_prompt(answer, prompt)
        return likeliest_logprob(answer)

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
