"""The scripts of shells, read by a real bash: what it offers at the tab key."""

import shutil
import subprocess
from pathlib import Path

import pytest

from commands import refused
from rewardswap.cli import COMMANDS, main
from rewardswap.completion.script import script
from rewardswap.env_config import ENVIRONMENTS
from rewardswap.methods import METHODS
from rewardswap.recipes import RECIPES

OFFER = """
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
function=$(complete -p rewardswap | sed 's/.*-F \\([^ ]*\\).*/\\1/')
"$function" rewardswap "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""
BASH = shutil.which("bash")


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("completion") / "rewardswap.bash"
    path.write_text(script("bash"), encoding="utf-8")
    return path


def offered(written: Path, folder: Path, *words: str) -> set[str]:
    """What bash offers for the last word."""
    if BASH is None:
        pytest.skip("there is no bash")
    ended = subprocess.run(
        [BASH, "-c", OFFER, "bash", str(written), "rewardswap", *words],
        capture_output=True,
        text=True,
        check=True,
        cwd=folder,
    )
    assert ended.stderr == ""
    return set(ended.stdout.split())


@pytest.mark.parametrize(
    ("words", "wanted"),
    [
        (("",), COMMANDS.keys()),
        (("tr",), {"train"}),
        (("train", "webshop-d"), {"webshop-demo", "webshop-demo-grpo"}),
        (("train", "demo", "--method", ""), METHODS.keys()),
        (("train", "demo", "--method", "gi"), {"gigpo"}),
        (("train", "demo", "--env", ""), ENVIRONMENTS.keys()),
        (("train", "demo", "--policy.lea"), {"--policy.learning-rate"}),
        (("train", "demo", "--method.step-w"), {"--method.step-weight"}),  # one method's own
        (("train", "--env.prod"), {"--env.products"}),  # one environment's own
        (("train", "demo", "--seed", "3", "--loop", ""), {"rspo", "on_policy", "dense"}),
        (("train", "demo", "--dry-run", ""), {"true", "false"}),
        (("recipes", "demo"), {"demo", "demo-grpo"}),
        (("methods", "gig"), {"gigpo"}),
        (("prm", ""), {"collect", "train", "eval"}),
        (("prm", "train", "DATA", "--preset", ""), {"action", "after_observation"}),
        (("data", "prepare", "webshop", "--si"), {"--size"}),
        (("sft", "--env", ""), {"alfworld", "webshop"}),
        (("completion", ""), {"bash", "zsh"}),
        (("experiment", "sm"), {"smoke"}),
        (("model", "fetch", ""), {"smollm2-135m"}),
        (("play", "--tem"), {"--temperature"}),
        (("train", "demo", "--reward.dense", "pro"), {"progress", "progress_gains"}),
        (("prm", "eval", "DATA", "--reward", "turn"), {"turn_counter"}),
    ],
)
def test_what_bash_offers(
    words: tuple[str, ...], wanted: set[str], written: Path, tmp_path: Path
) -> None:
    assert offered(written, tmp_path, *words) == set(wanted)


def test_files_and_folders_are_offered_where_they_belong(written: Path, tmp_path: Path) -> None:
    (tmp_path / "mine.toml").touch()
    (tmp_path / "runs").mkdir()
    assert offered(written, tmp_path, "train", "") == {"mine.toml", "runs", *RECIPES}
    assert offered(written, tmp_path, "train", "--resume", "") == {"runs"}
    assert offered(written, tmp_path, "eval", "--model", "r") == {"runs"}
    assert offered(written, tmp_path, "report", "m") == {"mine.toml"}
    assert offered(written, tmp_path, "view", "") == {"runs"}


def test_the_script_of_zsh_is_read_by_zsh(tmp_path: Path) -> None:
    text = script("zsh")
    assert text.startswith("#compdef rewardswap")
    assert '"--policy.learning-rate[AdamW' in text
    zsh = shutil.which("zsh")
    if zsh is None:
        pytest.skip("there is no zsh: its script is not read by one")
    path = tmp_path / "_rewardswap"
    path.write_text(text, encoding="utf-8")
    subprocess.run([zsh, "-n", str(path)], check=True)


def test_only_shells_that_are_known(capsys: pytest.CaptureFixture[str]) -> None:
    assert "unknown shell 'bsh'; did you mean 'bash'?" in refused(capsys, "completion", "bsh")
    assert "one shell at a time" in refused(capsys, "completion", "bash", "zsh")
    main(["completion"])
    assert "usage: rewardswap completion bash | zsh" in capsys.readouterr().out
