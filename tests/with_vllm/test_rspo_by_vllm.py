"""RSPO with SmolLM2-135M-Instruct whose actions a vLLM server in another process samples.

Two loops by the command, with an adapter. What is compared is the trainer's own pass over the whole
rows with what the server said of them, at every collection, and the weights in the run's folder
with the server's last ones.
"""

import json
import math
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from real_model import NAME
from rewardswap.cli import main
from rewardswap.collection import Collected
from rewardswap.models.batching import Batch, collate
from rewardswap.models.loading import load_language_model
from rewardswap.models.policy import Policy
from rewardswap.rollout.engine import Request, SamplingParams, complete
from rewardswap.rollout.server import ServerEngine
from rewardswap.trainer import Agent, Trainer
from training import same_snapshot
from vllm_process import PROCESSED, vllm_process

pytestmark = pytest.mark.slow

TOLERANCE = 1e-4
"""Nats that server and trainer may differ by at a token, in float32."""
MOVED = 100 * TOLERANCE
"""Nats that other weights must differ by at some token, lest the tolerance says nothing."""
TASKS, REPLAYED, GROUP_SIZE = 3, 4, 4
PLAYED = [
    ("explore", 0),
    ("harvest", 1),
    ("learn", 0),
    ("explore", 1),
    ("harvest", 2),
    ("learn", 1),
]
"""Phase of each collection and version of the weights that it was sampled with."""
RUN = [
    *("--env", "own", "--env.make", "short_answers:ShortAnswers", "--env.evaluation-tasks", "2"),
    *("--policy.lora-rank", "8", "--policy.learning-rate", "1e-3", "--policy.action-tokens", "12"),
    *("--policy.minibatches", "1", "--policy.tokens-per-microbatch", "1024"),
    *("--batch.tasks", "4", "--batch.group-size", str(GROUP_SIZE), "--swap.alpha", "0.25"),
    *("--swap.explore-steps", "1", "--swap.learn-steps", "1", "--budget", "2"),
    *("--reward.dense", "progress", "--record.fresh", "99", "--record.replayed", "99"),
]


@dataclass(frozen=True)
class Collection:
    """One collection, as the trainer reads it at once."""

    phase: str
    version: int
    stamps: set[int]
    """Versions that its trajectories say they are of."""
    gap: float
    """Largest difference of a token's log-prob to the server's."""
    since_before: float
    """The same of the collection before, under today's weights."""


@dataclass
class Seen:
    """What was seen from outside."""

    run: Path
    exchange: Path
    url: str
    collections: list[Collection] = field(default_factory=list)
    pushes: list[float] = field(default_factory=list)
    """Seconds."""
    moved: list[bool] = field(default_factory=list)
    restored: list[bool] = field(default_factory=list)
    """Whether the explorer was another model than the agent, and the agent is back to the bit."""

    @property
    def rows(self) -> list[dict[str, Any]]:
        return [json.loads(line) for line in (self.run / "metrics.jsonl").read_text().splitlines()]

    @property
    def trajectories(self) -> list[dict[str, Any]]:
        lines = (self.run / "trajectories" / "train.jsonl").read_text().splitlines()
        return [json.loads(line) for line in lines]


def sampled(collected: Collected) -> Batch:
    return collate([g.with_column("sampled", g.sampled_logprob) for g in collected.groups])


def distance(policy: Policy, batch: Batch) -> float:
    gap = policy.score(batch).logprob - batch.column("sampled")
    return float(gap[batch.action_mask].abs().max())


def watch(seen: Seen, patch: pytest.MonkeyPatch) -> None:
    """Look at trainer and engine while they work."""
    collect, restore = Trainer.collect, Trainer.restore
    push = ServerEngine.update_weights
    before: list[Batch] = []

    def watched_collect(self: Trainer, phase: Any, *rest: Any, **more: Any) -> Collected:
        found = collect(self, phase, *rest, **more)
        since = distance(self.policy, before[-1]) if before else math.inf
        before.append(sampled(found))
        stamps = {t.policy_version for group in found.groups for t in group.trajectories}
        gap = distance(self.policy, before[-1])
        seen.collections.append(Collection(phase, self.policy.version, stamps, gap, since))
        return found

    def watched_restore(self: Trainer, agent: Agent) -> None:
        seen.moved.append(not same_snapshot(agent.policy, self.policy.state()))
        restore(self, agent)
        seen.restored.append(same_snapshot(agent.policy, self.policy.state()))

    def timed_push(self: ServerEngine, weights: Any) -> None:
        started = time.monotonic()
        push(self, weights)
        seen.pushes.append(time.monotonic() - started)

    patch.setattr(Trainer, "collect", watched_collect)
    patch.setattr(Trainer, "restore", watched_restore)
    patch.setattr(ServerEngine, "update_weights", timed_push)


