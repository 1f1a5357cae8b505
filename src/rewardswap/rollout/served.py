"""One server of completions, and the model that it serves."""

from collections.abc import Mapping, Sequence
from concurrent.futures import Future
from pathlib import Path
from typing import Any

from torch import Tensor

from rewardswap.errors import EngineError
from rewardswap.rollout.connection import Connection, NoAnswerError, ServerRefusalError
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.transfer import Broadcast
from rewardswap.rollout.wire import (
    completion_request,
    likeliest_logprob,
    refuse_other_prompt,
    said,
)

PROBES = ([0], [1], [2])
"""Prompts of the first requests: every vocabulary has these tokens."""


class ServedModel:
    """A model at a URL. Raises ValueError as `ServerEngine` says."""

    def __init__(
        self,
        url: str,
        model: str | None,
        end_token_ids: Sequence[int],
        *,
        timeout: float,
        retries: int,
        at_once: int,
    ) -> None:
        self._ends = tuple(end_token_ids)
        self._version: str | None = None
        """Name of the weights that it was given last."""
        self._broadcast: Broadcast | None = None
        self.connection = Connection(url, timeout=timeout, retries=retries, at_once=at_once)
        try:
            listed = self.connection.ask("GET", "/v1/models")
            self._model, self.context_limit = self._served(listed, model)
            self.probe()
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Give its connections up."""
        if self._broadcast is not None:
            self._broadcast.leave()
        self.connection.close()

    @property
    def url(self) -> str:
        """Where it is."""
        return self.connection.url

    def begin(self, prompt: list[int], sampling: SamplingParams, seed: int) -> "Future[Any]":
        """Ask for an action."""
        body = completion_request(self._model, prompt, sampling, self._ends, seed=seed)
        return self.connection.begin("POST", "/v1/completions", body)

    def is_there(self) -> bool:
        """Whether it answers at once; its context is read anew. It samples nothing: weights that a
        push was cut in may be none."""
        try:
            listed = self.connection.ask("GET", "/v1/models", patient=False)
        except EngineError:
            return False
        self._model, self.context_limit = self._served(listed, self._model)
        return True

    def begin_loading(self, folder: Path) -> "Future[Any]":
        """Load the weights of a folder that it sees, in place."""
        body = {"method": "reload_weights", "kwargs": {"weights_path": str(folder)}}
        return self.connection.begin("POST", "/collective_rpc", body)

    def end_loading(self, loading: "Future[Any]", version: str) -> None:
        """Wait until weights are loaded, forget the cache of earlier ones, and name them.

        Raises NoAnswerError where it is gone, and ValueError where it cannot do this.
        """
        try:
            loading.result()
        except ServerRefusalError as error:
            if error.status != 404:
                raise
            raise self._unwilling() from error
        self._name(version)

    def receive(self, weights: Mapping[str, Tensor], version: str) -> None:
        """The same by NCCL, without a folder."""
        if self._broadcast is None:
            self._broadcast = Broadcast(self.connection)
        if self.has_its_weights() is False:
            self._broadcast.leave()  # a new process, which knows of no group
        self._broadcast.send(weights)
        self._name(version)

    def has_its_weights(self) -> bool | None:
        """Whether what it was given last is what it samples with; none where it is silent.

        It is not where it was started again in between, or where somebody else loads into it.
        """
        if self._version is None:
            return True
        try:
            told = self.connection.ask("GET", "/weight_info", patient=False)
        except NoAnswerError as error:
            if error.status is not None:
                raise
            return None
        except ServerRefusalError:  # started without the endpoints that it had
            return False
        return bool(told["weight_version"] == self._version)

    def _name(self, version: str) -> None:
        answer = self.connection.ask("POST", "/reset_prefix_cache")
        if not answer or not answer.get("success"):
            raise EngineError(
                f"the server at {self.url} kept its prefix cache of earlier weights; let nobody "
                "else use it meanwhile"
            )
        try:
            self.connection.ask("POST", "/update_weight_version", {"new_version": version})
        except ServerRefusalError as error:
            raise self._unwilling() from error
        self._version = version

    def _unwilling(self) -> EngineError:
        return EngineError(
            f"the server at {self.url} cannot change its weights; start it with "
            "VLLM_SERVER_DEV_MODE=1 (vLLM from 0.32, where nobody else reaches it), or start it "
            "anew on the new folder"
        )

    def _served(self, listed: Any, model: str | None) -> tuple[str, int]:
        """Name and context of the model."""
        found = {one["id"]: one for one in listed.get("data", ())}
        only = next(iter(found)) if len(found) == 1 else None
        name = only if model is None else model
        if name is None or name not in found:
            raise EngineError(
                f"the server at {self.url} has the models {sorted(found)}, not {model!r}; give the "
                "name of one"
            )
        limit = found[name].get("max_model_len")
        if limit is None:
            raise EngineError(
                f"the server at {self.url} does not say max_model_len of {name!r} in /v1/models; "
                "take one that does, as vllm serve"
            )
        return name, int(limit)

    def probe(self) -> None:
        """Refuse a server whose log-probs are not those of the distribution that it draws from."""
        if not any(
            self._likeliest(prompt, 0.5) - self._likeliest(prompt, 1.0) > 1e-3 for prompt in PROBES
        ):
            raise EngineError(
                f"the server at {self.url} gives log-probs before the temperature; start it with "
                "--logprobs-mode processed_logprobs"
            )

    def _likeliest(self, prompt: list[int], temperature: float) -> float:
        sampling = SamplingParams(temperature=temperature, max_tokens=1)
        request = completion_request(self._model, prompt, sampling, self._ends, seed=0, likeliest=1)
        answer = self.connection.ask("POST", "/v1/completions", request)
        said(answer)
        refuse_other_prompt(answer, prompt)
        return likeliest_logprob(answer)
