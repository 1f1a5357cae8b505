"""What every rank of a test runs: `python ranks_program.py FOLDER SCENARIO ...`."""

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from torch.optim.optimizer import register_optimizer_step_pre_hook

from made import made_group, small_llama
from rewardswap.distributed.process_group import joined
from rewardswap.distributed.sharding import shard
from rewardswap.learners import make_learners
from rewardswap.loops.budget import Budget
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.gigpo import GiGPO
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.ppo import PPO
from rewardswap.models.adapter import add_adapter
from rewardswap.models.shards import gathered
from rewardswap.policy_config import PolicyConfig
from rewardswap.ranks import Ranks
from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.rollout.shared import play_shared
from training import ChangedPlay, Record, by_index, on_policy, run_rspo, trainer_of

WEIGHTED = {"kl_coefficient": 0.1, "entropy_coefficient": 0.01}
METHODS: dict[str, Any] = {
    "grpo": GRPO(**WEIGHTED),
    "ppo": PPO(**WEIGHTED),
    "rspo": GRPO(**WEIGHTED),
    "rspo-ppo": PPO(),
    "rspo-gigpo": GiGPO(),
    "lora": GRPO(**WEIGHTED),
    "bfloat16": GRPO(),
    "one-group": GRPO(),
    "rspo-one-step-off": GRPO(),
}
REWARD = "process-reward"


def run(name: str, ranks: Ranks, *, sharded: bool) -> dict[str, torch.Tensor]:
    """Five updates: all parameters, also of every step with its gradients, and all metrics."""
    algorithm = METHODS[name].algorithm()
    config = PolicyConfig(
        learning_rate=1e-5, tokens_per_microbatch=60, lora_rank=2 if name == "lora" else None
    )
    model, start = small_llama(), small_llama()
    if name == "lora":
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(1)
            add_adapter(model, 2, 8.0, ())
        start = None
    if name == "bfloat16":
        model = model.bfloat16()
    record = Record()
    learners = make_learners(
        config, model, start, algorithm, ranks=ranks, shard=shard if sharded else None
    )
    play = partial(play_shared, ChangedPlay(by_index), ranks)
    trainer = trainer_of(
        play,
        record,
        begin=partial(_begin, play) if name.endswith("one-step-off") else None,
        policy=learners.policy,
        reference=learners.reference,
        critic=learners.critic,
        algorithm=algorithm,
        minibatches=2,
    )
    steps: list[dict[str, torch.Tensor]] = []
    kept = register_optimizer_step_pre_hook(lambda *told: steps.append(_before_step(told[0])))
    if name.startswith("rspo"):
        run_rspo(trainer, RewardSwap(alpha=0.25), Batch(4, 4), 5)
    else:
        on_policy(
            trainer,
            tasks=1 if name == "one-group" else 3,
            group_size=4,
            budget=Budget(5),
            reward=OutcomeReward(),
        )
    kept.remove()
    state = {f"policy.{n}": gathered(p.detach()).float() for n, p in model.named_parameters()}
    if learners.critic is not None:
        named = learners.critic.model.named_parameters()
        state |= {f"critic.{n}": gathered(p.detach()).float() for n, p in named}
    for n, step in enumerate(steps):
        state |= {f"{key}.{n}": value for key, value in step.items()}
    for n, (_, metrics, _) in enumerate(record.rows):
        for key, value in metrics.items():
            if not key.endswith("seconds"):
                state[f"metric.{n}.{key}"] = torch.tensor(value, dtype=torch.float64)
    return state


def _before_step(optimizer: torch.optim.Optimizer) -> dict[str, torch.Tensor]:
    """What is stepped from and with: parameters in float32, and their gradients."""
    found: dict[str, torch.Tensor] = {}
    for n, parameter in enumerate(p for group in optimizer.param_groups for p in group["params"]):
        found[f"master.{n}"] = gathered(parameter.detach()).clone()
        if parameter.grad is not None:
            found[f"gradient.{n}"] = gathered(parameter.grad).clone()
    return found


def run_reward(ranks: Ranks, *, sharded: bool) -> dict[str, torch.Tensor]:
    """A process reward, fitted and read by all ranks: 5 batches, then 1."""
    groups = [made_group(f"task-{n}", (0.0, 1.0, float(n % 2))) for n in range(9)]
    played = [trajectory for group in groups for trajectory in group.trajectories]
    found: dict[str, torch.Tensor] = {}
    for preset, tokens in (("action", 50), ("after_observation", 50), ("action", 5000)):
        config = replace(PRESETS[preset], tokens_per_batch=tokens, epochs=2)
        model = ProcessRewardModel(small_llama(), config)
        model.divide(ranks, shard if sharded else None)
        model.fit(played)
        name = f"{preset}-{tokens}"
        found[f"features.{name}"] = model.features(played).values
        found[f"rewards.{name}"] = torch.cat(model.rewards(played))
    return found


def _begin(play: Any, *asked: Any) -> Any:
    """Episodes are played together when they are taken, behind the update."""
    return lambda: play(*asked, None)


def main(folder: Path, mode: str, names: list[str]) -> None:
    torch.set_num_threads(1)
    with joined() as ranks:
        for name in names:
            made = partial(run_reward if name == REWARD else partial(run, name), ranks)
            found = made(sharded=mode == "sharded")
            save_file(
                {n: v.contiguous().clone() for n, v in found.items()},
                folder / f"{name}-{ranks.rank}.safetensors",
            )


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2], sys.argv[3:])
