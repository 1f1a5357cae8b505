"""Most bytes that one optimizer step has allocated at once: run as a process of its own."""

from typing import Any

import torch
from torch.profiler import ProfilerActivity, profile
from transformers import LlamaConfig, LlamaForCausalLM

from rewardswap.models.batching import Batch
from rewardswap.models.loading import load_language_model
from rewardswap.models.policy import Policy

ROWS, WIDTH = 16, 256


def shared_keys() -> Any:
    """A tiny Llama whose heads share keys and values."""
    return LlamaForCausalLM(
        LlamaConfig(
            vocab_size=409,
            hidden_size=96,
            intermediate_size=256,
            num_hidden_layers=5,
            num_attention_heads=6,
            num_key_value_heads=2,
            max_position_embeddings=512,
        )
    ).eval()


def ragged(rows: int, width: int) -> Batch:
    """Rows of one length but for the first, half as long; every fourth token is sampled."""
    mask = torch.zeros(rows, width, dtype=torch.bool)
    mask[:, 1::4] = True
    mask[0, width // 2 :] = False
    lengths = torch.full((rows,), width)
    lengths[0] = width // 2
    return Batch(
        tokens=torch.randint(2, 400, (rows, width)),
        lengths=lengths,
        action_mask=mask,
        turn=torch.where(mask, 0, -1),
        trajectory=torch.arange(rows),
        group=torch.zeros(rows, dtype=torch.int64),
        replayed=torch.zeros(rows, dtype=torch.bool),
    )


def peak_of_step(policy: Policy) -> tuple[int, Batch]:
    """Bytes that one step has allocated at once, by torch's profiler, and the batch of it."""

    def loss(scores: Any, _: Batch) -> Any:
        return scores.logprob.sum(), {}

    policy.step(ragged(2, 8), loss)
    batch = ragged(ROWS, WIDTH)
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as seen:
        policy.step(batch, loss)
    results: Any = seen.profiler
    events = [e for e in results.kineto_results.events() if e.name() == "[memory]"]
    held = peak = 0
    for event in sorted(events, key=lambda event: event.start_ns()):
        held += event.nbytes()
        peak = max(peak, held)
    return peak, batch


def main() -> None:
    """Print model, checkpointing, bytes of the peak, rows, width and action tokens, four times."""
    torch.set_num_threads(1)
    for checkpointing in (False, True):
        for name in ("base-agent", "shared-keys"):
            model = load_language_model(name).model if name == "base-agent" else shared_keys()
            policy = Policy(
                model,
                make_optimizer=lambda m: torch.optim.AdamW(m.parameters()),
                tokens_per_microbatch=ROWS * WIDTH,
                gradient_checkpointing=checkpointing,
            )
            peak, batch = peak_of_step(policy)
            print(name, checkpointing, peak, ROWS, WIDTH, int(batch.action_mask.sum()))


if __name__ == "__main__":
    main()
