"""The run folder: one process has it, what only grows is cut back, and a full disk is said."""

import errno
import json
import os
from io import StringIO
from pathlib import Path
from typing import Any

import pytest
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file

from made import made_trajectory
from rewardswap import run_folder
from rewardswap.errors import RunStoppedError
from rewardswap.models.batching import collate
from rewardswap.run_folder import RunFolder
from rewardswap.types import Group


def test_one_process_has_it_until_it_is_closed(tmp_path: Path) -> None:
    first = RunFolder(tmp_path / "run")
    with pytest.raises(ValueError, match=f"is in use by the run of process {os.getpid()}; wait"):
        RunFolder(tmp_path / "run", resume=True)
    first.add_metrics({"update": 1})
    first.close()
    RunFolder(tmp_path / "run", resume=True).close()
    with pytest.raises(ValueError, match="is not empty; give another with --output"):
        RunFolder(tmp_path / "run")


def test_a_folder_of_something_else_is_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("x")
    with pytest.raises(ValueError, match="is not empty"):
        RunFolder(tmp_path)
    assert [p.name for p in tmp_path.iterdir()] == ["thesis.tex"]


def test_what_was_written_behind_a_checkpoint_is_cut(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.add_metrics({"update": 1})
    folder.add_warning("kind", "words", 1.0)
    sizes = folder.sizes()
    folder.add_metrics({"update": 2})
    folder.add_refit(True, {})
    folder.close()
    with (tmp_path / "run" / "metrics.jsonl").open("a") as file:
        file.write('{"upd')
    folder = RunFolder(tmp_path / "run", resume=True)
    refits = (tmp_path / "run" / "prm-refits.jsonl").stat().st_size
    assert folder.cut(sizes) == len('{"update": 2}\n{"upd') + refits
    folder.add_metrics({"update": 3})
    folder.close()
    lines = (tmp_path / "run" / "metrics.jsonl").read_text().splitlines()
    assert [json.loads(line)["update"] for line in lines] == [1, 3]
    assert (tmp_path / "run" / "prm-refits.jsonl").read_text() == ""
    assert (tmp_path / "run" / "warnings.jsonl").read_text().count("\n") == 1


def test_a_record_that_is_shorter_than_its_checkpoint_says_is_refused(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder.add_metrics({"update": 1})
    folder.add_warning("kind", "words", 1.0)
    sizes = folder.sizes()
    path = tmp_path / "run" / "metrics.jsonl"
    os.truncate(path, 5)
    with pytest.raises(ValueError, match=r"metrics\.jsonl has 5 bytes, its checkpoint says 14"):
        folder.refuse_shorter(sizes)
    folder.close()


class Full(StringIO):
    def flush(self) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_a_full_disk_stops_the_run_and_names_the_file(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    folder._files["metrics.jsonl"] = Full()
    with pytest.raises(RunStoppedError, match=r"metrics\.jsonl cannot be written: No space left"):
        folder.add_metrics({"update": 1})
    folder._files["metrics.jsonl"] = StringIO()
    folder.close()


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_only_be_read_is_said(tmp_path: Path) -> None:
    tmp_path.chmod(0o500)
    with pytest.raises(ValueError, match="cannot be written: Permission denied"):
        RunFolder(tmp_path / "run")


def test_a_batch_is_kept_with_all_its_columns(tmp_path: Path) -> None:
    folder = RunFolder(tmp_path / "run")
    group = Group(made_trajectory().task, (made_trajectory(),), reward=torch.ones(1, 2))
    batch = collate([group])
    kept: dict[str, Any] = load_file(folder.write_batch(batch))
    assert torch.equal(kept["tokens"], batch.tokens)
    assert torch.equal(kept["action_mask"], batch.action_mask)
    assert {f"columns.{name}" for name in batch.columns} <= kept.keys()
    folder.close()


def test_a_batch_that_cannot_be_kept_stops_the_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Safetensors has an error of its own for what the system refuses."""

    def full(*_: Any) -> None:
        raise SafetensorError("Error while serializing: I/O error: No space left (os error 28)")

    folder = RunFolder(tmp_path / "run")
    batch = collate([Group(made_trajectory().task, (made_trajectory(),), reward=torch.ones(1, 2))])
    monkeypatch.setattr(run_folder, "save_file", full)
    with pytest.raises(RunStoppedError, match=r"finite\.safetensors cannot be written: No space"):
        folder.write_batch(batch)
    folder.close()
    assert not list((tmp_path / "run").glob("*not-finite*"))
