"""The policy's model and how it is optimized, as settings of a run."""

from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from rewardswap.checks import LEAST_TEMPERATURE, at_least, positive
from rewardswap.models.head import HEAD_LOGITS
from rewardswap.models.optimizers import OptimizerName


@dataclass(frozen=True)
class PolicyConfig:
    """The language model and how it is optimized."""

    model: str | None = None
    """Folder of a Hugging Face causal LM, or a name of `rewardswap model list`; none: the small
    agent that ships with the package for the environment."""
    chat_template: Path | None = None
    """File of a Jinja chat template that takes the place of the model folder's, in the checkpoint
    too; none: the folder's."""
    optimizer: OptimizerName = "adamw"
    """adamw: torch's, 8 bytes of moments for a weight; adamw_8bit: bitsandbytes' (extra
    `adamw-8bit`), 2.03 bytes. The critic's too."""
    learning_rate: float = 1e-6
    """AdamW's learning rate (verl-agent: 1e-6)."""
    decay: Literal["none", "linear"] = "none"
    """none: constant, as verl-agent's; linear: down to 0 at the run's last update. The explorer's
    is constant."""
    weight_decay: float = 0.01
    """AdamW's weight decay (verl-agent: .01)."""
    betas: tuple[float, float] = (0.9, 0.999)
    """AdamW's betas."""
    gradient_clip: float = 1.0
    """Largest gradient norm (verl-agent: 1.0)."""
    minibatches: int = 1
    """Optimizer steps of one update."""
    tokens_per_microbatch: int = 4096
    """Most tokens, padding included, of one forward and backward pass; changes no number beyond
    rounding."""
    packing: bool = False
    """Whether the rows of a pass are one sequence, positions restarting, instead of padded to the
    longest: `tokens_per_microbatch` then counts real tokens. Changes no number beyond rounding. The
    critic's too."""
    head_logits: int = HEAD_LOGITS
    """Most logits (action tokens x vocabulary) that the head holds at once; where a micro-batch has
    more, they are computed in pieces and again in the backward pass. Changes no number beyond
    rounding."""
    gradient_checkpointing: bool = False
    """Whether layers keep only their inputs and run again in the backward pass: less memory, about
    a third more time, the same numbers to the bit in float32 on the CPU. The critic's too."""
    temperature: float = 1.0
    """Sampling temperature of rollouts; log-probs are taken at it."""
    action_tokens: int | None = None
    """Most tokens of one action; none: `max_new_tokens` in the model's generation_config.json, 512
    where it says nothing (verl-agent: 512)."""
    precision: Literal["float32", "bfloat16"] = "float32"
    """Of weights and of forward and backward passes, in rollouts too; log-probs, entropies, sums of
    gradients, moments, and the masters of the weights are float32. In bfloat16 the ratio on policy
    is 1 within 0.02 at a token, 0.05 with packing; what the sampler said may be 0.1 nats off
    (`engine_gap_max`)."""
    lora_rank: int | None = None
    """Rank of a LoRA adapter (extra `lora`): only it learns, its model without it is the reference,
    and the checkpoint has it merged; none: all weights learn."""
    lora_alpha: float = 32.0
    """The adapter's product counts alpha / rank times."""
    lora_targets: tuple[str, ...] = ()
    """Ends of the names of the layers that get one, such as q_proj; none: all linear layers but the
    head."""
    device: str = "cpu"
    """Torch device of the model; under torchrun, cuda is each process's own."""
    sharded: bool = False
    """Whether the processes that torchrun starts divide weights, gradients and moments among them
    (FSDP2) and sample from a copy; if not, each holds all. One process has nothing to divide."""

    def __post_init__(self) -> None:
        at_least(
            1,
            minibatches=self.minibatches,
            action_tokens=1 if self.action_tokens is None else self.action_tokens,
            tokens_per_microbatch=self.tokens_per_microbatch,
            head_logits=self.head_logits,
            lora_rank=1 if self.lora_rank is None else self.lora_rank,
        )
        positive(
            learning_rate=self.learning_rate,
            gradient_clip=self.gradient_clip,
            lora_alpha=self.lora_alpha,
        )
        at_least(LEAST_TEMPERATURE, temperature=self.temperature)
        for name in ("lora_alpha", "lora_targets"):
            if self.lora_rank is None and getattr(self, name) != getattr(type(self), name):
                raise ValueError(f"{name} does nothing at lora_rank none")
        if not all(0 <= beta < 1 for beta in self.betas):
            raise ValueError(f"betas must be in [0, 1), got {list(self.betas)}")
        if not self.weight_decay >= 0:
            raise ValueError(f"weight_decay must be at least 0, got {self.weight_decay}")
