"""Fixtures of a run folder."""

from pathlib import Path

import pytest
from reported import make_run

from rewardswap.report import write_report


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    return make_run(tmp_path)


@pytest.fixture(scope="session")
def written_page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The report of the unchanged run, for tests that only read it."""
    return write_report(make_run(tmp_path_factory.mktemp("whole")))
