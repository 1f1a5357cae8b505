"""Tokens a second of whole training steps, rollout and update: ours against TRL's GRPO trainer.

Runs in the environment of `make trl`, which holds both, and prints JSON. Both sides play the same
recorded episodes with the same model, group size, cap of an action, number of optimizer steps,
learning rate and precision, GRPO without a reference; TRL by its own loop of tools: the recorded
world is an `environment_factory` whose one tool is called by whatever is said. It takes no
checkpoint, logs nothing, recomputes no layer, and has all rows in one micro-batch, as ours has.
"""

import argparse
import json
import os
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from statistics import median
from typing import Any
from zlib import crc32

import torch
from players import Place, make_chat, make_player, make_policy
from recorded import WORLDS, RecordedWorld

from rewardswap.methods.grpo import GRPO
from rewardswap.models.loading import LanguageModel
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.episodes import EpisodeRequest, Played, play
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.trainer import Trainer

TASKS, GROUP_SIZE = 4, 4
ENDS, ACTION_TOKENS = 5, 12
RATE = 1e-6
ONE_MICROBATCH = 10**9
TOOL_CALLS = "{% for call in message['tool_calls'] or [] %} {{ call['function'] }}{% endfor %}"
"""TRL asks a template to be able to tell calls of tools; it tells none of the played ones."""


class Steps:
    """Processor seconds and sampled tokens of each training step, the first one left out."""

    def __init__(self) -> None:
        self.rollout: list[float] = []
        self.whole: list[float] = []
        self.tokens: list[int] = []

    def summary(self) -> dict[str, float]:
        """Medians over the steps."""
        pairs = list(zip(self.tokens, self.whole, self.rollout, strict=True))[1:]
        return {
            "tokens": median(tokens for tokens, *_ in pairs),
            "rollout": median(rollout for *_, rollout in pairs),
            "update": median(whole - rollout for _, whole, rollout in pairs),
            "tokens_per_second": median(tokens / whole for tokens, whole, _ in pairs),
        }


def ours(player: LanguageModel, world: RecordedWorld, turns: int, steps: int) -> Steps:
    """Collections and updates of the package's trainer."""
    engine = HuggingFaceEngine(player.model, player.end_token_ids)
    context = make_chat(player, world.instructions)

    def roll(
        requests: list[EpisodeRequest], seed: int, version: int, temperature: float | None
    ) -> Played:
        return play(
            requests,
            world,
            engine,
            context,
            sampling=SamplingParams(1.0, ACTION_TOKENS),
            seed=seed,
            policy_version=version,
            turn_limit=turns,
        )

    trainer = Trainer(
        policy=make_policy(player, ONE_MICROBATCH, RATE),
        play=roll,
        algorithm=GRPO().algorithm(),
        training_tasks=world.tasks("train"),
        seed=0,
    )
    found = Steps()
    for _ in range(steps):
        begun = time.process_time()
        collected = trainer.collect("learn", TASKS, GROUP_SIZE)
        rolled = time.process_time()
        trainer.update(collected, OutcomeReward(), "learn")
        found.rollout.append(rolled - begun)
        found.whole.append(time.process_time() - begun)
        found.tokens.append(int(collected.counters["generated_tokens"]))
    return found


def tool_of(world: RecordedWorld) -> type:
    """The recorded world as TRL's environment; siblings' rewards differ as in ours."""
    tasks = {task.id: task for task in world.tasks("train")}

    class Recorded:
        def __init__(self) -> None:
            self._live, self._said = world.make(), list[str]()

        def reset(self, task_id: str, **_: Any) -> str:
            self._said = []
            return self._live.reset(tasks[task_id]).text

        def act(self, action: str) -> str:
            """
            Take one action.

            Args:
                action: The command.

            Returns:
                What it led to.
            """
            self._said.append(action)
            return self._live.step(action).observation.text

        def get_reward(self) -> float:
            return crc32("\n".join(self._said).encode()) / 2**32

    return Recorded


