"""A task by itself: environments need nothing else of `types`, so no worker process loads torch."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Task:
    """One start state of an environment; the same id always means the same start state."""

    id: str
    """Content hash of the start state."""
    family: str
    """The benchmark's kind of task; tables per family are made by it."""
    origin: str = ""
    """What the task was made from, where several are made from one thing (WebShop: the product).
    Tasks of one origin are in one split."""
