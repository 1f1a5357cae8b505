"""What is sent to and read from POST /v1/completions, token ids on both ways."""

from collections.abc import Sequence
from typing import Any

from rewardswap.errors import EngineError
from rewardswap.rollout.engine import SamplingParams


def completion_request(
    model: str,
    prompt: Sequence[int],
    sampling: SamplingParams,
    end_token_ids: Sequence[int],
    *,
    seed: int,
    likeliest: int = 0,
) -> dict[str, Any]:
    """One action, with log-probs of `likeliest` more tokens.

    What a request leaves out a server may fill from the model's generation config.
    """
    return {
        "model": model,
        "prompt": list(prompt),
        "add_special_tokens": False,
        "seed": seed,
        "temperature": sampling.temperature,
        "top_p": sampling.top_p,
        "top_k": sampling.top_k,
        "min_p": sampling.min_p,
        "repetition_penalty": 1.0,
        "presence_penalty": 0.0,
        "frequency_penalty": 0.0,
        "max_tokens": sampling.max_tokens,
        "stop_token_ids": list(end_token_ids),
        "ignore_eos": True,
        "logprobs": likeliest,
        "return_token_ids": True,
        "return_tokens_as_token_ids": True,
    }


def said(answer: Any) -> tuple[list[int], list[float]]:
    """Tokens of an action, and the log-prob of each; raises ValueError where there are none."""
    choice = answer["choices"][0]
    if not choice.get("token_ids"):
        raise EngineError(
            "the server gives no token ids; take one that knows return_token_ids (vLLM from 0.10.2)"
        )
    logprobs = (choice.get("logprobs") or {}).get("token_logprobs")
    if not logprobs:
        raise EngineError("the server gives no log-probs; start it with --max-logprobs 1 or more")
    return list(choice["token_ids"]), list(logprobs)


def likeliest_logprob(answer: Any) -> float:
    """log-prob of the likeliest first token, whichever one was drawn."""
    return float(max(answer["choices"][0]["logprobs"]["top_logprobs"][0].values()))


def refuse_other_prompt(answer: Any, prompt: Sequence[int]) -> None:
    """Raise ValueError where the server read other tokens than it was given."""
    read = answer["choices"][0].get("prompt_token_ids", prompt)
    if read != prompt:
        raise EngineError(
            f"the server reads the tokens {read} where it is given {prompt}; it must take token "
            "ids as they are"
        )
