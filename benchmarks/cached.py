"""Rollouts with caches that live on between turns against `generate` from scratch in each turn.

The same code plays the same recorded episodes, token for token: only the engine differs, and the
second one says what the first one has sampled. A model with random weights ends its actions by one
word in `ENDS`, so that lengths vary about as much as recorded ones do.
"""

from statistics import median
from typing import Any

from players import Place, interleaved, make_chat, make_player, ratio
from recorded import WORLDS
from scratch_engine import ScratchEngine

from rewardswap.collection import episode_requests
from rewardswap.rollout.engine import RandomKey, RolloutEngine, SamplingParams, random_key
from rewardswap.rollout.episodes import Played, play
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.types import IntArray

EPISODES = 16
"""All of them live at once."""
ENDS = 5
"""One word in so many ends an action; recorded actions have 4.1 and 4.5 tokens on average."""
ACTION_TOKENS = 12
CACHED, SCRATCH = "caches kept, refilled", "generate from scratch"


def compare(model: str, world: str, turns: int, place: Place, repeats: int) -> dict[str, Any]:
    """Seconds of both."""
    player = make_player(model, world, place, ends=ENDS)
    recorded = WORLDS[world](EPISODES, turns, player.wording)
    context = make_chat(player, recorded.instructions)
    pad = player.tokenizer.pad_token_id
    said: dict[RandomKey, IntArray] = {}
    engines: dict[str, RolloutEngine] = {
        CACHED: HuggingFaceEngine(player.model, player.end_token_ids),
        SCRATCH: ScratchEngine(player.model, player.end_token_ids, 0 if pad is None else pad, said),
    }
    played: dict[str, Played] = {}

    def roll(name: str) -> None:
        played[name] = play(
            episode_requests(recorded.tasks("train"), 1),
            recorded,
            engines[name],
            context,
            sampling=SamplingParams(1.0, ACTION_TOKENS),
            seed=0,
            policy_version=0,
            turn_limit=turns,
        )

    roll(CACHED)  # not counted
    for episode in played[CACHED].trajectories:
        for k, turn in enumerate(episode.turns):
            said[random_key(0, 0, episode.task.id, episode.index, k)] = turn.action_ids
    ways = {name: (lambda name=name: roll(name)) for name in engines}
    taken = interleaved(ways, repeats, place.device)
    first, second = (played[name].counters for name in engines)
    assert first == second, (first, second)
    return {
        "world": world,
        "turns": turns,
        "sampled_tokens": int(first["generated_tokens"]),
        "told_tokens": int(first["prompt_tokens"]),
        "seconds": [median(taken[name]) for name in engines],
        "tokens_per_second": [first["generated_tokens"] / median(taken[name]) for name in engines],
        "ratio": ratio(taken[SCRATCH], taken[CACHED]),
    }
