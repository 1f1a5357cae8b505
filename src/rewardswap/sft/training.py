"""The training of a small base agent from demonstrations: a resumable command.

Our recipe, no paper's: Muon (Jordan et al. 2024, `torch.optim.Muon`) on the matrices of the layers,
AdamW on the rest, fresh noisy demonstrations, next-token loss 1 on the agent's tokens and 0.5 on
what it was told. Noise in the demonstrations keeps the agent in the middle, so that RL has room.
"""

import json
import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path

import torch
from rich.console import Console
from torch import Tensor
from torch.nn import functional
from transformers import LlamaForCausalLM, PreTrainedTokenizerFast

from rewardswap.lock import locked
from rewardswap.models.pretrained import save_model
from rewardswap.models.small_agent import build_model
from rewardswap.sft.alfworld import AlfworldLessons
from rewardswap.sft.checkpoints import (
    load_checkpoint,
    remove_checkpoints,
    save_checkpoint,
)
from rewardswap.sft.evaluation import evaluate
from rewardswap.sft.lessons import Lessons
from rewardswap.sft.rows import PackedRows, pack, stream_seed
from rewardswap.whole import refuse_unwritable


@dataclass(frozen=True)
class BaseAgentConfig:
    """Everything that the base agent depends on."""

    output: Path = Path("agent")
    """Folder for the agent; the checkpoint lies beside it, its name ending in `.checkpoint`."""
    seed: int = 0
    """Seed of the initial weights, the demonstrations and the evaluation."""
    steps: int = 2400
    """Optimizer steps at most."""
    episodes_per_step: int = 16
    """Fresh demonstrations per optimizer step."""
    row_length: int = 256
    """Tokens per packed row; a longer demonstration makes its step's rows as long as itself."""
    learning_rate: float = 3e-3
    """Peak learning rate of AdamW."""
    muon_learning_rate: float = 0.02
    """Peak learning rate of Muon."""
    warmup_steps: int = 50
    """Steps of linear warm-up; a cosine to 0 at `steps` follows."""
    gradient_clip: float = 1.0
    """Largest gradient norm."""
    observation_weight: float = 0.5
    """Loss weight of the tokens that the agent was told; its own weigh 1."""
    stop_at: float = 1.0
    """Held-out success at temperature 1 from which on training stops; 1 trains all steps."""
    evaluate_every: int = 50
    """Steps between evaluations."""
    evaluation_tasks: int = 400
    """Held-out tasks per evaluation, each played once; 0 leaves evaluation out."""
    checkpoint_every: int = 50
    """Steps between checkpoints."""
    resume: bool = True
    """Whether to go on from a checkpoint, if there is one; otherwise it is removed."""
    env: Lessons = field(default_factory=AlfworldLessons)
    """The world that is taught, and how."""

    def __post_init__(self) -> None:
        counts = ("steps", "episodes_per_step", "evaluate_every", "checkpoint_every")
        for name in counts:
            if getattr(self, name) < 1:
                raise ValueError(f"{name} must be at least 1, got {getattr(self, name)}")
        if not 0.0 < self.stop_at <= 1.0:
            raise ValueError(f"stop_at must be in (0, 1], got {self.stop_at}")

    @property
    def checkpoint(self) -> Path:
        """Where the checkpoint lies while training goes on."""
        return self.output.with_name(self.output.name + ".checkpoint")


@dataclass
class Training:
    """The whole mutable state of a run."""

    model: LlamaForCausalLM
    optimizers: tuple[torch.optim.Optimizer, ...]
    step: int = 0
    tokens: int = 0
    success: float = 0.0


def train_base_agent(
    config: BaseAgentConfig,
    report: Callable[[dict[str, float]], None] | None = None,
    warn: Callable[[str], None] | None = None,
) -> dict[str, float]:
    """Train the base agent, save it under `config.output` and return its last numbers.

    The same config gives the same bits on one machine and thread count, also across a stop and a
    resume. Raises ValueError where the folder cannot be written or another process trains it, and
    if a checkpoint of another config lies there; later RunStoppedError or UnwrittenError.
    """
    refuse_unwritable(config.output)
    with locked(config.checkpoint, "the training of process {}"):
        return _train(config, report or (lambda numbers: None), warn or (lambda words: None))


