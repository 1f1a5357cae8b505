"""Sampling by vLLM inside this process. Only this file and `transfer` import vllm."""

import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch

from rewardswap.rollout.engine import Completion, Request, SamplingParams, Weights
from rewardswap.rollout.shapes import refuse_other_shapes, shapes_in
from rewardswap.rollout.transcripts import Transcripts, seed_of


class VllmEngine:
    """Samples from a model folder by vLLM: continuous batching, earlier turns from its cache.

    Weights are a second copy that `update_weights` renews. One device, in this process; the
    tokenizer is never read. `dtype` is that of weights and cache (`auto`: the folder's), and
    `memory_share` the part of the device that vLLM takes with cache and weights; `cache_bytes`
    says the cache itself. `eager` leaves compilation and CUDA graphs out. `sleeps` lets `sleep`
    give the memory back (on a GPU). Raises ValueError without vLLM and for what it refuses.
    """

    def __init__(
        self,
        folder: Path,
        end_token_ids: Sequence[int],
        *,
        context_limit: int | None = None,
        dtype: str = "auto",
        at_once: int = 256,
        memory_share: float = 0.9,
        cache_bytes: int | None = None,
        eager: bool = False,
        sleeps: bool = False,
    ) -> None:
        self._vllm = _vllm()
        with _own_draws():
            self._engine = self._vllm.LLMEngine.from_engine_args(
                self._vllm.EngineArgs(
                    model=str(folder),
                    skip_tokenizer_init=True,
                    dtype=dtype,
                    max_model_len=context_limit,
                    max_num_seqs=at_once,
                    gpu_memory_utilization=memory_share,
                    kv_cache_memory_bytes=cache_bytes,
                    enforce_eager=eager,
                    enable_sleep_mode=sleeps,
                    enable_prefix_caching=True,
                    logprobs_mode="processed_logprobs",
                    async_scheduling=False,  # which step a request joins must not be a race
                    distributed_executor_backend="uni",
                    disable_log_stats=True,
                    use_tqdm_on_load=False,
                )
            )
        model = self._engine.model_config
        self._tied = bool(getattr(model.hf_text_config, "tie_word_embeddings", False))
        self._shapes = shapes_in(folder)
        self._sleeps, self._asleep = sleeps, False
        self._transcripts = Transcripts(model.max_model_len, end_token_ids)

    @property
    def context_limit(self) -> int:
        """Most tokens of a session: vLLM's `max_model_len`."""
        return self._transcripts.sessions.context_limit

    def submit(self, requests: Sequence[Request], sampling: SamplingParams) -> None:
        """Ask for actions; raises ValueError also where vLLM would draw other numbers."""
        if self._asleep:
            raise ValueError("the vLLM engine sleeps; wake it before it is asked for actions")
        prompts = self._transcripts.ask(requests, sampling)
        for request, prompt in zip(requests, prompts, strict=True):
            self._engine.add_request(
                request.session,
                {"type": "token", "prompt_token_ids": prompt},
                self._vllm.SamplingParams(
                    temperature=sampling.temperature,
                    top_p=sampling.top_p,
                    top_k=sampling.top_k,
                    min_p=sampling.min_p,
                    seed=seed_of(request.random_key),
                    max_tokens=sampling.max_tokens,
                    stop_token_ids=list(self._transcripts.end_token_ids),
                    ignore_eos=True,
                    logprobs=0,
                    detokenize=False,
                    output_kind=self._vllm.sampling_params.RequestOutputKind.FINAL_ONLY,
                ),
            )

    def wait(self) -> list[Completion]:
        """Step until an action has ended; those of one step in the order of asking."""
        ended: dict[str, Any] = {}
        while self._transcripts.awaited and not ended:
            with _own_draws():
                outputs = self._engine.step()
            ended = {output.request_id: output.outputs[0] for output in outputs if output.finished}
        return [
            self._transcripts.answer(session, *_said(ended[session]))
            for session in list(self._transcripts.awaited)
            if session in ended
        ]

    def release(self, sessions: Iterable[str]) -> None:
        """Forget sessions; actions in progress are aborted."""
        self._engine.abort_request(self._transcripts.release(sessions))

    def update_weights(self, weights: Weights) -> None:
        """Load weights in place and forget the cache; raises ValueError as `load_weights` does."""
        self._transcripts.sessions.refuse_live()
        source: dict[str, Any]
        if isinstance(weights, Path):
            shapes = shapes_in(weights)
            source = {"weights_path": str(weights)}
        else:
            given = dict(weights)
            shapes = {name: tuple(value.shape) for name, value in given.items()}
            source = {"weights_iterator": iter(given.items())}
        refuse_other_shapes(shapes, self._shapes, tied=self._tied)
        self._engine.collective_rpc("reload_weights", kwargs=source)
        self._forget()

    def sleep(self) -> None:
        """Give the device's memory to the trainer: weights wait in CPU memory, the cache goes.

        Raises ValueError while a session lives, and for an engine that was not built to sleep.
        """
        self._transcripts.sessions.refuse_live()
        if not self._sleeps:
            raise ValueError("this vLLM engine cannot sleep; build it with sleeps=True, on a GPU")
        self._forget()
        self._engine.sleep(level=1)
        self._asleep = True

    def wake(self) -> None:
        """Take the memory back; an engine that is awake stays as it is."""
        if self._asleep:
            self._engine.wake_up()
            self._asleep = False

    def close(self) -> None:
        """End vLLM's work in this process, that of its other engines too."""
        self._engine.engine_core.shutdown()

    def _forget(self) -> None:
        """Without this, prompts read under earlier weights would go on to be used."""
        if not self._engine.reset_prefix_cache():
            raise RuntimeError("vLLM kept its prefix cache; what it samples now is not to be used")


def _said(output: Any) -> tuple[list[int], list[float]]:
    """Tokens of an action, and the log-prob of each."""
    ids = list(output.token_ids)
    places = zip(ids, output.logprobs, strict=True)
    return ids, [place[token].logprob for token, place in places]


@contextmanager
def _own_draws() -> Iterator[None]:
    """vLLM seeds torch's stream and draws from it; whoever else reads it sees nothing of that."""
    with torch.random.fork_rng(devices=[]):
        yield


def _vllm() -> Any:
    """vLLM, told to stay in this process, to say little and to report nothing to anybody."""
    os.environ["VLLM_ENABLE_V1_MULTIPROCESSING"] = "0"
    os.environ.setdefault("VLLM_NO_USAGE_STATS", "1")
    os.environ.setdefault("VLLM_LOGGING_LEVEL", "ERROR")
    try:
        import vllm
    except ImportError as error:
        raise ValueError(
            "the engine vllm needs vLLM in an environment of its own, `make test-vllm` makes one; "
            "or take the engine hugging_face"
        ) from error
    return vllm
