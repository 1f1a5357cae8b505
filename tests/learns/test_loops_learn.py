"""Every loop learns a toy world from nothing on a CPU."""

import copy
from collections.abc import Callable
from contextlib import suppress

import pytest
import torch
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import WhitespaceSplit
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from made import small_llama
from rewardswap.errors import RunStoppedError
from rewardswap.loops.budget import Budget
from rewardswap.loops.rspo import Rspo
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods import METHODS
from rewardswap.models.critic import Critic, ValueModel
from rewardswap.models.loading import LanguageModel
from rewardswap.models.policy import Policy
from rewardswap.replay import ReplayBuffer
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.rollout.episodes import EpisodeRequest
from rewardswap.trainer import Trainer
from training import on_policy
from walking import WORLD, walking_trainer

WORDS = ["<end>", "<user>", "<agent>", "<unk>", "east", "west", "here", "room", "light", *"123456"]


def corridor_tokenizer() -> PreTrainedTokenizerFast:
    inner = Tokenizer(WordLevel({word: n for n, word in enumerate(WORDS)}, unk_token="<unk>"))
    inner.pre_tokenizer = WhitespaceSplit()
    tokenizer = PreTrainedTokenizerFast(
        tokenizer_object=inner, eos_token="<end>", unk_token="<unk>"
    )
    tokenizer.chat_template = (
        "{% for m in messages %}{% if m.role == 'user' %}<user> {{ m.content }} "
        "{% else %}<agent> {{ m.content }} <end> {% endif %}{% endfor %}"
        "{% if add_generation_prompt %}<agent> {% endif %}"
    )
    return tokenizer


def trainer_for(method: str) -> Trainer:
    torch.set_num_threads(1)
    config = small_llama().config
    config.vocab_size, config.initializer_range = len(WORDS), 0.1
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = LlamaForCausalLM(config).eval()

    def optimizer(module: torch.nn.Module) -> torch.optim.Optimizer:
        return torch.optim.AdamW(module.parameters(), lr=0.006)

    algorithm = METHODS[method]().algorithm()
    critic = None
    if algorithm.critic is not None:
        critic = Critic(ValueModel(model), make_optimizer=optimizer)
    return walking_trainer(
        LanguageModel(model, corridor_tokenizer(), (0,)),
        policy=Policy(model, make_optimizer=optimizer),
        algorithm=algorithm,
        minibatches=2,
        critic=critic,
        reference=Policy(copy.deepcopy(model), make_optimizer=optimizer),
    )


def success(trainer: Trainer) -> float:
    """Share of the held-out walks that are won, 8 episodes each."""
    requests = [EpisodeRequest(task, n) for task in WORLD.tasks("held_out") for n in range(8)]
    trajectories = trainer.collector.play(requests, 99, 0, None).trajectories
    return sum(t.success for t in trajectories) / len(trajectories)


def solved_within(trainer: Trainer, step: Callable[[Budget], None], most: int) -> bool:
    """Whether more than 9 of 10 walks are won within `most` updates, looking every 6."""
    for updates in range(6, most + 1, 6):
        step(Budget(updates))
        if success(trainer) > 0.9:
            return True
    return False


@pytest.mark.parametrize("method", METHODS)
def test_every_method_solves_the_corridor(method: str) -> None:
    trainer = trainer_for(method)
    assert success(trainer) < 0.5

    def step(budget: Budget) -> None:
        # where all groups are won, dynamic sampling finds nothing more to learn from and stops
        with suppress(RunStoppedError):
            on_policy(trainer, budget=budget, tasks=8, group_size=8, reward=OutcomeReward())

    assert solved_within(trainer, step, most=42)


@pytest.mark.parametrize("method", ["grpo", "gigpo", "ppo"])
def test_the_reward_swap_around_a_method_solves_the_corridor(method: str) -> None:
    trainer = trainer_for(method)
    buffer = ReplayBuffer(512, seed=0)

    def step(budget: Budget) -> None:
        Rspo(
            trainer,
            RewardSwap(explore_steps=2, learn_steps=2),
            Batch(8, 8),
            budget=budget,
            dense=ProgressReward(),
            outcome=OutcomeReward(),
            buffer=buffer,
        ).run()

    assert solved_within(trainer, step, most=36)
