"""What a run has spent, phase by phase."""

import pytest

from rewardswap import accounting
from rewardswap.accounting import Accounting


def test_counts_go_to_a_phase_and_to_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    now = iter([10.0, 13.0, 20.0, 21.0, 25.0])
    monkeypatch.setattr(accounting.time, "monotonic", lambda: next(now))
    spent = Accounting()
    spent.add("learn", environment_steps=5, generated_tokens=20)
    assert spent.end("learn") == 3.0
    spent.add("explore", environment_steps=2, all_updates=1)
    spent.begin()  # 7 seconds that are nobody's
    spent.end("explore")
    spent.add("learn", environment_steps=1, trained_tokens=9, all_updates=1)
    assert spent.end("learn") == 15.0
    assert spent.total["environment_steps"] == 8
    assert spent.as_dict() == {
        "learn": {
            "environment_steps": 6,
            "generated_tokens": 20,
            "trained_tokens": 9,
            "updates": 1,
            "seconds": 7.0,
        },
        "explore": {
            "environment_steps": 2,
            "generated_tokens": 0,
            "trained_tokens": 0,
            "updates": 1,
            "seconds": 1.0,
        },
    }
