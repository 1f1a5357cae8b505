"""Checks of settings: each raises ValueError naming the setting and its value."""

LEAST_TEMPERATURE = 0.001
"""Below it float32 leaves nothing of the differences between logits; 0, greedy, is apart (ours)."""


def at_least(bound: int | float, **settings: int | float) -> None:
    """Raise ValueError for a number below `bound`."""
    for name, value in settings.items():
        if value < bound:
            raise ValueError(f"{name} must be at least {bound}, got {value}")


def positive(**settings: float) -> None:
    """Raise ValueError for a number that is not above 0."""
    for name, value in settings.items():
        if not value > 0:
            raise ValueError(f"{name} must be above 0, got {value}")
