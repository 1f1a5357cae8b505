"""Gymnasium-style environments as a `World`: a task is a seed, an action a text (ours).

What an environment does not say in `info` is derived:

    success    none: the last reward is 1; the outcome is 1 or 0 by it
    outcome    by success; without it the last reward, which must lie in [0, 1]
    score      none: the outcome
    progress   none: the sum of rewards so far, `return_range` mapped to [0, 1]
    admissible none: unknown, and every action counts as admitted
    valid      none: whether the action was among the admissible ones, if these were told
    state_key  none: the observation's text
"""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, Protocol, runtime_checkable

from rewardswap.adapters.answers import Answer, ending, opened, progress_of, stepped
from rewardswap.checks import at_least
from rewardswap.envs.base import Observation, PromptStyle, Step
from rewardswap.task import Task

HELD_OUT_FROM = 1_000_000
"""The first seed that is held out; seeds to train on lie below."""
TURN_LIMIT = 20
"""Most turns of an episode where nothing says it (ours)."""
COMPARED = 100
"""So many starts of a split are compared with as many that are trained on."""


@runtime_checkable
class TextEnvironment(Protocol):
    """An environment in Gymnasium's style: text in, text out.

    It may have the attributes `instructions` (text for the agent), `turn_limit` (in turns) and
    `return_range` (lowest and highest sum of rewards), and a method `close`.
    """

    def reset(self, *, seed: int) -> Any:
        """Begin the episode of a seed: the observation's text, or text and `info`."""
        ...

    def step(self, action: str) -> tuple[str, float, bool, bool, Mapping[str, Any]]:
        """Take an action: text, reward, terminated, truncated, info."""
        ...


class SeededEnvironment:
    """One live environment of a `SeededWorld`."""

    def __init__(self, world: "SeededWorld") -> None:
        self._world = world
        self._live = world.maker()
        self._before: Observation | None = None
        self._returned = 0.0
        self._tells_progress = False

    def reset(self, task: Task) -> Observation:
        """Start a task anew; raises ValueError for a task of another world."""
        answer = opened(self._live.reset(seed=self._world.seed(task)))
        self._returned, self._tells_progress = 0.0, "progress" in answer.info
        self._before = self._observe(answer)
        return self._before

    def step(self, action: str) -> Step:
        """Take one action; raises ValueError before `reset` and after the end.

        One that a space of actions does not hold is not sent: the turn is spent, nothing changes.
        """
        before = self._before
        if before is None:
            raise ValueError(f"no episode is under way; call reset(task) before step({action!r})")
        space = getattr(self._live, "action_space", None)
        if space is not None and action not in space:
            return Step(before, valid=False, terminated=False, success=False, outcome=0.0)
        answer = stepped(self._live.step(action))
        self._returned += answer.reward
        admitted = action in before.admissible if before.admissible else True
        observation = self._observe(answer)
        success, outcome = ending(answer) if answer.over else (False, 0.0)
        self._before = None if answer.over else observation
        return Step(
            observation,
            valid=answer.info.get("valid", admitted),
            terminated=answer.over,
            success=success,
            outcome=outcome,
            task_score=answer.info.get("score"),
        )

    def close(self) -> None:
        """Close the environment, where it has a `close`."""
        self._before = None
        getattr(self._live, "close", lambda: None)()

    def _observe(self, answer: Answer) -> Observation:
        info = answer.info
        if ("progress" in info) != self._tells_progress:
            raise ValueError(
                "info gives 'progress' with some observations of an episode and not with others; "
                "give it in reset and in every step, or never"
            )
        if self._tells_progress:
            progress = info["progress"]
        else:
            progress = progress_of(self._returned, self._world.return_range)
        return Observation(
            text=answer.text,
            admissible=answer.admissible,
            state_key=info.get("state_key", answer.text),
            progress=progress,
        )


