"""All rules, in the order in which findings of one severity are said."""

from rewardswap.diagnosis.finding import Rule
from rewardswap.diagnosis.rules import (
    cuts,
    groups,
    hacking,
    losses,
    policy,
    process_reward,
    replay,
    rollouts,
    steps,
    success,
)

RULES: tuple[Rule, ...] = (
    *success.RULES,
    *hacking.RULES,
    *groups.RULES,
    *rollouts.RULES,
    *cuts.RULES,
    *policy.RULES,
    *steps.RULES,
    *process_reward.RULES,
    *replay.RULES,
    *losses.RULES,
)
