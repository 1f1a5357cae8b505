"""SmolLM2-135M-Instruct, the real model, on the CPU: what it says, and two loops of RSPO with it.

The loops run in processes of their own (`real_run.py`), so that their memory can be told.
"""

import json
import math
import subprocess
import sys
import time
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil
import pytest

from rewardswap.models.loading import LanguageModel, load_language_model
from rewardswap.rollout.context import ChatContext
from templates import COLUMNS, FAMILIES, cell

pytestmark = pytest.mark.slow

LOOPS, KINDS = 2, ("full", "lora")
WEIGHTS = 134_515_008 * 4
"""Bytes of the model in float32, its tied embedding once."""


@pytest.fixture(scope="module")
def model(smollm2: Path) -> LanguageModel:
    return load_language_model(str(smollm2))


def test_it_answers(model: LanguageModel) -> None:
    chat = [{"role": "user", "content": "What is the capital of France?"}]
    settings: dict[str, Any] = {"add_generation_prompt": True, "return_tensors": "pt"}
    read = model.tokenizer.apply_chat_template(chat, **settings)["input_ids"]
    said = model.model.generate(read, max_new_tokens=20, do_sample=False)[0, read.shape[1] :]
    assert model.tokenizer.decode(said) == "The capital of France is Paris.<|im_end|>"


def test_its_parameters_are_those_of_the_model(model: LanguageModel) -> None:
    assert sum(p.numel() for p in model.model.parameters()) * 4 == WEIGHTS


@dataclass(frozen=True)
class Real:
    """The model's own tokenizer in place of a family's."""

    model: LanguageModel

    def context(self, system: str = "", **settings: Any) -> ChatContext:
        tokenizer = self.model.tokenizer
        return ChatContext(tokenizer, system, self.model.end_token_ids, **settings)


@pytest.mark.parametrize("system", ["", "You are in a house."], ids=["none", "its own"])
def test_its_template_behaves_as_ours(model: LanguageModel, system: str) -> None:
    ours, real = FAMILIES["SmolLM2"], Real(model)
    for thinking, said in COLUMNS:
        wanted = cell(ours, system, thinking, said)
        assert cell(real, system, thinking, said) == wanted  # type: ignore[arg-type]
    contexts = ours.context(system), real.context(system)
    assert len({c.system_apart for c in contexts}) == 1
    assert len({c.template.has_system_role() for c in contexts}) == 1
    tools = [f.context(system, action_format="tools").template.tells_tools for f in (ours, real)]
    assert tools == [False, False]


@dataclass(frozen=True)
class RealRun:
    """What `real_run.py` saw."""

    seen: dict[str, Any]
    peak: int
    """Most resident memory of its process, in bytes."""

    def metric(self, name: str) -> list[float]:
        return [row[name] for row in self.seen["metrics"] if name in row]


@pytest.fixture(scope="module")
def runs(smollm2: Path, games: Path) -> dict[str, RealRun]:
    """Both ways to learn, one after the other."""
    found: dict[str, RealRun] = {}
    for kind in KINDS:
        script = Path(__file__).with_name("real_run.py")
        words = [sys.executable, str(script), str(smollm2), str(games), kind]
        with subprocess.Popen(words, stdout=subprocess.PIPE, text=True) as process:
            peak = watched(process)
            assert process.stdout is not None
            said = process.stdout.read()
        assert process.returncode == 0
        found[kind] = RealRun(json.loads(said), peak)
        print(f"{kind}: {found[kind].seen['seconds']:.0f} s, {peak / 2**30:.2f} GiB")
    return found


def watched(process: subprocess.Popen[str]) -> int:
    """The most resident memory that a process is seen to have until it ends, in bytes."""
    peak, known = 0, psutil.Process(process.pid)
    while process.poll() is None:
        peak = max(peak, known.memory_info().rss)
        time.sleep(0.02)
    return peak


@pytest.fixture(params=KINDS)
def run(request: pytest.FixtureRequest, runs: dict[str, RealRun]) -> RealRun:
    return runs[request.param]


def test_on_policy_every_ratio_is_one(run: RealRun) -> None:
    assert run.seen["ratio_error"] < 1e-5
    assert min(run.seen["trained_tokens"]) > 20


def test_what_was_sampled_is_what_is_trained(run: RealRun) -> None:
    assert run.seen["sampled_as_trained"] == [True] * 2 * LOOPS
    assert run.metric("rollout/rewritten_history") == [0.0] * len(run.seen["metrics"])


def test_the_explorer_leaves_and_the_agent_is_back_to_the_bit(run: RealRun) -> None:
    assert run.seen["moved"] == run.seen["restored"] == [True] * LOOPS


def test_what_the_engine_says_is_what_the_trainer_says(run: RealRun) -> None:
    assert 0 < max(run.metric("engine_gap_max")) < 1e-4


def test_losses_are_finite_and_steps_are_taken(run: RealRun) -> None:
    assert run.seen["agent_updates"] == LOOPS
    for row in run.seen["metrics"]:
        assert all(math.isfinite(value) for value in row.values() if not isinstance(value, str))
    assert len(run.metric("loss")) == 2 * LOOPS
    assert min(run.metric("gradient_norm")) > 0
    assert run.metric("skipped_steps") == [0.0] * 2 * LOOPS


def test_an_adapter_needs_no_gradient_and_no_moments_of_the_model(
    runs: dict[str, RealRun],
) -> None:
    assert runs["full"].peak > 4 * WEIGHTS, "weights, gradient, two moments"
    assert runs["lora"].peak < runs["full"].peak - 2 * WEIGHTS, "its moments alone are two"
