"""The help of every command, in the groups of `rewardswap --help`."""

from collections.abc import Mapping

from rewardswap.help.looking import COMPARE, LOOK
from rewardswap.help.making import MAKE
from rewardswap.help.shape import Help
from rewardswap.help.starting import START
from rewardswap.help.training import TRAIN

GROUPS: Mapping[str, tuple[Help, ...]] = {
    "start here": START,
    "train": TRAIN,
    "look": LOOK,
    "compare": COMPARE,
    "make": MAKE,
}
"""All commands by group; those of two words stand behind the command that they belong to."""

HELPS: Mapping[str, Help] = {one.command: one for group in GROUPS.values() for one in group}
"""The help of each command by its words."""
