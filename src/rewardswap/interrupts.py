"""Ctrl-C: the first one stops a run behind the turn that it is at, the second one at once."""

import signal
import threading
from types import FrameType
from typing import Any

from rewardswap.errors import StopAskedError


class Interrupts:
    """Takes Ctrl-C over while it is entered; only the main thread's can be."""

    def __init__(self, said: Any = lambda: None) -> None:
        """`said` is called at the first Ctrl-C."""
        self.said = said
        self.asked = False
        self._before: Any = None

    def __enter__(self) -> "Interrupts":
        if threading.current_thread() is threading.main_thread():
            self._before = signal.signal(signal.SIGINT, self._interrupted)
        return self

    def __exit__(self, *_: object) -> None:
        if self._before is not None:
            signal.signal(signal.SIGINT, self._before)
            self._before = None

    def check(self) -> None:
        """Raise StopAskedError where Ctrl-C was pressed; call it where a run can stop."""
        if self.asked:
            raise StopAskedError

    def _interrupted(self, number: int, frame: FrameType | None) -> None:
        if self.asked:
            raise KeyboardInterrupt
        self.asked = True
        self.said()
