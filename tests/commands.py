"""The command from outside: what it says when it refuses."""

import pytest

from rewardswap.cli import main


def refused(capsys: pytest.CaptureFixture[str], *words: str, code: int = 2) -> str:
    """The one line that the command says when it exits with `code`."""
    with pytest.raises(SystemExit) as stop:
        main(words)
    captured = capsys.readouterr()
    assert stop.value.code == code, captured.err
    assert captured.err.count("\n") == 1, captured.err
    assert captured.err.startswith("rewardswap: ")
    return captured.err
