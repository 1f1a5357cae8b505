"""The page of a run, served while a test looks at it."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Thread

from rewardswap.view.pages import Pages
from rewardswap.view.server import Server


@contextmanager
def served(run: Path) -> Iterator[Server]:
    """A server of the run's page, at work for as long as this goes on."""
    with Server(Pages(run)) as found:
        thread = Thread(target=found.serve_forever, args=(0.01,))
        thread.start()
        yield found
        found.shutdown()
        thread.join()
