"""Runs in processes of their own that are killed by signal 9, and what is left of them."""

import io
import json
import multiprocessing
import os
import signal
import threading
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from rewardswap.configuration import Run

PLACES = (
    "rollout",
    "reward",
    "collect",
    "harvest",
    "restore",
    "optimizer step",
    "evaluation",
    "record",
    "tensors of a checkpoint",
    "fsync of a checkpoint",
    "name of a checkpoint",
    "removal of a checkpoint",
    "policy saved",
    "summary",
)
"""Where a run can be killed by its own hand; `record` is in the middle of a line."""
QUIET = {"seconds", "rollout_seconds", "update_seconds"}
"""Metrics that the clock decides."""


@dataclass(frozen=True)
class Kill:
    """When a run dies: the n-th time that it comes to a place, from 1 on, or by the clock."""

    place: str | None = None
    count: int = 1
    after: float = 0.0
    """Seconds, where there is no place."""


def execute(run: Run, *, resume: bool = False, kill: Kill | None = None) -> int:
    """The exit code of the run's process, -9 where it was killed."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rewardswap.session", "rewardswap.recipes", "killed"])
    child = context.Process(target=_child, args=(run, resume, kill, None))
    child.start()
    child.join()
    assert child.exitcode is not None
    return child.exitcode


def counted(run: Run, counts: Path) -> dict[str, int]:
    """How often an undisturbed run comes to each place."""
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["rewardswap.session", "rewardswap.recipes", "killed"])
    child = context.Process(target=_child, args=(run, False, None, counts))
    child.start()
    child.join()
    assert child.exitcode == 0, "the undisturbed run failed"
    found: dict[str, int] = json.loads(counts.read_text())
    return found


def _child(run: Run, resume: bool, kill: Kill | None, counts: Path | None) -> None:
    from rich.console import Console

    from rewardswap.errors import RunStoppedError
    from rewardswap.screen import Screen
    from rewardswap.session import Training

    came: Counter[str] = Counter()

    def arrived(place: str) -> None:
        came[place] += 1
        if kill is not None and kill.place == place and came[place] == kill.count:
            os.kill(os.getpid(), signal.SIGKILL)

    _watch_places(arrived)
    if kill is not None and kill.place is None:
        threading.Timer(kill.after, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
    try:
        Training(run, resume=resume).execute(Screen(Console(file=io.StringIO())))
    except RunStoppedError as error:
        print(error, flush=True)
        os._exit(1)
    if counts is not None:
        counts.write_text(json.dumps(came))
    os._exit(0)


def _watch_places(arrived: Callable[[str], None]) -> None:
    """Have `arrived` called whenever the process comes to a place."""
    from rewardswap import whole
    from rewardswap.checkpoints import files
    from rewardswap.models.policy import Policy
    from rewardswap.rewards import checked
    from rewardswap.rollout.hf import HuggingFaceEngine
    from rewardswap.run_folder import RunFolder
    from rewardswap.session import Training
    from rewardswap.stage import Stage
    from rewardswap.trainer import Trainer

    def watch(owner: Any, name: str, place: str) -> None:
        real = getattr(owner, name)

        def watched(*args: Any, **kwargs: Any) -> Any:
            arrived(place)
            return real(*args, **kwargs)

        setattr(owner, name, watched)

    watch(HuggingFaceEngine, "wait", "rollout")
    watch(checked, "_scored", "reward")
    watch(Trainer, "collect", "collect")
    watch(Trainer, "harvest", "harvest")
    watch(Trainer, "restore", "restore")
    watch(Policy, "step", "optimizer step")
    watch(Stage, "evaluate", "evaluation")
    watch(files, "save_file", "tensors of a checkpoint")
    watch(whole, "_sync", "fsync of a checkpoint")
    watch(files, "_sum", "name of a checkpoint")
    watch(files.shutil, "rmtree", "removal of a checkpoint")
    watch(Training, "_save", "policy saved")
    watch(RunFolder, "write", "summary")
    append = RunFolder._append

    def half_a_line(folder: RunFolder, name: str, row: Mapping[str, Any]) -> None:
        file = folder._files[name]
        file.write(json.dumps(row)[: len(json.dumps(row)) // 2])
        file.flush()
        arrived("record")
        file.truncate(file.tell() - len(json.dumps(row)) // 2)
        append(folder, name, row)

    RunFolder._append = half_a_line  # type: ignore[method-assign]


def record(folder: Path) -> dict[str, Any]:
    """Everything that a finished run has left, without what the clock decides."""
    found: dict[str, Any] = {}
    for path in sorted(p for p in folder.rglob("*") if p.is_file()):
        name = str(path.relative_to(folder))
        if name in ("environment.json", "report.html", "resumes.jsonl", ".lock"):
            continue
        if name.startswith("checkpoints/."):  # a removal that was killed
            continue
        if name == "metrics.jsonl":
            rows = [json.loads(line) for line in path.read_text().splitlines()]
            found[name] = [{k: v for k, v in row.items() if k not in QUIET} for row in rows]
        elif name == "summary.json":
            summary = json.loads(path.read_text())
            for counts in (summary, *summary["phases"].values()):
                counts.pop("seconds")
            found[name] = summary
        else:
            found[name] = path.read_bytes()
    found.pop("config.toml")  # it names the folder
    return found


def elsewhere(run: Run, folder: Path) -> Run:
    """The same run in another folder."""
    return replace(run, output=folder)
