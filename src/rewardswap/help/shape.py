"""The one shape of a command's help: a screen first, then every setting."""

from dataclasses import dataclass

from rewardswap.described import indented

SCREEN_LINES = 24
"""Most lines of the first screen."""


@dataclass(frozen=True)
class Help:
    """What a command is for, how it is called, and three examples."""

    command: str
    """Its words behind `rewardswap`: `train`, or `prm train`."""
    summary: str
    """What it does, in one sentence."""
    usage: tuple[str, ...]
    """Ways to call it, without `rewardswap` and its own words."""
    examples: tuple[tuple[str, str], ...]
    """Three commands and what each is for; `rewardswap` is put in front, but of `eval "$(...)"`.
    What is in capitals stands for something of the reader's."""
    notes: tuple[str, ...] = ()
    """Sentences that belong on the first screen."""

    def screen(self) -> str:
        """The first screen: at most 24 lines below 80 characters."""
        starts = ["usage:", *[""] * (len(self.usage) - 1)]
        calls = [
            indented(f"{start:6} rewardswap {self.command} {words}".rstrip(), 9, first=0)
            for start, words in zip(starts, self.usage, strict=True)
        ]
        shown = [
            f"{indented(call if '$(' in call else f'rewardswap {call}', 6, first=2)}\n"
            f"{indented(what, 6)}"
            for call, what in self.examples
        ]
        parts = [
            indented(self.summary, 0),
            "\n".join(calls),
            "\n".join(["examples:", *shown]),
            "\n".join(indented(note, 2, first=0) for note in self.notes),
        ]
        return "\n\n".join(part for part in parts if part)
