"""How often a run is kept, and when it is given up."""

from dataclasses import dataclass

from rewardswap.checks import at_least


@dataclass(frozen=True)
class CheckpointConfig:
    """Checkpoints that `rewardswap train --resume RUN` goes on from, to the same bits."""

    every: int = 10
    """Updates, of agent and explorer, from one to the next; 0: none is written."""
    keep: int = 2
    """How many stay, the newest ones; a run that has ended keeps none."""
    most_skipped: int = 10
    """Optimizer steps in a row whose loss or gradient is not finite after which the run stops
    (each is skipped and counted)."""

    def __post_init__(self) -> None:
        at_least(0, every=self.every)
        at_least(1, keep=self.keep, most_skipped=self.most_skipped)
