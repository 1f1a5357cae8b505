"""Episodes that are played in the background while the policy learns (one step off).

That a batch is one update old is corrected by the log-probs that it was sampled with, as replay is
(arXiv:2607.04713, Eq. 4; decoupled PPO, arXiv:2110.00641).
"""

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor, wait
from threading import Event

import torch

from rewardswap.errors import StopAskedError
from rewardswap.rollout.episodes import Played


class Background:
    """A thread that plays one collection at a time, beside the one that learns."""

    def __init__(self) -> None:
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="rollout")
        self._playing: Future[Played] | None = None
        self._given_up = Event()

    def begin(self, play: Callable[[Callable[[], None]], Played]) -> "Future[Played]":
        """Begin to play; `play` gets what it calls between turns, which raises after `close`."""
        self.settle()
        threads = torch.get_num_threads()  # a new thread would take the machine's own number

        def run() -> Played:
            torch.set_num_threads(threads)
            return play(self._go_on)

        self._playing = self._pool.submit(run)
        return self._playing

    def settle(self) -> None:
        """Wait until nothing is played: engine and environments are one player's at a time."""
        if self._playing is not None:
            wait([self._playing])

    def close(self) -> None:
        """Give up what is played, at its next turn."""
        self._given_up.set()
        self._pool.shutdown()

    def _go_on(self) -> None:
        if self._given_up.is_set():
            raise StopAskedError
