"""Settings that are proposed exist, and the run that they are proposed to takes them."""

import re
import shlex
from dataclasses import replace
from pathlib import Path

import pytest

from diagnosis_runs import CASES, healthy
from rewardswap.configuration import Run
from rewardswap.diagnosis.advice import fitting, settings_of, takes
from rewardswap.diagnosis.diagnose import diagnose, observe
from rewardswap.diagnosis.finding import Advice, Finding
from rewardswap.methods import METHODS
from rewardswap.options import option_types
from rewardswap.recipes import RECIPES, demo

OPTIONS = {"--method"}.union(
    *(option_types(replace(demo(), loop="on_policy", method=kind())) for kind in METHODS.values()),
    *(option_types(make()) for make in RECIPES.values()),
)


def finding(cause: str, folder: Path, config: Run | None = None) -> Finding:
    made = healthy()
    CASES[cause](made)
    made.config = made.config if config is None else config
    findings = diagnose(observe(made.write(folder / "run"))).findings
    return next(f for f in findings if f.rule.cause == cause)


@pytest.mark.parametrize("cause", CASES)
def test_proposed_settings_exist(cause: str, tmp_path: Path) -> None:
    for advice in finding(cause, tmp_path).seen.advice:
        words = shlex.split(advice.settings)
        assert {word for word in words if word.startswith("--")} <= OPTIONS
        assert advice.why


@pytest.mark.parametrize("cause", CASES)
def test_every_cause_has_advice_that_its_run_takes(cause: str, tmp_path: Path) -> None:
    config = settings_of(finding_folder(cause, tmp_path))
    assert config is not None
    (found,) = fitting([finding(cause, tmp_path / "again")], config)
    assert found.seen.advice


def finding_folder(cause: str, folder: Path) -> Path:
    finding(cause, folder)
    return folder / "run"


def test_advice_that_the_run_does_not_take_is_left_out(tmp_path: Path) -> None:
    found = finding("worse_critic", tmp_path)
    proposed = [a.settings for a in found.seen.advice]
    assert "--method.critic-warmup 10" in proposed
    (fits,) = fitting([found], demo())  # GRPO: no critic, and grpo already
    assert [a.settings for a in fits.seen.advice] == []
    (unknown,) = fitting([found], None)
    assert unknown == found


@pytest.mark.parametrize(
    ("settings", "taken"),
    [
        ("", True),
        ("--swap.explore-steps 6", True),
        ("--swap.explore-steps 3", False),  # it is 3
        ("--swap.alpha 0", False),  # explore steps would do nothing
        ("--swap.alhpa 0.25", False),
    ],
)
def test_what_a_run_takes(settings: str, taken: bool) -> None:
    assert takes(demo(), Advice(settings, "")) is taken


def test_settings_of_another_version_are_unknown(tmp_path: Path) -> None:
    folder = healthy().write(tmp_path / "run")
    assert settings_of(folder) == replace(healthy().config, output=None)
    text = (folder / "config.toml").read_text()
    (folder / "config.toml").write_text(re.sub("(?m)^seed", "seeed", text))
    assert settings_of(folder) is None
    (folder / "config.toml").unlink()
    assert settings_of(folder) is None
