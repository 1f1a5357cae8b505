"""The docs say what is there: the page of methods, keys of the command, links."""

import re
from dataclasses import replace
from pathlib import Path

import pytest

from rewardswap.cli import main
from rewardswap.diagnosis.rules import RULES
from rewardswap.env_config import ENVIRONMENTS
from rewardswap.loops.settings import RewardSwap
from rewardswap.methods import METHODS
from rewardswap.options import option_types
from rewardswap.recipes import demo

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def known_keys() -> set[str]:
    """Every key and section of `rewardswap train`, whatever the method and the environment."""
    run = replace(demo(), loop="on_policy")
    runs = [replace(run, method=kind()) for kind in METHODS.values()]
    policy = replace(run.policy, model="folder")  # for some environments no model ships
    runs += [replace(run, env=kind(), policy=policy) for kind in ENVIRONMENTS.values()]
    keys = {"--method", "--env"}.union(*(option_types(run) for run in runs))
    return keys | {key.rpartition(".")[0] for key in keys}


def test_the_page_of_methods_is_what_the_command_prints(
    capsys: pytest.CaptureFixture[str],
) -> None:
    main(["methods", "--markdown"])
    page = (ROOT / "docs" / "methods.md").read_text(encoding="utf-8")
    assert page == capsys.readouterr().out, "run `make docs`"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_keys_in_the_docs_exist(page: Path) -> None:
    text = page.read_text(encoding="utf-8")
    dotted = re.findall(r"(?:--|`)((?:method|swap|policy|batch|reward|env)\.[a-z_.-]*[a-z])", text)
    files = {"method.md", "methods.md"}
    named = {f"--{key.replace('_', '-')}" for key in dotted if key not in files}
    assert named <= known_keys()


def test_every_setting_of_the_swap_is_in_the_page_of_rspo() -> None:
    text = (ROOT / "docs" / "method.md").read_text(encoding="utf-8")
    for name in RewardSwap.__dataclass_fields__:
        assert f"`swap.{name.replace('_', '-')}`" in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_to_files_lead_somewhere(page: Path) -> None:
    for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
        assert "://" in target or (page.parent / target).exists(), target


def test_the_readme_counts_the_causes_that_are_looked_for() -> None:
    said = re.search(r"(\d+) known causes", (ROOT / "README.md").read_text(encoding="utf-8"))
    assert said is not None and int(said[1]) == len(RULES)
