"""Help of the command: one shape for all commands, their texts, and every setting of theirs."""

from rewardswap.help.texts import GROUPS, HELPS

__all__ = ["GROUPS", "HELPS"]
