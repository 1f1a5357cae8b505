"""All rules, in the order in which findings of one severity are said."""

from rewardswap.diagnosis.finding import Rule
from rewardswap.diagnosis.rules import groups, losses, policy, process_reward, replay, rollouts
from rewardswap.diagnosis.rules import success as success_rules

RULES: tuple[Rule, ...] = (
    *success_rules.RULES,
    *groups.RULES,
    *rollouts.RULES,
    *policy.RULES,
    *process_reward.RULES,
    *replay.RULES,
    *losses.RULES,
)
