"""The names of the package: each is explained, and the package loads nothing before its use."""

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import rewardswap

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "docs" / "library.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", rewardswap.__all__)
def test_every_name_is_explained(name: str) -> None:
    found = getattr(rewardswap, name)
    assert inspect.getdoc(found)
    assert found.__doc__ and found.__doc__.strip()[0].isupper()
    assert f"`{name}`" in PAGE, f"docs/library.md does not name {name}"


def test_type_checkers_are_told_the_same_names() -> None:
    tree = ast.parse(Path(rewardswap.__file__).read_text(encoding="utf-8"))
    told = {
        alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and str(node.module).startswith("rewardswap.")
        for alias in node.names
    }
    assert set(told) == set(rewardswap.__all__) == set(rewardswap._MODULE_OF)
    assert all(told[name] == f"rewardswap.{rewardswap._MODULE_OF[name]}" for name in told)
    assert set(rewardswap.__all__) <= set(dir(rewardswap))


def test_no_name_is_a_modules_too() -> None:
    modules = {path.stem for path in Path(rewardswap.__file__).parent.iterdir()}
    assert not modules & set(rewardswap.__all__)


def test_an_unknown_name_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'rewardswap' has no attribute 'trian'"):
        rewardswap.trian  # noqa: B018


def test_the_package_loads_no_torch_until_it_is_used() -> None:
    program = (
        "import sys, rewardswap\n"
        "heavy = {'torch', 'transformers', 'numpy', 'tyro', 'rich'}\n"
        "assert not heavy & set(sys.modules)\n"
        "rewardswap.SeededWorld, rewardswap.Own, rewardswap.World\n"
        "assert not {'torch', 'transformers'} & set(sys.modules)\n"
        "rewardswap.check_environment\n"
        "assert 'torch' not in sys.modules\n"
        "from rewardswap import *\n"
        "assert 'torch' in sys.modules and Trainer and small_model\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_the_loop_of_the_page_is_the_one_that_is_tested() -> None:
    tested = (ROOT / "tests" / "test_by_hand.py").read_text(encoding="utf-8")
    loop = re.search(r"    while trainer\.agent_updates.*?trainer\.loop \+= 1\n", tested, re.S)
    assert loop is not None
    assert loop[0] in PAGE


def test_the_scripts_of_the_page_are_the_examples() -> None:
    for name in ("train_own_environment.py", "own_environment.py"):
        assert (ROOT / "examples" / name).read_text(encoding="utf-8") in PAGE
