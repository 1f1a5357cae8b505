"""The command `rewardswap doctor`."""

import json
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from pathlib import Path

from rich.console import Console

from rewardswap.doctor.check import Check
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.env_options import ENVIRONMENT, elsewhere, idle_in
from rewardswap.options import parse, refuse_named, with_choices
from rewardswap.plan.settings import split_words
from rewardswap.shown import visible_text

PROGRAM = "rewardswap doctor"


@dataclass(frozen=True)
class Examination:
    """What is looked at."""

    model: str | None = None
    """A model's folder, a run's folder or a name of `rewardswap model list`; none: the small agent
    that ships for the environment."""
    device: str = "cpu"
    """Torch device that is to be used."""
    json: bool = False
    """Whether the checks are printed as JSON, for programs."""
    env: EnvironmentConfig = field(default_factory=Alfworld)


def doctor(words: list[str], console: Console) -> None:
    """Check what is needed; exit code 1 where something of it is wrong."""
    mine, others = split_words(Examination, words)
    start, rest = with_choices(Examination(), [*others, *mine], ENVIRONMENT)
    asked = parse(Examination, start, rest, PROGRAM, elsewhere())
    idle = ["env.train-split", "env.turn-limit", "env.evaluation-tasks"]
    refuse_named({"for a check": idle, **idle_in(asked.env)}, rest)
    checks: list[Check] = []
    for check in examine(asked):
        checks.append(check)
        if not asked.json:
            _say(console, check)
    wrong = [check.name for check in checks if check.fails]
    if asked.json:
        record = {"ok": not wrong, "checks": [asdict(check) for check in checks]}
        console.print(json.dumps(record, indent=2), highlight=False, markup=False, soft_wrap=True)
    else:
        found = f"wrong: {', '.join(wrong)}" if wrong else "everything that is needed is there"
        console.print(found, highlight=False)
    if wrong:
        raise SystemExit(1)


def examine(asked: Examination) -> Iterator[Check]:
    """All checks, quick ones first."""
    from rewardswap.doctor.packages import check_extras, check_packages, check_python

    yield check_python()
    packages = list(check_packages())
    yield from packages
    if any(check.fails for check in packages):
        return
    from rewardswap.doctor import machine
    from rewardswap.doctor.content import check_official_games, check_play

    yield machine.check_threads()
    yield machine.check_gpu(asked.device)
    yield machine.check_memory()
    yield machine.check_disk(Path.cwd())
    yield machine.check_writing(Path.cwd())
    yield from check_extras()
    yield check_official_games()
    yield from check_play(asked.env, asked.model, asked.device)


def _say(console: Console, check: Check) -> None:
    """One line, and behind it what to do."""
    said = f"{check.state:8} {check.name:12} {check.found}"
    lines = [said, f"{'':21} -> {check.advice}"] if check.advice else [said]
    for line in lines:
        console.print(
            visible_text(line), highlight=False, markup=False, soft_wrap=True, emoji=False
        )
