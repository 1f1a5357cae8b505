"""Formulas of work and of what groups teach, one quantity each."""

from rewardswap.plan.shapes import ModelShape


def informative_share(success: float, group_size: int) -> float:
    """Expected share of groups with success and failure: 1 - p^G - (1 - p)^G.

    Of a task that is won with chance p = `success`, alike for all G siblings; other groups have
    advantage 0 under group-relative methods. Where p differs between tasks the share is lower.
    """
    return 1.0 - success**group_size - (1 - success) ** group_size


def forward_flops(
    shape: ModelShape, *, tokens: float, action_tokens: float, context: float
) -> float:
    """FLOPs of one forward pass: 2 a weight and token, and attention.

    The head runs at action tokens only. Attention costs 4 x layers x heads x head dim for a token
    and each token that it sees; `context` is how many that is in the mean.
    """
    linear = 2 * (shape.multiplied * tokens + shape.head_weights * action_tokens)
    attention = 4 * shape.layers * shape.heads * shape.head_dim * context * tokens
    return linear + attention


def training_passes(*, adapter: bool, checkpointing: bool) -> int:
    """A training step in forward passes: 3, which makes 6 N a token (Kaplan et al. 2020, 2.1).

    A frozen weight needs no gradient of its own: 2 with an adapter. Checkpointing runs layers once
    more.
    """
    return (2 if adapter else 3) + checkpointing