def _train(
    config: BaseAgentConfig,
    report: Callable[[dict[str, float]], None],
    warn: Callable[[str], None],
) -> dict[str, float]:
    tokenizer = config.env.tokenizer()
    training = _begin(config, tokenizer, warn)
    exam = (
        config.env.exam(config.seed, config.evaluation_tasks) if config.evaluation_tasks else None
    )
    numbers: dict[str, float] = {}
    while training.step < config.steps and training.success < config.stop_at:
        numbers = _one_step(config, tokenizer, training)
        if exam and training.step % config.evaluate_every == 0:
            numbers |= evaluate(training.model, tokenizer, *exam, config.seed)
            training.success = numbers["success"]
        if training.step % config.checkpoint_every == 0:
            save_checkpoint(config.checkpoint, training, describe(config))
        report(numbers)
    if exam:
        numbers |= evaluate(training.model, tokenizer, *exam, config.seed)
    save_model(training.model, config.output, tokenizer)
    return numbers | {"step": float(training.step), "tokens": float(training.tokens)}


def describe(config: BaseAgentConfig) -> dict[str, object]:
    """The settings that the numbers depend on, as plain JSON."""
    record = asdict(config)
    del record["output"], record["resume"]
    return dict(json.loads(json.dumps(record)))


def _begin(
    config: BaseAgentConfig, tokenizer: PreTrainedTokenizerFast, warn: Callable[[str], None]
) -> Training:
    model = build_model(tokenizer, stream_seed(config.seed, "weights"))
    model.train()
    training = Training(model, _optimizers(config, model))
    if config.resume:
        for words in load_checkpoint(config.checkpoint, training, describe(config)):
            warn(f"passed over a checkpoint: {words}")
    else:
        remove_checkpoints(config.checkpoint)
    return training


def _optimizers(
    config: BaseAgentConfig, model: LlamaForCausalLM
) -> tuple[torch.optim.Optimizer, ...]:
    matrices = [p for name, p in model.named_parameters() if ".layers." in name and p.ndim == 2]
    chosen = {id(p) for p in matrices}
    others = [p for p in model.parameters() if id(p) not in chosen]
    return (
        torch.optim.Muon(matrices, lr=config.muon_learning_rate),
        torch.optim.AdamW(others, lr=config.learning_rate, betas=(0.9, 0.95), weight_decay=0.0),
    )


def schedule(step: int, warmup_steps: int, steps: int) -> float:
    """Factor on the learning rates of the step with this number, counted from 0."""
    if step < warmup_steps:
        return (step + 1) / warmup_steps
    done = (step - warmup_steps) / max(1, steps - warmup_steps)
    return 0.5 * (1.0 + math.cos(math.pi * done))


def draw_rows(config: BaseAgentConfig, tokenizer: PreTrainedTokenizerFast, step: int) -> PackedRows:
    """The fresh demonstrations of one step; they depend on the seed and the step alone."""
    episodes = config.env.demonstrations(config.seed, step, config.episodes_per_step, tokenizer)
    return pack(episodes, config.row_length, config.observation_weight, tokenizer.pad_token_id)


def next_token_loss(model: LlamaForCausalLM, rows: PackedRows) -> Tensor:
    """Weighted mean of -log p(token | what stands before it in its own episode)."""
    hidden = model.model(
        input_ids=rows.ids, position_ids=rows.positions, use_cache=False
    ).last_hidden_state
    weights = rows.weights[:, 1:]
    counted = weights > 0
    logits = model.lm_head(hidden[:, :-1][counted])
    losses = functional.cross_entropy(logits, rows.ids[:, 1:][counted], reduction="none")
    return (losses * weights[counted]).sum() / weights.sum()


def _one_step(
    config: BaseAgentConfig, tokenizer: PreTrainedTokenizerFast, training: Training
) -> dict[str, float]:
    rows = draw_rows(config, tokenizer, training.step)
    loss = next_token_loss(training.model, rows)
    for optimizer in training.optimizers:
        optimizer.zero_grad()
    loss.backward()  # type: ignore[no-untyped-call]
    norm = torch.nn.utils.clip_grad_norm_(training.model.parameters(), config.gradient_clip)
    factor = schedule(training.step, config.warmup_steps, config.steps)
    peaks = (config.muon_learning_rate, config.learning_rate)
    for optimizer, peak in zip(training.optimizers, peaks, strict=True):
        for group in optimizer.param_groups:
            group["lr"] = peak * factor
        optimizer.step()
    training.step += 1
    training.tokens += int((rows.weights > 0).sum())
    return {
        "step": float(training.step),
        "loss": loss.item(),
        "gradient_norm": norm.item(),
        "tokens": float(training.tokens),
    }


def run(config: BaseAgentConfig, console: Console) -> None:
    """Train with a line of numbers every ten steps and at every evaluation."""

    def report(numbers: dict[str, float]) -> None:
        if "success" in numbers or numbers["step"] % 10 == 0:
            console.print("  ".join(f"{name} {value:.4g}" for name, value in numbers.items()))

    def warn(words: str) -> None:
        console.print(f"warning: {words}", highlight=False, markup=False)

    numbers = train_base_agent(config, report, warn)
    console.print(f"saved {config.output}: " + json.dumps(numbers))
