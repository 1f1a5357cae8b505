"""A player of the text world that knows only what it was told; it writes the demonstrations."""

import re
from dataclasses import dataclass
from random import Random

from rewardswap.envs.alfworld.game import PROCESSED_BY, Goal

ENTITY = re.compile(r"\b[a-z]+ [0-9]+\b")
PROCESS_VERB = {"SinkBasin": "clean", "Microwave": "heat", "Fridge": "cool"}
NOISY_VERBS = ("go", "open", "close", "take", "move", "use", "heat", "clean", "cool")


@dataclass(frozen=True, slots=True)
class Noise:
    """How a demonstration goes astray; the defaults are a player without fault."""

    rate: float = 0.0
    """Share of turns with a random action instead of the expert's."""
    inadmissible: float = 1 / 3
    """Share of those random actions that are well formed but impossible."""
    forgets_process: bool = False
    """Whether the object is first placed without being cleaned, heated or cooled."""


def kind_of(entity: str) -> str:
    """The kind word of a numbered name: "mug 1" -> "mug"."""
    return entity.rsplit(" ", 1)[0]


class Expert:
    """Searches unexplored receptacles in random order, then takes, processes and places.

    It is told the goal and every observation, and remembers; hidden facts are out of its reach. It
    goes on sensibly from any state, also one that its own noise led to.
    """

    def __init__(self, goal: Goal, random: Random, noise: Noise | None = None) -> None:
        self.random = random
        self.noise = noise or Noise()
        self.target = goal.object_kind.lower()
        self.goal_kind = (goal.receptacle_kind or "").lower()
        self.lamp_kind = (goal.lamp_kind or "").lower()
        self.wanted = 2 if goal.task_type == "pick_two_obj_and_place" else 1
        processor = PROCESSED_BY.get(goal.task_type, ("", ""))[1]
        self.processor_kind = processor.lower()
        self.forgetful = self.noise.forgets_process
        self.process_verb = PROCESS_VERB.get(processor, "")
        self.receptacles: list[str] = []
        self.unexplored: list[str] = []
        self.contents: dict[str, set[str]] = {}
        self.closed: set[str] = set()
        self.processed: set[str] = set()
        self.refused: set[str] = set()
        self.here = ""
        self.held = ""

    def begin(self, observation: str) -> None:
        """Read the first observation: the receptacles of the room and the task."""
        self.receptacles = ENTITY.findall(observation)
        self.unexplored = self.random.sample(self.receptacles, len(self.receptacles))

    def act(self, admissible: tuple[str, ...]) -> str:
        """The next command; `admissible` is read by the noise alone."""
        if self.random.random() < self.noise.rate:
            return self._stray(admissible)
        if not self.held:
            return self._fetch()
        if kind_of(self.held) != self.target:
            return self._put_away()
        if self.lamp_kind:
            return self._light()
        if self._needs_process(self.held) and not self.forgetful:
            processor = self._nearest(self.processor_kind)
            return self._at(processor, f"{self.process_verb} {self.held} with {processor}")
        place = self._goal_place()
        return self._at_open(place, f"move {self.held} to {place}")

    def see(self, action: str, observation: str) -> None:
        """Read what an action led to."""
        if "nothing happens" in observation.lower():
            self.refused.add(action)
            return
        words = action.split(" ")
        named = ENTITY.findall(action)
        if words[0] in ("go", "open"):
            self._arrive(named[0], observation)
        elif words[0] == "close":
            self.closed.add(named[0])
        elif words[0] == "take":
            self.held = named[0]
            self.contents.setdefault(named[1], set()).discard(named[0])
        elif words[0] == "move":
            self.held = ""
            self.forgetful = self.forgetful and kind_of(named[0]) != self.target
            self.contents.setdefault(named[1], set()).add(named[0])
        elif words[0] == self.process_verb:
            self.processed.add(named[0])

    def _arrive(self, receptacle: str, observation: str) -> None:
        self.here = receptacle
        if "closed" in observation:
            self.closed.add(receptacle)
            return
        self.closed.discard(receptacle)
        if receptacle in self.unexplored:
            self.unexplored.remove(receptacle)
        found = set(ENTITY.findall(observation)) - set(self.receptacles)
        self.contents[receptacle] = found

    def _at(self, receptacle: str, command: str) -> str:
        return command if self.here == receptacle else f"go to {receptacle}"

    def _at_open(self, receptacle: str, command: str) -> str:
        if self.here == receptacle and receptacle in self.closed:
            return f"open {receptacle}"
        return self._at(receptacle, command)

    def _nearest(self, kind: str) -> str:
        """The receptacle of a kind that is at hand, else the first named."""
        places = [name for name in self.receptacles if kind_of(name) == kind]
        return self.here if self.here in places else places[0]

    def _goal_place(self) -> str:
        """Where an object of the wanted kind already lies, else the nearest: two go together."""
        for name in self.receptacles:
            if kind_of(name) == self.goal_kind and self._targets(name):
                return name
        return self._nearest(self.goal_kind)

    def _targets(self, receptacle: str) -> list[str]:
        found = self.contents.get(receptacle, ())
        return sorted(name for name in found if kind_of(name) == self.target)

    def _fetch(self) -> str:
        """Take an object that is known and not yet in its place, else search."""
        settled = self._goal_place() if self.wanted == 2 else ""
        for receptacle in sorted(self.contents, key=lambda name: name != self.here):
            ready = [t for t in self._targets(receptacle) if self._worth_taking(t, receptacle)]
            if ready and receptacle != settled:
                return self._at_open(receptacle, f"take {ready[0]} from {receptacle}")
        return self._search()

    def _worth_taking(self, target: str, receptacle: str) -> bool:
        """Whether taking an object again could help: not once it is placed and processed."""
        if kind_of(receptacle) != self.goal_kind or self.wanted == 2:
            return True
        return self._needs_process(target)

    def _needs_process(self, target: str) -> bool:
        return bool(self.processor_kind) and target not in self.processed

    def _search(self) -> str:
        if not self.unexplored:
            others = [name for name in self.receptacles if name != self.here]
            self.unexplored = self.random.sample(others, len(others))
        receptacle = self.unexplored[0]
        return f"open {receptacle}" if self.here == receptacle else f"go to {receptacle}"

    def _light(self) -> str:
        for receptacle, found in self.contents.items():
            lamps = sorted(name for name in found if kind_of(name) == self.lamp_kind)
            if lamps:
                return self._at(receptacle, f"use {lamps[0]}")
        return self._search()

    def _put_away(self) -> str:
        """Put a thing that is of no use where it is let go, the place at hand first."""
        for place in sorted(self.receptacles, key=lambda name: name != self.here):
            command = f"move {self.held} to {place}"
            if command not in self.refused:
                return self._at_open(place, command)
        raise ValueError(f"no receptacle of {self.receptacles} takes {self.held!r}")

    def _stray(self, admissible: tuple[str, ...]) -> str:
        if self.random.random() >= self.noise.inadmissible:
            usual = [c for c in admissible if c.split(" ", 1)[0] in NOISY_VERBS]
            return self.random.choice(usual)
        things = sorted({name for found in self.contents.values() for name in found})
        thing = self.random.choice(things or self.receptacles)
        place = self.random.choice(self.receptacles)
        forms = (f"take {thing} from {place}", f"move {thing} to {place}", f"open {place}")
        return self.random.choice([*forms, f"use {thing}", f"go to {place}"])