def tool_tokenizer(player: LanguageModel) -> Any:
    """All that is said is one call of the tool `act`."""
    tokenizer: Any = player.tokenizer
    tokenizer.padding_side = "left"
    tokenizer.chat_template = tokenizer.chat_template.replace(
        "<end>{% else %}", TOOL_CALLS + "<end>{% else %}"
    )
    tokenizer.response_template = {}

    def parse(ids: list[int], **_: Any) -> dict[str, Any]:
        said = tokenizer.decode(ids, skip_special_tokens=True)
        call = {"type": "function", "function": {"name": "act", "arguments": {"action": said}}}
        return {"role": "assistant", "content": said, "tool_calls": [call]}

    tokenizer.parse_response = parse
    return tokenizer


def theirs(player: LanguageModel, world: RecordedWorld, turns: int, steps: int) -> Steps:
    """Training steps of TRL; the last action is sampled, but not sent: there are no more turns."""
    from datasets import Dataset
    from transformers import TrainerCallback
    from trl import GRPOConfig, GRPOTrainer

    found = Steps()

    class Watch(TrainerCallback):
        def on_step_begin(self, *_: Any, **__: Any) -> None:
            self.begun = time.process_time()

        def on_step_end(self, *_: Any, **__: Any) -> None:
            found.whole.append(time.process_time() - self.begun)

    player.model.generation_config.eos_token_id = list(player.end_token_ids)
    rows = [{"role": "user", "content": ""}]
    system = [{"role": "system", "content": world.instructions}] if world.instructions else []
    prompts = [{"prompt": [*system, *rows], "task_id": task.id} for task in world.tasks("train")]
    with tempfile.TemporaryDirectory() as folder:
        settings = GRPOConfig(
            output_dir=folder,
            use_cpu=True,
            bf16=False,
            gradient_checkpointing=False,
            per_device_train_batch_size=TASKS * GROUP_SIZE,
            gradient_accumulation_steps=1,
            num_generations=GROUP_SIZE,
            max_steps=steps,
            max_completion_length=player.model.config.max_position_embeddings,
            max_tool_calling_iterations=turns - 1,
            generation_kwargs={"max_new_tokens": ACTION_TOKENS},
            learning_rate=RATE,
            lr_scheduler_type="constant",
            beta=0.0,
            logging_strategy="no",
            save_strategy="no",
            report_to="none",
            disable_tqdm=True,
        )
        trainer = GRPOTrainer(
            player.model,
            args=settings,
            train_dataset=Dataset.from_list(prompts),
            processing_class=tool_tokenizer(player),
            environment_factory=tool_of(world),
            callbacks=[Watch()],
        )
        trainer._generate = watched(trainer._generate, found)
        trainer.train()
    return found


def watched(generate: Callable[..., Any], found: Steps) -> Callable[..., Any]:
    """TRL's rollout with its seconds and its sampled tokens."""

    def generated(prompts: Any) -> Any:
        begun = time.process_time()
        result = generate(prompts)
        found.rollout.append(time.process_time() - begun)
        found.tokens.append(sum(map(sum, result[2])))
        return result

    return generated


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--model", default="10M")
    parser.add_argument("--world", choices=WORLDS, default="ALFWorld")
    parser.add_argument("--turns", type=int, default=20)
    parser.add_argument("--steps", type=int, default=3)
    parser.add_argument("--repeats", type=int, default=2)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    os.environ["TRL_EXPERIMENTAL_SILENCE"] = "1"
    warnings.simplefilter("ignore")
    runs: dict[str, list[dict[str, float]]] = {"ours": [], "TRL": []}
    for _ in range(arguments.repeats):
        for name, side in (("ours", ours), ("TRL", theirs)):
            player = make_player(arguments.model, arguments.world, Place(), ends=ENDS)
            world = WORLDS[arguments.world](TASKS, arguments.turns, player.wording)
            steps = side(player, world, arguments.turns, arguments.steps)
            runs[name].append(steps.summary())
    best = {
        name: {key: median(run[key] for run in found) for key in found[0]}
        for name, found in runs.items()
    }
    print(json.dumps({"world": arguments.world, "turns": arguments.turns, **best}))


if __name__ == "__main__":
    sys.exit(main())
