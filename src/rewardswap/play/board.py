"""What is seen of an episode, turn by turn; no text of a world or a model steers the terminal."""

from dataclasses import dataclass

from rich.console import Console

from rewardswap.shown import cell
from rewardswap.task import Task

REFUSED = "(not valid: it took a turn all the same)"
"""What is said of an action that the world did not admit."""


@dataclass(frozen=True)
class Ending:
    """How an episode ended."""

    success: bool
    outcome: float
    score: float | None
    """The benchmark's own score in [0, 1]; none: it has none."""
    turns: int
    invalid: int
    """Actions that were not valid."""
    why: str = ""
    """What ended it, where the world did not."""


class Board:
    """Prints an episode through one console."""

    def __init__(self, console: Console, limit: int) -> None:
        self.console, self.limit = console, limit

    def say(self, text: str) -> None:
        """Print text as it is, wrapped at the width of the screen."""
        self.console.print(cell(text))

    def opening(self, place: str, task: Task, instructions: str) -> None:
        """Say what is played, and how."""
        self.say(f"{place}: {task.family}\ntask {task.id}, at most {self.limit} turns")
        if instructions:
            self.say(f"\n{instructions}")
        self.say("")

    def prompt(self, turn: int) -> str:
        """What stands in front of the action of a turn, which counts from 0."""
        return f"{turn + 1}/{self.limit}> "

    def acted(self, turn: int, action: str, note: str = "") -> None:
        """Print an action that nobody typed."""
        self.say(f"{self.prompt(turn)}{action}{note and f'   [{note}]'}")

    def ended(self, ending: Ending) -> None:
        """Print outcome, success, turns, and what ended it."""
        score = "" if ending.score is None else f", score {ending.score:g}"
        why = ending.why and f"; ended by {ending.why}"
        self.say(
            f"\n{'won' if ending.success else 'not won'}: outcome {ending.outcome:g}{score}, "
            f"{ending.turns} of at most {self.limit} turns, {ending.invalid} of them not valid{why}"
        )

    def left(self, turns: int) -> None:
        """Print that the episode was left."""
        self.say(f"\nleft after {turns} of at most {self.limit} turns, not won")
