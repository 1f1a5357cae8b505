"""One thread per test process: many small operations gain nothing from more. Ctrl-C is heard, also
where a shell has begun the tests in the background, which ignores it."""

import signal
from collections.abc import Iterator

import pytest
import torch

from browser import Browser, chromium

torch.set_num_threads(1)
signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    """A real browser, where there is one: tests that take it skip themselves elsewhere."""
    with chromium(tmp_path_factory.mktemp("browser")) as found:
        yield found
