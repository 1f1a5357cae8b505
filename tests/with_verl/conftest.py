"""verl, only where it is installed: `make test-verl`."""

from importlib.util import find_spec

import pytest


@pytest.fixture(autouse=True, scope="session")
def only_with_verl() -> None:
    if find_spec("verl") is None:
        pytest.skip("verl is not installed; run `make test-verl`")
