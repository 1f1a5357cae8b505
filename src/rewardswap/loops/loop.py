"""What every outer loop is: pieces of work, and a place between two of them to stop at."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from rewardswap.errors import StopAskedError
from rewardswap.loops.budget import Budget
from rewardswap.trainer import Trainer


class Loop(ABC):
    """Work on a trainer, piece by piece, until the budget is spent.

    Between two pieces `state` has everything that the loop knows and the trainer does not.
    """

    def __init__(self, trainer: Trainer, budget: Budget) -> None:
        self.trainer = trainer
        self.budget = budget

    @property
    def finished(self) -> bool:
        """Whether the budget is spent."""
        return self.budget.spent(self.trainer)

    @abstractmethod
    def step(self) -> None:
        """The next piece: at most one update."""

    @abstractmethod
    def state(self) -> dict[str, Any]:
        """Where the loop is; groups and snapshots in it are the loop's own, not copies."""

    @abstractmethod
    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`."""

    @abstractmethod
    def leave(self) -> None:
        """Bring the agent back, wherever the loop is."""

    def run(
        self,
        between: Callable[[], None] = lambda: None,
        stopped: Callable[[], None] = lambda: None,
    ) -> None:
        """Every piece until the budget is spent; `between` is called behind each.

        Where something raises, `stopped` is called before the agent is brought back; a hard Ctrl-C
        goes past it.
        """
        try:
            while not self.finished:
                self.step()
                between()
        except (Exception, StopAskedError):
            stopped()
            raise
        finally:
            self.leave()
