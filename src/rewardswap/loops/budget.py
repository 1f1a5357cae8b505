"""When a run is over: after so many updates of the agent, updates in all, or environment steps."""

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from rewardswap.trainer import Trainer

BudgetUnit = Literal["agent_updates", "all_updates", "environment_steps"]


@dataclass(frozen=True)
class Budget:
    """An amount of one unit; a run ends with the first update that reaches it."""

    amount: int
    unit: BudgetUnit = "agent_updates"

    def done(self, trainer: "Trainer") -> int:
        """How much of it is spent."""
        if self.unit == "agent_updates":
            return trainer.agent_updates
        return int(trainer.counters[self.unit])

    def spent(self, trainer: "Trainer") -> bool:
        """Whether it is spent."""
        return self.done(trainer) >= self.amount
