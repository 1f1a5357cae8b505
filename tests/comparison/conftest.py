from pathlib import Path

import pytest
from made_runs import make_run


@pytest.fixture
def run_folder(tmp_path: Path) -> Path:
    return make_run(tmp_path / "run")
