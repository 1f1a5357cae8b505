"""Every command that README and docs show is run, in a folder that has what they speak of.

Training and other long work is begun and not done: settings are read, and models, worlds and
folders are built as ever.
"""

import io
import json
import re
import shlex
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import rewardswap as rs
from comparison.made_results import made
from rewardswap.cli import main
from rewardswap.experiments.runner import Runner
from rewardswap.session import Training

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
PAGES += sorted((ROOT / "docs" / "results").glob("*.md"))
SHOP = ["--env.products", "100"]
SMALL = ["--env.turn-limit", "8", "--env.generated-games", "40", "--env.evaluation-tasks", "2"]
TINY_RUN = [
    "--batch.tasks",
    "8",
    "--batch.group-size",
    "2",
    "--budget",
    "1",
    "--policy.minibatches",
    "1",
]
TINY_RUN += ["--reward.trajectories", "32", "--reward.model.epochs", "1"]

ELSEWHERE = {
    "--rollout.engine vllm": "needs vLLM: `make test-vllm`",
    "--rollout.engine server": "needs a server: `make test-vllm`",
    "model fetch": "needs a package index: tests/test_model_fetch.py",
    "smollm2-135m": "needs a fetched model: `make test-slow`",
    "--baseline runs/A": "needs runs of two arms: tests/comparison",
    "data prepare": "needs spaCy: tests/test_data.py",
    "ALFWORLD_DATA": "needs official games: tests/envs/test_alfworld_official.py",
    "experiment claims": "takes hours",
    "prm collect --output DATA --trajectories": "takes minutes: tests/prm",
    "report docs/results": "writes the docs",
    "--cluster ray": "needs Ray: `make test-ray`",
    "-1.5b": "needs a model of 1.5B: tests/test_plan.py, tests/test_recipes.py",
}
"""Parts of commands that cannot be run here, and where they are."""


def commands(text: str) -> Iterator[str]:
    """Commands in the fenced blocks of a page, without comments; usage lines are none."""
    for block in re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE):
        for line in re.sub(r"\\\n\s*", " ", block).splitlines():
            for part in line.partition("  #")[0].split(";"):
                words = part.strip()
                usage = "[" in words or "|" in words or "..." in words
                if words.startswith("rewardswap ") and not usage:
                    yield words


def every_command() -> list[str]:
    found = {c for page in PAGES for c in commands(page.read_text(encoding="utf-8"))}
    return sorted(c for c in found if not any(part in c for part in ELSEWHERE))


def block(text: str, part: str) -> str:
    """The fenced block of a page that has a part in it."""
    blocks = re.findall(r"^```\w*\n(.*?)^```", text, re.DOTALL | re.MULTILINE)
    return next(found for found in blocks if part in found)


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with everything that the commands of the docs name."""
    folder = tmp_path_factory.mktemp("place")
    with pytest.MonkeyPatch.context() as here:
        here.chdir(folder)
        main(["train", "demo", *SMALL, *TINY_RUN, "--output", "runs/RUN"])
        for name in ("A", "B"):
            shutil.copytree("runs/RUN", f"runs/{name}")
        shutil.copytree("runs/RUN", "runs/STOPPED")
        Path("runs/STOPPED/summary.json").unlink()
        collect = ["--trajectories", "48", "--group-size", "4"]
        main(["prm", "collect", "--output", "DATA", *collect, *SMALL])
        shutil.copytree("DATA", "OTHER-DATA")
        main(["prm", "train", "DATA", "--output", "MODEL", "--model.epochs", "1"])
        shutil.copytree("runs/RUN/checkpoint", "FOLDER")
        main(["data", "generate", "webshop", "--output", "SHOP", "--products", "100"])
        rewards = (ROOT / "docs" / "process-rewards.md").read_text(encoding="utf-8")
        Path("mine.py").write_text(block(rewards, "def reward("), encoding="utf-8")
        experiments = (ROOT / "docs" / "experiments.md").read_text(encoding="utf-8")
        Path("alpha.toml").write_text(block(experiments, "[arms."), encoding="utf-8")
        shutil.copy("FOLDER/chat_template.jinja", "FILE")
        shutil.copy(ROOT / "examples" / "own_environment.py", "own_environment.py")
        here.syspath_prepend(folder)
        words = rs.heard(rs.Own(make="own_environment:Field").world("full"))
        rs.small_model(words.texts, words.commands, 0).save_pretrained("field-agent")
        Path("runs/NAME").mkdir()
        results = [made(arm, seed) for arm in ("base", "other") for seed in (0, 1)]
        lines = "".join(json.dumps(result) + "\n" for result in results)
        Path("runs/NAME/results.jsonl").write_text(lines, encoding="utf-8")
        shutil.copytree("runs/NAME", "runs/smoke")
    return folder


@pytest.fixture
def begun(place: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """What long work was begun."""
    found: list[str] = []

    def executed(self: Training, screen: Any) -> Path:
        found.append("training")
        self.folder.close()
        self.stage.close()
        return self.folder.path

    monkeypatch.setattr(Training, "execute", executed)

    def executed_all(self: Runner, jobs: Any) -> list[Any]:
        found.append("experiment")
        return []

    monkeypatch.setattr(Runner, "execute", executed_all)
    monkeypatch.setattr("rewardswap.sft.run", lambda *_: found.append("sft"))
    monkeypatch.setattr(
        "rewardswap.view.server.Server.serve_forever", lambda _: found.append("view")
    )
    monkeypatch.setattr("sys.stdin", io.StringIO("quit\n"))
    monkeypatch.syspath_prepend(tmp_path / "place")
    shutil.copytree(place, tmp_path / "place", symlinks=True)
    monkeypatch.chdir(tmp_path / "place")
    return found


def made_real(command: str) -> list[str]:
    """The words of a command, with what stands for something in place of its name, and small."""
    words = shlex.split(command)[1:]
    places = {"--env.data": "SHOP", "--output": "made", "--resume": "runs/STOPPED"}
    if words[0] == "check":
        places["--model"] = "made"
    for n, word in enumerate(words[:-1]):
        words[n + 1] = places.get(word, words[n + 1])
    if words[0] == "experiment" and len(words) > 1:
        words += ["--results", "made", "--mix", "commits"]
    if words[0] == "eval":
        words += ["--env.evaluation-tasks", "2"] if "--env" in words else SMALL
        words += SHOP if words[-3] == "webshop" else []
    if words[:2] in (["train", "demo"], ["train", "demo-grpo"], ["plan", "demo"]):
        words += [] if "--env" in words else SMALL
    if words[:2] == ["prm", "collect"]:
        words += ["--trajectories", "24", *SMALL]
    if words[:2] == ["prm", "train"]:
        words += ["--model.epochs", "1"]
    return words


@pytest.mark.parametrize("command", every_command())
def test_a_command_of_the_docs_runs(
    command: str, begun: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    try:
        main(made_real(command))
    except SystemExit as stop:
        assert stop.code == 0, capsys.readouterr().err


def test_what_is_not_run_is_in_the_docs_still() -> None:
    text = "\n".join(page.read_text(encoding="utf-8") for page in PAGES)
    shown = "\n".join(commands(text))
    assert {part for part in ELSEWHERE if part not in shown} == set()
