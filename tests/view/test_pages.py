"""What folder a page is made from."""

import os
from pathlib import Path

import pytest

from rewardswap.view.pages import Pages


def test_a_folder_of_runs_is_none_itself(tmp_path: Path) -> None:
    for n, name in enumerate(("first", "second")):
        (tmp_path / name).mkdir()
        (tmp_path / name / "config.toml").write_text("")
        os.utime(tmp_path / name / "config.toml", (n, n))
    said = r"holds 2 runs and is none itself; the newest is .*second"
    with pytest.raises(ValueError, match=said):
        Pages(tmp_path)
    (tmp_path / "config.toml").write_text("")
    Pages(tmp_path)  # a run, whatever lies in it
