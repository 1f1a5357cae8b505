"""Formulas of memory, in bytes, one quantity each.

They describe this library's own code (ours), not a paper: what it allocates, and when.
`width` is the bytes of one number of the model: 4 in float32, 2 in bfloat16.
"""

from collections.abc import Iterable

from rewardswap.models.optimizers import OptimizerName
from rewardswap.plan.shapes import ModelShape

FLOAT = 4
"""Bytes of a float32."""
EIGHT_BIT_BLOCK = 256
"""Numbers of one block of 8-bit moments, which share a float32 scale."""
EIGHT_BIT_SMALLEST = 4096
"""bitsandbytes keeps the moments of smaller tensors in float32, in numbers."""
EIGHT_BIT_TABLES = 2 * 256 * FLOAT
"""The two tables that 8-bit moments of all tensors are read by, in bytes."""


def weight_bytes(numbers: int, width: int) -> int:
    """Weights: numbers x width."""
    return numbers * width


def together_bytes(shape: ModelShape, width: int, *, trained: bool) -> int:
    """Weights of a sharded model that are whole at once: embedding, head and two layers (FSDP2: one
    that is used, and the next on its way), and the gradients of as many where all weights learn."""
    ends = shape.parameters - shape.multiplied
    return (ends + 2 * shape.multiplied // shape.layers) * width * (2 if trained else 1)


def master_bytes(rounded: int) -> int:
    """float32 masters of trained weights that the model holds in bfloat16: 4 a number."""
    return FLOAT * rounded


def gradient_bytes(trained: int) -> int:
    """Sums of gradients: 4 a trained number; they stay until the next step begins."""
    return FLOAT * trained


def passing_gradient_bytes(rounded: int) -> int:
    """What one backward pass leaves in a bfloat16 model before it is summed: 2 a number."""
    return 2 * rounded


def moment_bytes(sizes: Iterable[int], optimizer: OptimizerName) -> int:
    """The optimizer's state for tensors of the given sizes (numbers).

    adamw: two float32 moments a number and a step counter of 4 a tensor. adamw_8bit: two moments
    of one byte and two scales a block of 256 numbers, 2.03 a number; small tensors as adamw, but
    without a counter; two tables for all that are not small.
    """
    if optimizer == "adamw":
        return sum(2 * FLOAT * size + FLOAT for size in sizes)
    total, tables = 0, 0
    for size in sizes:
        blocks = -(-size // EIGHT_BIT_BLOCK)
        small = size < EIGHT_BIT_SMALLEST
        total += 2 * FLOAT * size if small else 2 * size + 2 * FLOAT * blocks
        tables = tables if small else EIGHT_BIT_TABLES
    return total + tables


def step_bytes(trained: int, *, on_cuda: bool) -> int:
    """Temporary numbers of one step of AdamW: 4 a trained number where torch steps all at once."""
    return FLOAT * trained if on_cuda else 0


def layer_bytes(shape: ModelShape, width: int, longest: int) -> int:
    """What one layer keeps for the backward pass of one token, attention never being [T, T].

    Two norms (float32 input, normed, scaled), queries, keys and values for every head, attention's
    output twice and its log-sum, gate, activated gate, up and product, and a row of the mask, which
    a batch of rows of different lengths has in every layer: `longest` numbers.
    """
    norm = FLOAT + 2 * width
    attention = shape.heads * shape.head_dim
    norms = 2 * shape.hidden
    if shape.head_norms:
        norms += attention + shape.kv_heads * shape.head_dim
    kept = 5 * attention + 4 * shape.inner + longest
    return norms * norm + kept * width + FLOAT * shape.heads


def adapter_bytes(shape: ModelShape, width: int, rank: int) -> int:
    """What the adapters of one layer keep of one token beside: inputs as float32, rank numbers.

    In float32 the inputs are those of the layer; rounded ones are cast for each of seven adapters.
    """
    inputs = 5 * shape.hidden + shape.heads * shape.head_dim + shape.inner
    return FLOAT * (7 * rank + (inputs if width < FLOAT else 0))


def activation_bytes(
    shape: ModelShape,
    width: int,
    *,
    tokens: int,
    longest: int,
    rank: int | None = None,
    checkpointing: bool = False,
) -> int:
    """Activations of one micro-batch of `tokens`, padding included, of rows up to `longest` tokens.

    With checkpointing every layer keeps its input alone, and one layer at a time keeps all.
    """
    layer = layer_bytes(shape, width, longest)
    if rank is not None:
        layer += adapter_bytes(shape, width, rank)
    ends = (2 * width + FLOAT) * shape.hidden
    if checkpointing:
        return tokens * (shape.layers * shape.hidden * width + layer + ends)
    return tokens * (shape.layers * layer + ends)


def logit_bytes(shape: ModelShape, width: int, action_tokens: int, head_logits: int) -> int:
    """What the head holds: five float32 numbers a logit, or in pieces two and the product.

    Pieces of at most `head_logits` logits are taken where there are more.
    """
    logits = action_tokens * shape.vocabulary
    if logits <= head_logits:
        return logits * (5 * FLOAT + (width if width < FLOAT else 0))
    piece = max(1, head_logits // shape.vocabulary) * shape.vocabulary
    return piece * (2 * FLOAT + (width if width < FLOAT else 0))


def head_gradient_bytes(shape: ModelShape, width: int, *, trained: bool) -> int:
    """The head's gradient before it is added: one number a weight, while all activations live."""
    return shape.head_weights * width if trained else 0


def cache_bytes_per_token(shape: ModelShape, width: int) -> int:
    """Keys and values of one token: 2 x layers x kv heads x head dim x width."""
    return 2 * shape.layers * shape.kv_heads * shape.head_dim * width


def cache_bytes(shape: ModelShape, width: int, room: int, live: int) -> int:
    """Keys and values of `live` episodes with room for so many tokens each."""
    return cache_bytes_per_token(shape, width) * room * live


def growing_bytes(cache: int) -> int:
    """The old values while the cache grows by half: at most a third of what it has then."""
    return cache // 3


def reading_bytes(shape: ModelShape, width: int, *, new: int, context: int, live: int) -> int:
    """What one layer holds while `live` episodes read `new` tokens each, without gradient.

    The larger of the feed-forward layer (three products) and attention (all its projections; keys
    and values of the whole context once more for every head, where several share them), beside
    three hidden states and the float32 numbers of a norm; and the mask.
    """
    attention = shape.heads * shape.head_dim
    keys = shape.kv_heads * shape.head_dim
    projected = new * (2 * attention + 2 * keys)
    repeated = 2 * context * attention if new > 1 and shape.heads > shape.kv_heads else 0
    inside = max(3 * new * shape.inner, projected + repeated)
    states = new * shape.hidden * (3 * width + FLOAT)
    return live * (inside * width + states + new * context * width)


def sampling_bytes(shape: ModelShape, width: int, live: int) -> int:
    """What sampling holds: logits, two float32 and three float64 numbers a logit and episode."""
    return live * shape.vocabulary * (width + 2 * FLOAT + 3 * 8)


def branch_bytes(trained_bytes: int, rounded: int, moments: int) -> int:
    """The agent as it waits for the explorer to go: its trained weights, masters and moments."""
    return trained_bytes + master_bytes(rounded) + moments


def replay_bytes(trajectories: int, tokens: float, action_tokens: float) -> int:
    """The replay buffer: 8 a token, and two float32 log-probs an action token."""
    return round(trajectories * (8 * tokens + 2 * FLOAT * action_tokens))
