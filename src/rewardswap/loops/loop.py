"""What every outer loop is: pieces of work, and a place between two of them to stop at."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from typing import Any

from rewardswap.collection import Collected
from rewardswap.collector import Phase
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
        self.ahead: Collected | None = None
        """The next batch, where it was played while the policy learned from the one before."""

    @property
    def finished(self) -> bool:
        """Whether the budget is spent, and nothing that was played waits to be learned from."""
        return self.ahead is None and self.budget.spent(self.trainer)

    def take(self, phase: Phase, tasks: int, group_size: int) -> Collected:
        """The batch that was played ahead, or one that is played now."""
        ahead, self.ahead = self.ahead, None
        return ahead or self.trainer.collect(phase, tasks, group_size)

    def begin(
        self, phase: Phase, tasks: int, seen: Collected, *, more: bool = True
    ) -> Callable[[], Collected | None]:
        """Begin the batch behind `seen`, where the run is one step off and has `more` updates of
        this kind; what is returned waits for it."""
        ends = self.budget.ends_with(self.trainer, of_agent=phase == "learn")
        if ends or not (more and self.trainer.one_step_off):
            return lambda: None
        return self.trainer.begin(phase, tasks, seen)

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
