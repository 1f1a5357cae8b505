"""What vLLM samples with the policy's own weights is on policy."""

from collections.abc import Callable
from typing import Any

from chatting import TEMPLATE, Doors, small_tokenizer
from engines import ENDS, wide_llama
from rewardswap.models.batching import collate
from rewardswap.models.policy import Policy
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.episodes import EpisodeRequest, Played, play
from rewardswap.types import Group

TEMPERATURE = 0.7


def played(engine: Any, slots: int | None = None) -> Played:
    task = Doors().tasks("all")[0]
    return play(
        [EpisodeRequest(task, index) for index in range(6)],
        Doors(),
        engine,
        ChatContext(small_tokenizer(TEMPLATE), "", ENDS),
        sampling=SamplingParams(TEMPERATURE, max_tokens=6),
        seed=0,
        policy_version=0,
        turn_limit=4,
        slots=slots,
    )


def test_the_ratio_at_every_action_token_is_1_within_1e_4(vllm: Callable[[], Any]) -> None:
    episodes = played(vllm()).trajectories
    group = Group(episodes[0].task, tuple(episodes))
    batch = collate([group.with_column("sampled", group.sampled_logprob)])
    policy = Policy(wide_llama(), make_optimizer=lambda m: None, temperature=TEMPERATURE)
    gap = (policy.score(batch).logprob - batch.column("sampled"))[batch.action_mask]
    print(f"largest distance of a ratio from 1: {float((gap.exp() - 1).abs().max()):.1e}")
    assert (gap.exp() - 1).abs().max() < 1e-4
    assert len(gap) > 80


def test_slots_change_no_token(vllm: Callable[[], Any]) -> None:
    def tokens(episodes: Played) -> list[list[list[int]]]:
        return [[turn.action_ids.tolist() for turn in t.turns] for t in episodes.trajectories]

    assert tokens(played(vllm(), slots=2)) == tokens(played(vllm()))
