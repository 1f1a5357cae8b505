"""Who may import whom, and that the trainer knows no method's name."""

import ast
import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from rewardswap.methods import METHODS

SOURCE = Path(__file__).parents[1] / "src" / "rewardswap"

# room -> what it may import of the package, besides itself
ALLOWED = {
    "core": set(),
    "task": set(),
    "types": {"task"},
    "seams": {"types", "models"},
    "choices": {"types", "seams", "core", "models"},
    "algorithm": {"types", "seams", "core", "models", "choices"},
    "methods": {"types", "seams", "core", "algorithm", "models", "choices", "outside", "described"},
    "models": {
        "types",
        "core",
        "envs",
        "ranks",
        "whole",
    },  # the small agent's words are those of its world
    "envs": {"task"},  # a worker process imports nothing else, and so no torch
    "checks": set(),
    "policy_config": {"checks", "models"},
    "outside": set(),
    "ranks": {"errors"},
    "distributed": {"ranks", "models"},
    "cluster": {
        "checks",
        "configuration",
        "distributed",
        "env_config",
        "lock",
        "models",
        "options",
        "ranks",
        "rollout",
        "run_folder",
    },
    "env_config": {"adapters", "checks", "envs", "outside"},
    "adapters": {"checks", "envs", "outside", "task"},  # worker processes import it: no torch
    "rollout": {"task", "types", "envs", "checks", "errors", "ranks", "whole"},
    "rewards": {
        "types",
        "models",
        "core",
        "errors",
        "checks",
        "outside",
        "ranks",
        "shown",
        "whole",
    },
    "replay": {"types"},
    "replay_staleness": {"types", "replay"},
    "diversity": {"types", "models"},
    "statistics": set(),
    "report": {"shown", "statistics", "whole"},
    "view": {"help", "options", "report"},
    "shown": set(),
    "described": set(),
    "help": {"described"},
    "completion": {
        "cluster",
        "comparison",
        "configuration",
        "data",
        "diagnosis",
        "doctor",
        "env_config",
        "evaluation_command",
        "experiments",
        "export_command",
        "help",
        "inspection",
        "methods",
        "model_fetch",
        "names",
        "options",
        "plan",
        "play",
        "prm",
        "recipes",
        "rewards",
        "sft",
        "view",
    },
    "doctor": {
        "env_config",
        "env_options",
        "models",
        "options",
        "plan",
        "rollout",
        "shown",
        "stage",
        "types",
    },
    "play": {
        "checks",
        "env_config",
        "env_options",
        "envs",
        "options",
        "plan",
        "rollout",
        "settings",
        "shown",
        "stage",
        "task",
    },
    "inspection": {
        "adapters",
        "checks",
        "envs",
        "help",
        "models",
        "options",
        "shown",
        "task",
    },
    "diagnosis": {
        "configuration",
        "help",
        "monitors",
        "options",
        "recipes",
        "report",
        "run_options",
        "settings",
        "shown",
        "statistics",
    },
    "redaction": set(),
    "bridge": {"algorithm", "methods", "models", "task", "types"},
    "trackers": {"checks", "names", "redaction"},
    "comparison": {
        "configuration",
        "env_config",
        "evaluation",
        "names",
        "options",
        "recipes",
        "report",
        "settings",
        "statistics",
        "types",
        "whole",
        "help",
    },
    "experiments": {
        "checks",
        "comparison",
        "configuration",
        "env_config",
        "env_options",
        "run_options",
        "lock",
        "loops",
        "methods",
        "names",
        "options",
        "plan",
        "recipes",
        "rewards",
        "run_folder",
        "settings",
        "shown",
        "version",
        "help",
    },
    "loops": {
        "trainer",
        "collection",
        "collector",
        "diversity",
        "errors",
        "replay",
        "replay_staleness",
        "rewards",
        "types",
        "seams",
        "core",
        "models",
    },
    "prm": {
        "collector",
        "checks",
        "collection",
        "env_config",
        "env_options",
        "evaluation",
        "models",
        "names",
        "options",
        "plan",
        "rewards",
        "rollout",
        "run_folder",
        "stage",
        "task_stream",
        "trainer",
        "types",
        "whole",
        "help",
    },
    "whole": {"errors"},
    "lock": set(),
    "interrupts": {"errors", "ranks"},
    "checkpoints": {
        "checks",
        "collection",
        "distributed",
        "errors",
        "models",
        "ranks",
        "rewards",
        "trainer",
        "types",
        "whole",
    },
    "collection": {"types", "models", "rollout"},
    "errors": set(),
    "recording": {"checks", "models", "types"},
    "annotation": {"types", "choices", "algorithm", "models", "errors"},
    "optimization": {"seams", "algorithm", "models", "errors"},
    "accounting": set(),
    "collector": {"accounting", "collection", "errors", "rollout", "task_stream", "types"},
    "trainer": {
        "types",
        "accounting",
        "algorithm",
        "annotation",
        "collection",
        "collector",
        "diversity",
        "errors",
        "models",
        "optimization",
        "rewards",
    },
}
OUTSIDE = {"core": {"torch", "jaxtyping"}, "envs": set()}


