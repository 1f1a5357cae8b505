"""The text engine of ALFWorld (Shridhar et al., arXiv:2010.03768): same words, same commands.

Equal, text for text, to ALFWorld 0.4 on TextWorld's PDDL engine, demangled names included.
"""

from collections.abc import Callable, Mapping, Sequence

from rewardswap.envs.alfworld.commands import list_admissible
from rewardswap.envs.alfworld.game import Game
from rewardswap.envs.alfworld.layout import CLEAN, COOL, HOT, ON, SLICED, Layout
from rewardswap.envs.alfworld.progress import progress, stage
from rewardswap.envs.alfworld.state import NOTHING, WorldState

NOTHING_HAPPENS = "Nothing happens."
"""The answer to every command that is not admissible."""

WELCOME = "-= Welcome to TextWorld, ALFRED! =-"

HELP = """Available commands:
  look:                             look around your current location
  inventory:                        check your current inventory
  go to (receptacle):               move to a receptacle
  open (receptacle):                open a receptacle
  close (receptacle):               close a receptacle
  take (object) from (receptacle):  take an object from a receptacle
  move (object) to (receptacle):  place an object in or on a receptacle
  examine (something):              examine a receptacle or an object
  use (object):                     use an object
  heat (object) with (receptacle):  heat an object using a receptacle
  clean (object) with (receptacle): clean an object using a receptacle
  cool (object) with (receptacle):  cool an object using a receptacle
  slice (object) with (object):     slice an object using a sharp object
"""
"""ALFWorld's own answer to `help`."""

CONDITIONS = (
    (CLEAN | HOT | SLICED, "hot and clean sliced"),
    (CLEAN | COOL | SLICED, "cool and clean sliced"),
    (CLEAN | SLICED, "clean sliced"),
    (HOT | SLICED, "hot sliced"),
    (COOL | SLICED, "cool sliced"),
    (CLEAN | HOT, "hot and clean"),
    (CLEAN | COOL, "cool and clean"),
    (HOT, "hot"),
    (CLEAN, "clean"),
    (COOL, "cold"),
)
"""What `examine` says of an object: the first row whose bits are all set."""


def enumerate_names(names: Sequence[str]) -> str:
    """Names with articles as ALFWorld lists them: "nothing", "a b 1", "a b 1, and a c 1"."""
    return _join([f"a {name}" for name in names])


def _join(items: Sequence[str]) -> str:
    if not items:
        return "nothing"
    if len(items) == 1:
        return items[0]
    return ", ".join(items[:-1]) + ", and " + items[-1]


