"""How well the small agent plays tasks that it never saw, by ordinary rollouts."""

from collections.abc import Sequence

from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from rewardswap.envs.base import World
from rewardswap.evaluation import Tally
from rewardswap.models.small_agent import ACTION_TOKENS
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.episodes import EpisodeRequest, play
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.types import Task


def evaluate(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    world: World,
    tasks: Sequence[Task],
    seed: int,
) -> dict[str, float]:
    """Play every task once at temperature 1: success, turns, share of invalid actions."""
    end = tokenizer.eos_token_id
    training = model.training
    model.eval()
    played = play(
        [EpisodeRequest(task, 0) for task in tasks],
        world,
        HuggingFaceEngine(model, (end,)),
        ChatContext(tokenizer, world.instructions),
        sampling=SamplingParams(temperature=1.0, max_tokens=ACTION_TOKENS),
        seed=seed,
        policy_version=0,
        turn_limit=world.turn_limit,
    )
    model.train(training)
    tally = Tally.of(played.trajectories, len(played.failures))
    return {
        "success": tally.success,
        "task_score": tally.task_score,
        "turns": tally.mean_turns,
        "invalid_actions": tally.invalid_action_rate,
        "failed_episodes": float(len(played.failures)),
    }