def modules() -> list[Path]:
    return sorted(SOURCE.rglob("*.py"))


def imported(path: Path) -> list[str]:
    names: list[str] = []
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.append(node.module)
    return names


def room(path: Path) -> str:
    return path.relative_to(SOURCE).parts[0].removesuffix(".py")


@pytest.mark.parametrize("path", modules(), ids=lambda p: str(p.relative_to(SOURCE)))
def test_imports_follow_the_plan(path: Path) -> None:
    here = room(path)
    if here not in ALLOWED:
        return
    inner = {n.split(".")[1] for n in imported(path) if n.startswith("rewardswap.")}
    assert inner - {here} <= ALLOWED[here]


def test_core_imports_only_torch() -> None:
    standard = {"typing", "collections", "math", "dataclasses", "itertools", "difflib"}
    for path in (SOURCE / "core").glob("*.py"):
        outside = {n.split(".")[0] for n in imported(path)} - {"rewardswap"}
        assert outside <= {"torch", "jaxtyping"} | standard, path


def test_nobody_imports_the_command() -> None:
    for path in modules():
        if path.name not in ("cli.py", "__main__.py"):
            assert "rewardswap.cli" not in imported(path), path


def test_the_trainer_names_no_method() -> None:
    blind = [
        SOURCE / "trainer.py",
        SOURCE / "annotation.py",
        SOURCE / "optimization.py",
        SOURCE / "algorithm.py",
        *(SOURCE / "models").glob("*.py"),
        *(SOURCE / "core").glob("*.py"),
    ]
    for path in blind:
        tree = ast.parse(path.read_text(encoding="utf-8"))
        for node in ast.walk(tree):
            text = getattr(node, "id", None) or getattr(node, "attr", None)
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                text = node.value
            assert text not in METHODS, f"{path.name} names {text}"


def test_only_one_room_knows_of_processes_that_train_together() -> None:
    for path in modules():
        if room(path) != "distributed":
            assert not any(n.startswith("torch.distributed") for n in imported(path)), path


def test_distributed_engines_are_imported_only_in_their_files() -> None:
    for path in modules():
        names = {n.split(".")[0] for n in imported(path)}
        own = {
            SOURCE / "rollout" / "vllm.py": {"vllm"},
            SOURCE / "rollout" / "transfer.py": {"vllm"},
            SOURCE / "bridge" / "verl.py": {"verl"},
        }.get(path, {"ray"} if room(path) == "cluster" else set())
        assert not names & {"ray", "vllm", "verl"} - own, path


def test_no_two_test_files_have_one_name() -> None:
    """Outside packages, one worker that collects both can import only the first."""
    names = Counter(path.name for path in Path(__file__).parent.rglob("test_*.py"))
    assert [name for name, files in names.items() if files > 1] == []


def test_settings_are_read_without_the_models() -> None:
    """A mistyped key is refused before transformers, five seconds of imports, is there."""
    script = "import sys, rewardswap.configuration; print('transformers' in sys.modules)"
    ended = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert ended.stdout == "False\n"
