"""Ctrl-C: the first one stops a run behind the turn that it is at, the second one at once."""

import signal
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from rewardswap.errors import StopAskedError
from rewardswap.ranks import ALONE, Ranks


class Interrupts:
    """Whether somebody pressed Ctrl-C."""

    def __init__(self, ranks: Ranks = ALONE) -> None:
        self.ranks = ranks
        self.asked = False

    def check(self) -> None:
        """Raise StopAskedError where somebody did; call it where a run can stop."""
        if self.asked:
            raise StopAskedError

    def check_all(self) -> None:
        """As `check`, where anybody on any rank did; every rank must call it."""
        if any(self.ranks.gather(self.asked)):
            raise StopAskedError

    @contextmanager
    def heard_by(self, told: Callable[[], None]) -> Iterator[None]:
        """Take Ctrl-C over; `told` is called at the first one. Only the main thread's can be."""
        if threading.current_thread() is not threading.main_thread():
            yield
            return

        def interrupted(number: int, frame: FrameType | None) -> None:
            if self.asked:
                raise KeyboardInterrupt
            self.asked = True
            told()

        before = signal.signal(signal.SIGINT, interrupted)
        try:
            yield
        finally:
            signal.signal(signal.SIGINT, before)