@pytest.fixture(scope="module")
def seen(smollm2: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Seen]:
    """The run, and the server that sampled for it, still up."""
    folder = tmp_path_factory.mktemp("by-vllm")
    flags = (*PROCESSED, "--max-model-len", "1024")
    with vllm_process(smollm2, *flags, cache_bytes=2**28) as url, pytest.MonkeyPatch.context() as p:
        found = Seen(folder / "run", folder / "exchange", url)
        found.exchange.mkdir()
        watch(found, p)
        server = ["--rollout.engine", "server", "--rollout.url", url]
        words = ["--policy.model", str(smollm2), "--rollout.exchange", str(found.exchange)]
        started = time.monotonic()
        main(["train", "demo", *RUN, *server, *words, "--output", str(found.run)])
        print(f"\n{NAME}: the run {time.monotonic() - started:.0f} s, {found.pushes=}")
        yield found


def test_each_collection_has_the_weights_of_its_version(seen: Seen) -> None:
    print(*seen.collections, sep="\n")
    for collection in seen.collections:
        assert collection.stamps == {collection.version}
        assert collection.gap < TOLERANCE
        assert collection.since_before > MOVED, "the server's earlier weights would be seen"
    assert [(c.phase, c.version) for c in seen.collections] == PLAYED


def test_weights_are_pushed_before_every_collection_and_evaluation(seen: Seen) -> None:
    assert len(seen.pushes) == 1 + len(PLAYED) + 1
    assert list(seen.exchange.iterdir()) == []


def test_the_record_has_every_phase_and_nothing_was_lost(seen: Seen) -> None:
    assert [(row["phase"], row["update"]) for row in seen.rows] == [
        *(("explore", 0), ("harvest", 0), ("learn", 1)),
        *(("explore", 1), ("harvest", 1), ("learn", 2)),
    ]
    for row in seen.rows:
        for name in ("requests_retried", "requests_moved", "servers_lost", "servers_unchecked"):
            assert row[f"rollout/{name}"] == 0
        assert row["failed_episodes"] == row["dropped_groups"] == row["dropped_rewards"] == 0
        assert row.get("skipped_steps", 0) == row.get("missing_replay", 0) == 0
    phases = json.loads((seen.run / "summary.json").read_text())["phases"]
    assert {"explore", "harvest", "learn", "evaluate"} <= phases.keys()


def test_engine_and_trainer_agree_while_the_policy_moves(seen: Seen) -> None:
    updates = [row for row in seen.rows if row["phase"] != "harvest"]
    for row in updates:
        print(row["phase"], row["engine_gap_mean"], row["engine_gap_max"], row["update_seconds"])
        assert 0 < row["engine_gap_mean"] <= row["engine_gap_max"] < TOLERANCE
        assert row["gradient_norm"] > 0
        assert row["rows_without_gradient"] < row["rows"]
    assert all(row["explorer_kl"] > 0 for row in updates if row["phase"] == "learn")


def test_every_turn_in_the_record_says_whose_it_is(seen: Seen) -> None:
    """Of replayed ones the explorer's version, in a row of the agent's."""
    fresh, replayed = TASKS * GROUP_SIZE, REPLAYED
    found = [(t["phase"], t["replayed"], t["policy_version"]) for t in seen.trajectories]
    expected = []
    for number, (phase, version) in enumerate(PLAYED):
        expected += [(phase, False, version)] * fresh
        if phase == "learn":
            expected += [(phase, True, PLAYED[number - 1][1])] * replayed
    assert found == expected
    for trajectory in seen.trajectories:
        assert len(trajectory["turns"]) == 2
        for turn in trajectory["turns"]:
            tolerance = TOLERANCE * turn["tokens"]
            assert sum(turn["behavior"]) == pytest.approx(turn["logprob_sum"], abs=tolerance)
            if not trajectory["replayed"] and turn.get("old") is not None:
                assert turn["old"] == pytest.approx(turn["behavior"], abs=2 * TOLERANCE)


def test_the_explorer_leaves_and_the_agent_is_back_to_the_bit(seen: Seen) -> None:
    assert seen.moved == seen.restored == [True, True]


def test_the_server_ends_with_the_weights_of_the_checkpoint(seen: Seen, smollm2: Path) -> None:
    """Greedy, by the folder that a reader of the run would load: the adapter is merged in it."""
    start, trained = (load_language_model(str(f)) for f in (smollm2, seen.run / "checkpoint"))
    chat = [{"role": "user", "content": "What do you see from a window?"}]
    prompt = trained.tokenizer.apply_chat_template(chat, add_generation_prompt=True)
    prompt = np.array(prompt["input_ids"], dtype=np.int64)
    engine = ServerEngine(trained.end_token_ids, urls=[seen.url])
    asked = Request("it", prompt, False, (0, 0))
    (said,) = complete(engine, [asked], SamplingParams(temperature=0.0, max_tokens=12))
    engine.close()
    row = torch.tensor(np.concatenate([prompt, said.ids]))[None]
    with torch.no_grad():
        logits = [model.model(row).logits[0, len(prompt) - 1 : -1] for model in (start, trained)]
    old, new = (
        torch.log_softmax(every, dim=-1)[torch.arange(len(said.ids)), said.ids].numpy()
        for every in logits
    )
    assert logits[1].argmax(dim=-1).tolist() == said.ids.tolist()
    assert np.abs(new - said.logprobs).max() < TOLERANCE
    assert np.abs(old - said.logprobs).max() > MOVED
