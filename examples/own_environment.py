"""An environment of one's own: walk over a field to a thing, told in which direction it lies."""

import random

MOVES = {"north": (0, 1), "south": (0, -1), "east": (1, 0), "west": (-1, 0)}
COLOURS = ["red", "green", "blue", "white", "black", "yellow", "brown", "silver", "golden"]
THINGS = ["lamp", "key", "cup", "book", "coin", "bell", "ring", "shoe", "apple", "clock"]
REACH = 2


class Field:
    """Every seed draws a thing and where it lies, at most two steps away along each axis."""

    turn_limit = 6

    def reset(self, seed: int) -> tuple[str, dict]:
        draw = random.Random(seed)
        self.thing = f"{draw.choice(COLOURS)} {draw.choice(THINGS)}"
        places = [(x, y) for x in range(-REACH, REACH + 1) for y in range(-REACH, REACH + 1)]
        self.x, self.y = draw.choice([place for place in places if place != (0, 0)])
        return self._text(), self._info()

    def step(self, action: str) -> tuple[str, float, bool, bool, dict]:
        east, north = MOVES.get(action, (0, 0))
        self.x, self.y = self.x - east, self.y - north
        found = self.x == self.y == 0
        return self._text(), float(found), found, False, {**self._info(), "success": found}

    def _text(self) -> str:
        sides = ["north"] * (self.y > 0) + ["south"] * (self.y < 0)
        sides += ["east"] * (self.x > 0) + ["west"] * (self.x < 0)
        return f"the {self.thing} lies {' '.join(sides) or 'here'}"

    def _info(self) -> dict:
        near = max(0.0, 1 - (abs(self.x) + abs(self.y)) / (4 * REACH))
        return {"admissible": list(MOVES), "progress": near, "state_key": f"{self.x} {self.y}"}
