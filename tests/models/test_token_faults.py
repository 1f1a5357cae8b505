"""Faults of tokens and masks, tried on every path that a policy's numbers take.

Episodes are sampled by the engine from the very weights that score them; docs/rollouts.md says
which fault each test is for.
"""

from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from chatting import TEMPLATE, Doors, small_tokenizer
from made import small_llama, small_policy
from rewardswap.models.batching import Batch, TokenScores, collate
from rewardswap.models.learner import Metrics
from rewardswap.models.packing import Layout
from rewardswap.models.policy import Policy
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.episodes import EpisodeRequest, play
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.types import Group, Trajectory

ACTION_TOKENS = 6
TEMPERATURE = 0.7


def unmerged(trajectory: Trajectory) -> Trajectory:
    """The same episode with a row for each turn: all that was read and said stands in front."""
    read = np.zeros(0, dtype=np.int64)
    turns = []
    for turn in trajectory.turns:
        before = np.concatenate([read, turn.context_ids]) if turn.extends else turn.context_ids
        turns.append(replace(turn, context_ids=before, extends=False))
        read = np.concatenate([before, turn.action_ids])
    return replace(trajectory, turns=tuple(turns))


PATHS: Mapping[str, Mapping[str, Any]] = {
    "whole": {},
    "row after row": {"tokens_per_microbatch": 1},
    "head in pieces": {"head_logits": 90},
    "layers run again": {"gradient_checkpointing": True},
    "packed": {"packing": True},
    "packed, few tokens": {"packing": True, "tokens_per_microbatch": 70},
}
"""Settings of a policy that send its numbers along another path."""

LAYOUTS: Mapping[str, Callable[[Trajectory], Trajectory]] = {
    "merged": lambda trajectory: trajectory,
    "row per turn": unmerged,
}


@pytest.fixture(params=PATHS)
def policy(request: pytest.FixtureRequest) -> Policy:
    return small_policy(temperature=TEMPERATURE, **PATHS[request.param])


@pytest.fixture(scope="module", params=["", "messages[-2:]"], ids=["extends", "starts anew"])
def group(request: pytest.FixtureRequest) -> Group:
    """Six episodes of one task, in a chat that extends or that forgets its beginning."""
    template = TEMPLATE.replace("messages", request.param or "messages")
    task = Doors().tasks("all")[0]
    done = play(
        [EpisodeRequest(task, index) for index in range(6)],
        Doors(),
        HuggingFaceEngine(small_llama(), [0, 1]),
        ChatContext(small_tokenizer(template), "", [1]),
        sampling=SamplingParams(TEMPERATURE, ACTION_TOKENS),
        seed=0,
        policy_version=0,
        turn_limit=4,
    )
    assert bool(done.counters["rewritten_history"]) == bool(request.param)
    assert 0 < done.counters["truncated_turns"] < 24
    return Group(task, tuple(done.trajectories))


@pytest.fixture(params=LAYOUTS)
def batch(request: pytest.FixtureRequest, group: Group) -> Batch:
    members = tuple(LAYOUTS[request.param](t) for t in group.trajectories)
    laid = replace(group, trajectories=members)
    sampled = laid.sampled_logprob
    return collate([laid.with_column("sampled", sampled)])


def test_on_policy_every_ratio_is_one(policy: Policy, batch: Batch) -> None:
    """Faults 1, 3, 8: other tokens, misaligned rows, shifted labels."""
    gap = policy.score(batch).logprob - batch.column("sampled")
    ratio = gap[batch.action_mask].exp()
    assert (ratio - 1).abs().max() < 1e-5
    assert len(ratio) > 80


def test_no_row_is_cut(policy: Policy, batch: Batch, group: Group) -> None:
    """Fault 9: rows of whole episodes are far longer than the cap of a turn."""
    count = sum(trajectory.action_token_count for trajectory in group.trajectories)
    assert int(batch.action_mask.sum()) == count
    assert int((policy.score(batch).logprob < 0).sum()) == count
    if any(turn.extends for turn in group.trajectories[0].turns):
        assert int(batch.lengths.max()) > 5 * ACTION_TOKENS


def test_the_gradient_falls_exactly_where_an_action_token_is_predicted(
    policy: Policy, batch: Batch
) -> None:
    """Faults 5, 6: an inverted mask, and a path of the loss that ignores it."""
    hidden: list[torch.Tensor] = []
    parts: list[Batch] = []

    def keep(_module: Any, _inputs: Any, output: Any) -> None:
        output.last_hidden_state.retain_grad()
        hidden.append(output.last_hidden_state)

    def loss(scores: TokenScores, part: Batch) -> tuple[torch.Tensor, Metrics]:
        parts.append(part)
        # a loss that forgets the mask: only what the policy hands out protects it
        return scores.logprob.sum(), {}

    handle = policy.model.get_decoder().register_forward_hook(keep)
    policy.step(batch, loss)
    handle.remove()
    assert sum(len(part) for part in parts) == len(batch)
    for state, part in zip(hidden, parts, strict=True):
        assert state.grad is not None
        layout = Layout(part.lengths, part.tokens.shape[1], policy.packing)
        moved = layout.back(state.grad.abs().sum(dim=-1) > 0)
        assert torch.equal(moved[:, :-1], part.action_mask[:, 1:])
        assert not moved[:, -1].any()


@pytest.mark.parametrize("right", [0, 5])
def test_padding_on_the_right_changes_no_logprob(policy: Policy, batch: Batch, right: int) -> None:
    """Fault 11; a batch has no padding on the left, so positions count from a row's first token."""
    scores = policy.score(batch).logprob
    for b in range(len(batch)):
        length = int(batch.lengths[b])
        alone = batch.take(torch.tensor([b]))
        wide = {
            name: torch.nn.functional.pad(getattr(alone, name), (0, right), value=value)
            for name, value in (("tokens", 29), ("action_mask", False), ("turn", -1))
        }
        padded = replace(alone, **wide, columns={})
        found = policy.score(padded).logprob[0, :length]
        torch.testing.assert_close(found, scores[b, :length], atol=1e-5, rtol=0)


@pytest.mark.parametrize("path", PATHS)
def test_a_merged_row_has_the_gradient_of_its_turns(path: str, group: Group) -> None:
    """Fault 6: the same loss by rows merged or one per turn, along each path."""
    found = []
    for lay in LAYOUTS.values():
        members = tuple(lay(trajectory) for trajectory in group.trajectories)
        batch = collate([replace(group, trajectories=members)])
        policy = small_policy(
            make_optimizer=lambda m: torch.optim.SGD(m.parameters(), lr=1.0),
            gradient_clip=1e9,
            **PATHS[path],
        )
        policy.step(batch, lambda scores, _: (scores.logprob.sum() / 100, {}))
        found.append(torch.cat([p.detach().flatten() for p in policy.model.parameters()]))
    torch.testing.assert_close(found[0], found[1], atol=1e-4, rtol=0)
