"""The first Ctrl-C asks, the second one stops."""

import signal

import pytest

from rewardswap.errors import StopAskedError
from rewardswap.interrupts import Interrupts


def test_the_first_one_asks_and_the_second_one_stops() -> None:
    before = signal.getsignal(signal.SIGINT)
    said: list[str] = []
    interrupts = Interrupts()
    with interrupts.heard_by(lambda: said.append("heard")):
        interrupts.check()
        signal.raise_signal(signal.SIGINT)
        assert said == ["heard"]
        with pytest.raises(StopAskedError):
            interrupts.check()
        with pytest.raises(KeyboardInterrupt) as stopped:
            signal.raise_signal(signal.SIGINT)
        assert not isinstance(stopped.value, StopAskedError)
    assert signal.getsignal(signal.SIGINT) is before
