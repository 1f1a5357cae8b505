"""How well the small agent plays games that it never saw, by ordinary rollouts."""

from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from rewardswap.envs.alfworld.generator import GeneratedWorld, RoomSize
from rewardswap.models.small_agent import ACTION_TOKENS
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.episodes import EpisodeRequest, play
from rewardswap.rollout.hf import HuggingFaceEngine


def held_out_world(seed: int, games: int, size: RoomSize, turn_limit: int) -> GeneratedWorld:
    """Games for evaluation alone: split `held_out`."""
    return GeneratedWorld(seed, train=1, held_out=games, size=size, turn_limit=turn_limit)


def evaluate(
    model: LlamaForCausalLM,
    tokenizer: PreTrainedTokenizerFast,
    world: GeneratedWorld,
    seed: int,
) -> dict[str, float]:
    """Play every held-out game once at temperature 1: success, turns, share of invalid actions."""
    end = tokenizer.eos_token_id
    training = model.training
    model.eval()
    played = play(
        [EpisodeRequest(task, 0) for task in world.tasks("held_out")],
        world,
        HuggingFaceEngine(model, (end,)),
        ChatContext(tokenizer, world.instructions),
        sampling=SamplingParams(temperature=1.0, max_tokens=ACTION_TOKENS),
        seed=seed,
        policy_version=0,
        turn_limit=world.turn_limit,
    )
    model.train(training)
    turns = [turn for trajectory in played.trajectories for turn in trajectory.turns]
    games = len(played.trajectories) + len(played.failures)
    return {
        "success": sum(trajectory.success for trajectory in played.trajectories) / games,
        "turns": len(turns) / max(1, len(played.trajectories)),
        "invalid_actions": sum(not turn.valid for turn in turns) / max(1, len(turns)),
        "failed_episodes": float(len(played.failures)),
    }
