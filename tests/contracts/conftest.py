"""One thread: the models are so small that sharing work between threads only costs time."""

from collections.abc import Iterator

import pytest
import torch

from engines import server, vllm, vllm_engines, vllm_server, vllm_server_url, wide_folder

__all__ = ["server", "vllm", "vllm_engines", "vllm_server", "vllm_server_url", "wide_folder"]


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)
