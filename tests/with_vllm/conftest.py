"""vLLM, only where it is installed: `make test-vllm`."""

from importlib.util import find_spec

import pytest

from engines import NO_VLLM, vllm, vllm_engines, wide_folder
from real_model import smollm2

__all__ = ["smollm2", "vllm", "vllm_engines", "wide_folder"]


@pytest.fixture(autouse=True, scope="session")
def only_with_vllm() -> None:
    if find_spec("vllm") is None:
        pytest.skip(NO_VLLM)