class SeededWorld:
    """The tasks of a Gymnasium-style environment; splits: `train`, `held_out`.

    `make` gives a new environment. Seeds 0, 1, ... are trained on, those from 1,000,000 on are held
    out. What is none is the environment's own attribute, else 20 turns, no instructions, and sums
    of rewards in [0, 1]. Raises ValueError for sizes out of range, and for what is no such
    environment.
    """

    def __init__(
        self,
        make: Callable[[], Any],
        *,
        train_tasks: int = 1000,
        held_out_tasks: int = 100,
        turn_limit: int | None = None,
        instructions: str | None = None,
        return_range: tuple[float, float] | None = None,
    ) -> None:
        at_least(1, train_tasks=train_tasks, held_out_tasks=held_out_tasks)
        if train_tasks > HELD_OUT_FROM:
            raise ValueError(f"train_tasks must be at most {HELD_OUT_FROM}, got {train_tasks}")
        self.maker = make
        self.name = label(make)
        first = make()
        _refuse_others(first, self.name)

        def said(name: str, given: Any, default: Any) -> Any:
            return getattr(first, name, default) if given is None else given

        self.turn_limit: int = said("turn_limit", turn_limit, TURN_LIMIT)
        self.instructions: str = said("instructions", instructions, "")
        self.return_range: tuple[float, float] = said("return_range", return_range, (0.0, 1.0))
        self.prompt_styles: Mapping[str, PromptStyle] = {}
        getattr(first, "close", lambda: None)()
        at_least(1, turn_limit=self.turn_limit)
        if not self.return_range[0] < self.return_range[1]:
            raise ValueError(
                f"return_range {self.return_range} must be the lowest and the highest sum of "
                "rewards, in this order"
            )
        self._seeds = {
            "train": range(train_tasks),
            "held_out": range(HELD_OUT_FROM, HELD_OUT_FROM + held_out_tasks),
        }
        self._seed_of = {self._task(s).id: s for seeds in self._seeds.values() for s in seeds}

    def tasks(self, split: str) -> list[Task]:
        """The seeds of a split as tasks, ascending; raises ValueError naming the splits."""
        if split not in self._seeds:
            raise ValueError(f"unknown split {split!r}, this world has {sorted(self._seeds)}")
        return [self._task(seed) for seed in self._seeds[split]]

    def remarks(self, split: str) -> list[str]:
        """How many held-out tasks begin as training tasks do; ValueError names the splits.

        The first 100 tasks of both splits are looked at: their texts and state keys. Those that
        cannot be begun are counted.
        """
        tasks = self.tasks(split)[:COMPARED]
        if split == "train":
            return []
        trained_on, broken = self._starts(self.tasks("train")[:COMPARED])
        held_out, also_broken = self._starts(tasks)
        broken += also_broken
        looked_at = len(held_out) + len(trained_on) + len(broken)
        said = broken and [
            f"{len(broken)} of the {looked_at} seeds that were looked at could not be begun: their "
            f"episodes fail, and are counted. The first said {broken[0]}"
        ]
        known = set(trained_on)
        shared = sum(start in known for start in held_out)
        if not shared:
            return said
        return [
            *said,
            f"{shared} of the first {len(tasks)} held-out seeds begin exactly as one of the first "
            f"{COMPARED} training seeds does: they may be tasks that were trained on, unless a "
            "first observation hides what its seed draws.",
        ]

    def make(self) -> SeededEnvironment:
        """A new environment for all tasks of this world."""
        return SeededEnvironment(self)

    def seed(self, task: Task) -> int:
        """The seed of a task; raises ValueError for a task of another world."""
        if task.id not in self._seed_of:
            raise ValueError(f"unknown task {task.id!r}; take one of tasks(split)")
        return self._seed_of[task.id]

    def _task(self, seed: int) -> Task:
        content = f"{self.name} {seed}"
        return Task(hashlib.sha256(content.encode()).hexdigest()[:16], self.name.lower())

    def _starts(self, tasks: Sequence[Task]) -> tuple[list[tuple[str, str]], list[str]]:
        """What is seen at first, and what the tasks said that cannot be begun."""
        environment = self.make()
        starts, broken = [], []
        for task in tasks:
            try:
                seen = environment.reset(task)
            except Exception as error:  # it may be anybody's code
                broken.append(f"{type(error).__name__}: {error}")
                environment = self.make()
            else:
                starts.append((seen.text, seen.state_key))
        environment.close()
        return starts, broken


def label(make: Callable[[], Any]) -> str:
    """What a maker is called: its `label` or name, with its arguments where it is a partial."""
    if isinstance(make, partial):
        given = [*map(repr, make.args), *(f"{n}={v!r}" for n, v in sorted(make.keywords.items()))]
        return f"{label(make.func)}({', '.join(given)})"
    name: str = getattr(make, "label", getattr(make, "__qualname__", type(make).__name__))
    return name


def _refuse_others(made: object, name: str) -> None:
    """Raise ValueError for what has no `reset` and `step`, or other spaces than of text."""
    for method in ("reset", "step"):
        if not callable(getattr(made, method, None)):
            raise ValueError(
                f"{name}() gave {type(made).__name__}, which has no `{method}`; it must give an "
                "environment with reset(seed) and step(action)"
            )
    for space in ("observation_space", "action_space"):
        kind = type(getattr(made, space, None))
        if kind is not type(None) and "Text" not in [base.__name__ for base in kind.__mro__]:
            raise ValueError(
                f"the {space} of {name} is {kind.__name__}, not Text; wrap the environment in one "
                "that says its observations and reads its actions as text"
            )
