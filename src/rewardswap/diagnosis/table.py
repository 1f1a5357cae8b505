"""The rules as the table of docs/diagnosing.md."""

from rewardswap.diagnosis.rules import RULES


def table() -> str:
    """One row a rule: its cause, when it is seen, and whose threshold that is."""
    rows = ["| cause | seen when | whose threshold |", "|---|---|---|"]
    rows += [f"| `{rule.cause}` | {rule.seen} | {rule.whose} |" for rule in RULES]
    return "\n".join(rows) + "\n"
