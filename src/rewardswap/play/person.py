"""A person at the terminal, or a file of lines in their place."""

import sys
from collections.abc import Sequence

from rewardswap.envs.base import Observation
from rewardswap.options import UsageError
from rewardswap.play.board import Board
from rewardswap.shown import visible_text

HINT = "? lists what is admissible, ?? tells what happened so far, quit leaves\n"
LISTED, TOLD, QUIT = "?", "??", "quit"


class Person:
    """Asks for one action a turn."""

    def __init__(self, board: Board) -> None:
        self._board = board
        self._typed = sys.stdin.isatty()
        if self._typed:
            import readline  # noqa: F401  (lines can then be edited and brought back)
        board.say(HINT)

    def act(self, past: Sequence[tuple[Observation, str]], now: Observation) -> str | None:
        """The next action; none where they leave."""
        while True:
            said = self._line(len(past))
            if said is None or said == QUIT:
                return None
            if said == LISTED:
                self._board.say("\n".join(_numbered(now.admissible) or ["(the world lists none)"]))
            elif said == TOLD:
                self._board.say("\n".join(_told(past)) or "(nothing yet)")
            elif said:
                return _chosen(said, now.admissible)

    def _line(self, turn: int) -> str | None:
        """One line without outer space; none at the end of the input."""
        prompt = self._board.prompt(turn)
        try:
            said = input(prompt if self._typed else "").strip()
        except EOFError:
            if self._typed:
                self._board.say("")
            return None
        except UnicodeDecodeError as error:
            raise UsageError("the input is no text in UTF-8; give lines of text") from error
        if not self._typed:
            self._board.say(f"{prompt}{said}")
        return said


def _numbered(admissible: Sequence[str]) -> list[str]:
    return [f"{number:4} {visible_text(action)}" for number, action in enumerate(admissible, 1)]


def _told(past: Sequence[tuple[Observation, str]]) -> list[str]:
    return [
        f"{observation.text}\n{turn}> {action}"
        for turn, (observation, action) in enumerate(past, 1)
    ]


def _chosen(said: str, admissible: Sequence[str]) -> str:
    """What was said, or the action of the list that its number stands for."""
    if said in admissible or not said.isdecimal() or not 1 <= int(said) <= len(admissible):
        return said
    return admissible[int(said) - 1]
