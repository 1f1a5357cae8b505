"""The command `rewardswap diagnose`."""

import json
from dataclasses import dataclass, replace
from pathlib import Path

from rich.console import Console

from rewardswap.diagnosis.advice import fitting, settings_of
from rewardswap.diagnosis.diagnose import diagnose, observe
from rewardswap.diagnosis.screen import lines
from rewardswap.help.showing import HELP, show_help
from rewardswap.options import UsageError, checked, leading, parse


@dataclass(frozen=True)
class DiagnoseSettings:
    """How a diagnosis is said."""

    json: bool = False
    """Whether as JSON, for programs."""


def diagnose_run(words: list[str], console: Console) -> None:
    """Say why a run does not learn: known causes, evidence, what to try."""
    if not words or words[0] in HELP:
        show_help("rewardswap diagnose", DiagnoseSettings(), words=words)
        return
    first, rest = leading(words)
    if rest == ["--json"]:
        rest = ["--json", "true"]
    settings = parse(DiagnoseSettings, DiagnoseSettings(), rest, "rewardswap diagnose")
    if len(first) != 1:
        raise UsageError(
            f"diagnose needs one run folder, got {' '.join(first) or 'none'}; "
            "give the folder that a training run wrote"
        )
    run = Path(first[0])
    found = checked(lambda: diagnose(observe(run)))
    found = replace(found, findings=fitting(found.findings, settings_of(run)))
    text = json.dumps(found.as_dict(), indent=2) if settings.json else "\n".join(lines(found))
    console.print(text, highlight=False, markup=False, soft_wrap=True)
