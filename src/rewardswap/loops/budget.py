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

    def ends_with(self, trainer: "Trainer", *, of_agent: bool) -> bool:
        """Whether the update under way, of the agent or of the explorer, spends it; steps are those
        that are known."""
        more = {"agent_updates": int(of_agent), "all_updates": 1, "environment_steps": 0}
        return self.done(trainer) + more[self.unit] >= self.amount

    def spent(self, trainer: "Trainer") -> bool:
        """Whether it is spent."""
        return self.done(trainer) >= self.amount
