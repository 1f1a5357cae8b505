"""`python -m rewardswap` is the command `rewardswap`."""

from rewardswap.cli import main

main()