class TextEngine:
    """One game in play.

    Commands count as ALFWorld counts them: exact lower-case text, spaces around it ignored, and
    "Nothing happens." where it is not admissible.
    """

    def __init__(self, game: Game, layout: Layout | None = None) -> None:
        self.layout = layout or Layout(game)
        self.game = game
        self.reset()

    def reset(self) -> str:
        """Start the game anew; returns the welcome, the room and the task."""
        self.state = WorldState(self.layout)
        self._first_stage, _ = stage(self.state)
        self._admissible: list[str] | None = None
        here = self.state.here()
        if here:
            room = self._look([])
        else:
            seen = enumerate_names(self.layout.receptacle_names)
            room = f"You are in the middle of a room. Looking quickly around you, you see {seen}."
        return f"{WELCOME}\n\n{room}\n\nYour task is to: {self.game.task}"

    def step(self, command: str) -> str:
        """Carry out a command; returns the world's answer."""
        command = command.strip()
        if command not in self.admissible:
            return NOTHING_HAPPENS
        words = command.split(" ")
        self._admissible = None
        return ACTIONS[words[0]](self, words)

    @property
    def admissible(self) -> list[str]:
        """The commands that the world accepts now, in ALFWorld's order (sorted)."""
        if self._admissible is None:
            self._admissible = list_admissible(self.state)
        return self._admissible

    def is_admissible(self, command: str) -> bool:
        """Whether the world accepts a command now."""
        return command.strip() in self.admissible

    @property
    def won(self) -> bool:
        """Whether the goal holds now."""
        return self.state.won()

    @property
    def progress(self) -> float:
        """Share of the ordered sub-goals that is reached, see `progress.progress`."""
        return progress(self.state, self._first_stage)

    @property
    def state_key(self) -> str:
        """Equal exactly when nothing that the world can still say differs, see `WorldState.key`."""
        return self.state.key()

    def _receptacle(self, words: list[str]) -> int:
        return self.layout.receptacle_index[" ".join(words)]

    def _thing(self, words: list[str]) -> int:
        return self.layout.object_index[" ".join(words)]

    def _go(self, words: list[str]) -> str:
        receptacle = self._receptacle(words[2:4])
        self.state.go(receptacle)
        name = self.layout.receptacle_names[receptacle]
        return f"You arrive at {name}. {self._describe(receptacle)}"

    def _open(self, words: list[str]) -> str:
        receptacle = self._receptacle(words[1:3])
        self.state.opened.add(receptacle)
        name = self.layout.receptacle_names[receptacle]
        return f"You open the {name}. {self._describe(receptacle)}"

    def _close(self, words: list[str]) -> str:
        receptacle = self._receptacle(words[1:3])
        self.state.opened.discard(receptacle)
        return f"You close the {self.layout.receptacle_names[receptacle]}."

    def _take(self, words: list[str]) -> str:
        thing, receptacle = self._thing(words[1:3]), self._receptacle(words[4:6])
        self.state.take(thing, receptacle)
        return f"You pick up the {words[1]} {words[2]} from the {words[4]} {words[5]}."

    def _move(self, words: list[str]) -> str:
        thing, receptacle = self._thing(words[1:3]), self._receptacle(words[4:6])
        self.state.put(thing, receptacle)
        return f"You move the {words[1]} {words[2]} to the {words[4]} {words[5]}."

    def _process(self, words: list[str]) -> str:
        verb = words[0]
        self.state.process(verb, self._thing(words[1:3]))
        return f"You {verb} the {words[1]} {words[2]} using the {words[4]} {words[5]}."

    def _slice(self, words: list[str]) -> str:
        self.state.slice(self._thing(words[1:3]))
        return f"You sliced the {words[1]} {words[2]} with the {words[4]} {words[5]}."

    def _use(self, words: list[str]) -> str:
        self.state.toggle(self._thing(words[1:3]))
        return f"You turn on the {words[1]} {words[2]}."

    def _examine(self, words: list[str]) -> str:
        name = " ".join(words[1:3])
        receptacle = self.layout.receptacle_index.get(name)
        if receptacle is not None:
            return self._describe(receptacle)
        return self._describe_object(self.layout.object_index[name])

    def _look(self, words: list[str]) -> str:
        state, layout = self.state, self.layout
        here = state.here()
        if not here:
            return (
                "You are in the middle of a room. Looking quickly around you, you see "
                f"{enumerate_names(())}."
            )
        facing = _join([layout.receptacle_names[r] for r in here])
        beside = [
            layout.object_names[thing]
            for thing, receptacle in sorted(state.left)
            if receptacle in here and state.location in state.locations[thing]
        ]
        return f"You are facing the {facing}. Next to it, you see {enumerate_names(beside)}."

    def _inventory(self, words: list[str]) -> str:
        if self.state.held == NOTHING:
            return "You are not carrying anything."
        return f"You are carrying: a {self.layout.object_names[self.state.held]}."

    def _help(self, words: list[str]) -> str:
        return HELP

    def _describe(self, receptacle: int) -> str:
        name = self.layout.receptacle_names[receptacle]
        if not self.state.accessible(receptacle):
            return f"The {name} is closed."
        names = self.layout.object_names
        seen = enumerate_names([names[thing] for thing in self.state.contents[receptacle]])
        if self.layout.openable[receptacle]:
            return f"The {name} is open. In it, you see {seen}."
        return f"On the {name}, you see {seen}."

    def _describe_object(self, thing: int) -> str:
        name, marks = self.layout.object_names[thing], self.state.marks[thing]
        if self.layout.objects[thing].is_container:
            inside = [self.layout.object_names[other] for other in self.layout.inside[thing]]
            return f"This is a normal {name}. In it, you see {enumerate_names(inside)}."
        for bits, words in CONDITIONS:
            if marks & bits == bits:
                return f"This is a {words} {name}."
        if marks & ON and self.layout.toggleable[thing]:
            return f"This {name} is on."
        if marks & SLICED and self.layout.sliceable[thing]:
            return f"This is a sliced {name}."
        return f"There's nothing special about {name}."


ACTIONS: Mapping[str, Callable[[TextEngine, list[str]], str]] = {
    "go": TextEngine._go,
    "open": TextEngine._open,
    "close": TextEngine._close,
    "take": TextEngine._take,
    "move": TextEngine._move,
    "clean": TextEngine._process,
    "heat": TextEngine._process,
    "cool": TextEngine._process,
    "slice": TextEngine._slice,
    "use": TextEngine._use,
    "examine": TextEngine._examine,
    "look": TextEngine._look,
    "inventory": TextEngine._inventory,
    "help": TextEngine._help,
}
"""The first word of a command -> what carries it out."""
