"""How long turns and prompts of a run are: measured by playing its own world at random."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from random import Random
from statistics import fmean

from rewardswap.envs.base import Observation, PromptStyle, World
from rewardswap.rollout.prompting import Context
from rewardswap.types import IntArray, Task

CHARACTERS_PER_TOKEN = 4
"""Assumed where there is no tokenizer (ours)."""
TEMPLATE_TOKENS = 8
"""Tokens of a chat template around a message, assumed where there is no tokenizer (ours)."""
UNTOLD = ("look around",)
"""Stands for every action where the world tells no admissible ones (ours)."""

Wandering = Sequence[tuple[Observation, str]]
"""What was seen and done, turn after turn."""


@dataclass(frozen=True)
class TurnLength:
    """One turn in tokens."""

    context: int
    """Tokens that are read before the action."""
    action: int
    """Tokens of the action, the end token among them."""
    extends: bool
    """Whether the turn goes on in the row of the turn before."""


Episode = tuple[TurnLength, ...]


@dataclass(frozen=True)
class Lengths:
    """Lengths of some episodes in tokens; every mean is over episodes or their turns."""

    episodes: tuple[Episode, ...]

    @property
    def turns(self) -> float:
        """Mean turns of an episode."""
        return fmean(len(episode) for episode in self.episodes)

    @property
    def action(self) -> float:
        """Mean tokens of one action."""
        return self.action_tokens / self.turns

    @property
    def action_tokens(self) -> float:
        """Mean action tokens of an episode."""
        return fmean(sum(turn.action for turn in episode) for episode in self.episodes)

    @property
    def tokens(self) -> float:
        """Mean tokens of all rows of an episode: each is read once, and trained on."""
        return fmean(sum(rows_of_lengths(episode)) for episode in self.episodes)

    @property
    def rows(self) -> float:
        """Mean rows of an episode."""
        return fmean(len(rows_of_lengths(episode)) for episode in self.episodes)

    @property
    def longest_row(self) -> int:
        """Tokens of the longest row, which is also the longest context of an episode."""
        return max(length for episode in self.episodes for length in rows_of_lengths(episode))

    @property
    def longest_read(self) -> int:
        """Most tokens that are read at once, at the start of a row or behind an action."""
        return max(turn.context for episode in self.episodes for turn in episode)

    @property
    def opening(self) -> float:
        """Mean tokens of the first prompt."""
        return fmean(episode[0].context for episode in self.episodes)

    @property
    def following(self) -> float:
        """Mean tokens that are read in a turn behind the first, 0 where there is none."""
        later = [turn.context for episode in self.episodes for turn in episode[1:]]
        return fmean(later) if later else 0.0

    @property
    def seen(self) -> float:
        """Mean tokens that a token sees: half of its row, so long rows weigh more."""
        rows = [length for episode in self.episodes for length in rows_of_lengths(episode)]
        return sum(length * length / 2 for length in rows) / sum(rows)

    def room(self, action_cap: int) -> int:
        """Tokens for which the cache has room in the end, padding and whole actions included.

        As `rollout.slot_cache` grows: to what is needed, by half of what it was at the least.
        """
        room = 0
        for k in range(max(len(episode) for episode in self.episodes)):
            live = [_at_turn(episode, k) for episode in self.episodes if k < len(episode)]
            needed = max(start for start, _ in live) + max(read for _, read in live) + action_cap
            if needed > room:
                room = max(needed, room + room // 2)
        return room

    def cut(self, turns: int) -> "Lengths":
        """The same episodes, none longer than `turns`."""
        return Lengths(tuple(episode[:turns] for episode in self.episodes))

    def with_actions(self, tokens: int) -> "Lengths":
        """The same episodes with so many tokens in every action."""
        return Lengths(tuple(tuple(replace(t, action=tokens) for t in e) for e in self.episodes))

    def thinking(self, tokens: int, most: int) -> "Lengths":
        """The same episodes with `tokens` more in every action, of `most` at most."""
        return Lengths(
            tuple(
                tuple(replace(t, action=min(t.action + tokens, most)) for t in episode)
                for episode in self.episodes
            )
        )


def rows_of_lengths(episode: Episode) -> list[int]:
    """Tokens of each row of an episode, as `models.batching.rows_of` lays it out."""
    rows: list[int] = []
    for turn in episode:
        if not (turn.extends and rows):
            rows.append(0)
        rows[-1] += turn.context + turn.action
    return rows


def _at_turn(episode: Episode, k: int) -> tuple[int, int]:
    """Tokens that are stored before turn k is read, and that are read: its last action's too."""
    turn = episode[k]
    if k == 0 or not turn.extends:
        return 0, turn.context
    stored = rows_of_lengths(episode[:k])[-1] - 1
    return stored, turn.context + 1


def wander(world: World, tasks: Sequence[Task], turns: int, seed: int) -> list[Wandering]:
    """Play every task for exactly `turns` turns by random admissible actions, the same each time.

    Where an episode ends it begins anew, so that lengths are those of the turn cap. Raises
    ValueError without a task.
    """
    if not tasks:
        raise ValueError("the training split has no task; choose another `env.train_split`")
    environment = world.make()
    played: list[Wandering] = []
    for number, task in enumerate(tasks):
        random, turns_played = Random(seed + number), []
        observation = environment.reset(task)
        for _ in range(turns):
            action = random.choice(observation.admissible or UNTOLD)
            turns_played.append((observation, action))
            step = environment.step(action)
            observation = environment.reset(task) if step.terminated else step.observation
        played.append(turns_played)
    environment.close()
    return played


def counted(context: Context, said: Callable[[str], IntArray], episode: Wandering) -> Episode:
    """An episode's lengths as the run's own prompts and tokenizer make them."""
    conversation = context.conversation(episode[0][0])
    found: list[TurnLength] = []
    for number, (_, action) in enumerate(episode):
        ids = said(action)
        found.append(TurnLength(len(conversation.context_ids), len(ids), conversation.extends))
        if number + 1 < len(episode):
            conversation.reply(ids, action, episode[number + 1][0])
    return tuple(found)


def assumed(
    instructions: str,
    style: PromptStyle | None,
    window: int,
    spoken: Callable[[str], str],
    episode: Wandering,
) -> Episode:
    """An episode's lengths without a tokenizer: characters / 4, and 8 tokens around a message.

    In the chat every prompt extends the last (ours: most templates do); a style of the world
    words each turn as a prompt of its own.
    """
    found: list[TurnLength] = []
    for number, (observation, action) in enumerate(episode):
        if style is not None:
            history = [(o.text, a) for o, a in episode[max(0, number - window) : number]]
            texts = [style.prompt(episode[0][0].text, history, number, observation)]
        else:
            texts = [instructions, observation.text] if number == 0 else [observation.text]
        context = sum(assumed_tokens(text) + TEMPLATE_TOKENS for text in texts if text)
        extends = style is None and number > 0
        found.append(TurnLength(context, assumed_tokens(spoken(action)) + 1, extends))
    return tuple(found)


def assumed_tokens(text: str) -> int:
    """Tokens of a text without a tokenizer: its characters / 4, rounded up."""
    return math.ceil(len(text) / CHARACTERS_PER_TOKEN)
