"""The command `rewardswap export`."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rewardswap.help.showing import HELP, show_help
from rewardswap.options import UsageError, checked, leading, parse


@dataclass(frozen=True)
class ExportSettings:
    """Where a policy goes."""

    output: Path
    """Folder for the policy, an ordinary Hugging Face one; it must be empty or not there."""


def export(words: list[str], console: Console) -> None:
    """Write the policy of a run that has not ended as a Hugging Face folder."""
    if not words or words[0] in HELP:
        show_help("rewardswap export", ExportSettings, words=words)
        return
    first, rest = leading(words)
    settings = parse(ExportSettings, None, rest, "rewardswap export")
    if len(first) != 1:
        raise UsageError(
            f"export needs one run folder, got {' '.join(first) or 'none'}; "
            "give the folder that a training run writes"
        )
    from rewardswap.exporting import export_policy

    found = checked(lambda: export_policy(Path(first[0]), settings.output))
    for reason in found.passed_over:
        console.print(f"passed over: {reason}", highlight=False, markup=False, soft_wrap=True)
    said = f"The agent of checkpoint {found.number}, after {found.updates} updates: "
    console.print(f"{said}{settings.output}", highlight=False, markup=False, soft_wrap=True)
