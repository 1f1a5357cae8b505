"""A real `vllm serve` on loopback: the same tokens and log-probs, other weights in place."""

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
import torch

from engines import ENDS, wide_llama
from rewardswap.rollout.engine import Request, SamplingParams, complete, random_key
from rewardswap.rollout.server import ServerEngine
from vllm_process import PROCESSED, vllm_process

pytestmark = pytest.mark.slow
NAMES = [f"n{number}" for number in range(6)]


@pytest.fixture(scope="module")
def served(wide_folder: Path) -> Iterator[str]:
    with vllm_process(wide_folder, *PROCESSED) as url:
        yield url


def asking(name: str, turn: int) -> Request:
    context = np.random.default_rng([int(name[1:]), turn]).integers(3, 30, 150 if turn == 0 else 5)
    return Request(name, context, turn > 0, random_key(0, 0, name, 0, turn))


def test_it_samples_as_the_contract_says_and_takes_new_weights(served: str, tmp_path: Path) -> None:
    wide_llama(7).save_pretrained(tmp_path)
    engine = ServerEngine(ENDS, urls=[served])
    assert engine.context_limit == 256
    said = {}
    for weights, model in ((None, wide_llama()), (tmp_path, wide_llama(7))):
        if weights is not None:
            engine.update_weights(weights)
        for turn in range(2):
            asked = [asking(name, turn) for name in NAMES]
            answers = complete(engine, asked, SamplingParams(temperature=0.7, max_tokens=8))
            if turn == 0:
                first = dict(zip(NAMES, answers, strict=True))
                continue
            for request, completion in zip(asked, answers, strict=True):
                name = request.session
                read = [*asking(name, 0).context_ids, *first[name].ids, *request.context_ids]
                row = torch.tensor([[*read, *completion.ids]])
                every = torch.log_softmax(model(row).logits[0].detach() / 0.7, dim=-1)
                for place, token in enumerate(completion.ids, len(read)):
                    expected = float(every[place - 1, token])
                    assert completion.logprobs[place - len(read)] == pytest.approx(
                        expected, abs=1e-4
                    )
        said[weights] = [first[name].logprobs.tobytes() for name in NAMES]
        engine.release(NAMES)
    assert said[None] != said[tmp_path]
    engine.close()


def test_a_server_with_logprobs_before_the_temperature_is_refused(wide_folder: Path) -> None:
    with (
        vllm_process(wide_folder) as url,
        pytest.raises(ValueError, match="start it with --logprobs-mode processed_logprobs"),
    ):
        ServerEngine(ENDS, urls=[url])
