"""What is wrong with what an environment answers."""

from collections.abc import Iterator, Sequence
from difflib import get_close_matches
from typing import Any

from rewardswap.adapters.answers import TOLD, opened, stepped
from rewardswap.adapters.seeded import SeededWorld
from rewardswap.envs.base import Observation, World
from rewardswap.inspection.findings import Finding
from rewardswap.inspection.walks import Walk, again
from rewardswap.shown import visible_text

ODD_ACTIONS = ("", " ", "xyzzy", "LOOK\nat me", "go " * 200, "café 🙂", '{"action": "go"}')
"""What a language model may say, too."""
ALIASES = {"won": "success", "win": "success", "commands": "admissible", "actions": "admissible"}
"""Keys that others use for ours and that are not spelled alike."""


def answer_findings(world: World, walks: Sequence[Walk]) -> Iterator[Finding]:
    """Texts, state keys, admissible commands, ends, and what odd actions do."""
    seen = [observation for walk in walks for observation in walk.observations]
    yield from _texts(seen)
    yield from _state_keys(walks)
    yield from _refused(world, walks)
    yield from _ends(walks)
    yield from _odd(world, walks)
    yield from _behind_the_end(world, walks)


def raw_findings(world: SeededWorld, walks: Sequence[Walk]) -> Iterator[Finding]:
    """What only the environment's own answers show: rewards after the end, keys of info."""
    keys: set[str] = set()
    late, cut, early = 0.0, 0, 0
    for walk in (walk for walk in walks if not walk.trouble):
        live = world.maker()
        infos = [opened(live.reset(seed=world.seed(walk.task))).info]
        truncated = False
        for action, step in zip(walk.actions, walk.steps, strict=True):
            found = live.step(action)
            infos.append(stepped(found).info)
            truncated = bool(found[3]) and not found[2]
            early += infos[-1].get("success") is True and not step.terminated
        cut += truncated
        keys.update(key for info in infos for key in info if isinstance(key, str))
        if walk.ended and not truncated:
            late = late or _reward_after_the_end(live, walk.actions[-1])
    if late:
        yield Finding(
            "reward after the end",
            f"a step behind the last one is paid {late:g}",
            "Have step give 0, or raise, once it has said terminated",
            fault=False,
        )
    if early:
        yield Finding(
            "success before the end",
            f"{early} steps say success and go on: an episode that is cut is no success",
            "Say terminated in the step that succeeds",
        )
    if cut:
        yield Finding(
            "truncates",
            f"{cut} of {len(walks)} episodes were truncated by the environment's own limit, and "
            "count as ended",
            "Leave limits to turn_limit, which a critic knows from an end",
            fault=False,
        )
    yield from _keys(keys)


def _reward_after_the_end(live: Any, action: str) -> float:
    try:
        return stepped(live.step(action)).reward
    except Exception:  # it may refuse, as it likes
        return 0.0


def _keys(keys: set[str]) -> Iterator[Finding]:
    for key in sorted(keys - {*TOLD}):
        meant = [ALIASES[key]] if key in ALIASES else get_close_matches(key, TOLD, 1, 0.65)
        if meant and meant[0] not in keys:
            yield Finding(
                "unknown info",
                f"info has {key!r}, which is not read",
                f"Call it {meant[0]!r} if it is that",
                fault=False,
            )


def _texts(seen: Sequence[Observation]) -> Iterator[Finding]:
    for observation in seen:
        for what, text in _said(observation):
            if visible_text(text) != text:
                yield Finding(
                    "text",
                    f"{what} holds characters that are not seen: {text[:80]!r}",
                    "Leave out control characters, escapes and colours",
                )
                return
    blank = sum(not observation.text.strip() for observation in seen)
    if blank:
        yield Finding("text", f"{blank} of {len(seen)} observations are empty", "Say what is seen")
    if seen and not any(observation.admissible for observation in seen):
        yield Finding(
            "commands",
            "it tells no admissible commands: it was played by guesses",
            "Give info['admissible'], or the argument `actions`, to have it looked at more closely",
            fault=False,
        )


def _said(observation: Observation) -> Iterator[tuple[str, str]]:
    yield "an observation", observation.text
    for command in observation.admissible:
        yield "an admissible command", command


def _state_keys(walks: Sequence[Walk]) -> Iterator[Finding]:
    """Keys that never come back although the same is seen and can be done."""
    returned = repeated = 0
    for walk in walks:
        looks: dict[tuple[str, tuple[str, ...], float], set[str]] = {}
        for seen in walk.observations:
            keys = looks.setdefault((seen.text, seen.admissible, seen.progress), set())
            repeated += bool(keys)
            returned += seen.state_key in keys
            keys.add(seen.state_key)
    if repeated and not returned:
        yield Finding(
            "state key",
            f"the same words and commands came back {repeated} times, and never with the same "
            "state key",
            "Leave turn counters out of the key: methods that compare states find no two alike",
            fault=False,
        )


def _refused(world: World, walks: Sequence[Walk]) -> Iterator[Finding]:
    """An admissible command that is not valid: in the episodes, and each one at the start."""
    environment = world.make()
    known = {walk.cause for walk in walks}
    for walk in walks:
        before = walk.observations
        taken = [
            (walk.actions[n], step.valid, before[n].admissible) for n, step in enumerate(walk.steps)
        ]
        for command in () if walk.opening is None else walk.opening.admissible:
            alone = again(environment, Walk(walk.task, actions=[command]))
            if alone.trouble and alone.cause in known:
                continue  # it is said already, and is not this command's
            if alone.trouble:
                yield _refusal(f"{command!r} is admissible at the start, and {alone.trouble}")
                return
            taken.append((command, alone.steps[0].valid, (command,)))
        for action, valid, admissible in taken:
            if action in admissible and not valid:
                yield _refusal(f"{action!r} of task {walk.task.id!r} is admissible and not valid")
                return


def _refusal(said: str) -> Finding:
    return Finding("refused command", said, "List as admissible what step admits, no more")


def _ends(walks: Sequence[Walk]) -> Iterator[Finding]:
    whole = [walk for walk in walks if not walk.trouble]
    ended = [walk for walk in whole if walk.ended]
    won = [walk for walk in whole if any(step.success for step in walk.steps)]
    if any(step.success and not step.terminated for walk in whole for step in walk.steps):
        yield Finding(
            "success before the end",
            "a step says success and does not end the episode: an episode that is cut is none",
            "Have the step that succeeds end it",
        )
    if whole and not ended:
        yield Finding(
            "no end",
            f"none of {len(whole)} episodes ended by itself; one that the turn limit cuts has "
            "outcome 0",
            "See that some action ends it, with success, within the turn limit",
            fault=False,
        )
    elif whole and not won:
        yield Finding(
            "never won",
            f"none of {len(whole)} random episodes was a success",
            "See that an untrained model wins at times, or give progress: the outcome alone "
            "teaches nothing until it is seen",
            fault=False,
        )
    elif len(won) == len(whole) > 1:
        yield Finding(
            "always won",
            f"all {len(whole)} random episodes were a success",
            "Make it harder: groups that all succeed teach nothing",
            fault=False,
        )


def _odd(world: World, walks: Sequence[Walk]) -> Iterator[Finding]:
    """An agent may say anything; it must not break the environment."""
    environment = world.make()
    known = {walk.cause for walk in walks}
    for walk in walks[:1] if walks and walks[0].opening else ():
        for action in ODD_ACTIONS:
            found = again(environment, Walk(walk.task, actions=[action]))
            if found.trouble and found.cause not in known:
                yield Finding(
                    "odd action",
                    found.trouble,
                    "Answer what is no command with an observation, and let the episode go on",
                )
                return


def _behind_the_end(world: World, walks: Sequence[Walk]) -> Iterator[Finding]:
    """A world says that an episode is over by refusing to go on."""
    for walk in [walk for walk in walks if walk.ended and not walk.trouble][:1]:
        environment = world.make()
        again(environment, walk)
        try:
            environment.step(walk.actions[-1])
        except ValueError:
            return
        except Exception as error:  # it may be anybody's code
            said = f"a step behind the end raised {type(error).__name__}"
        else:
            said = "a step behind the end is answered"
        yield Finding("after the end", said, "Raise ValueError there", fault=False)
