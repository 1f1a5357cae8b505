"""Many episodes of the default text world, and whether anything grows: memory, threads, files.

    python benchmarks/soak.py 100000 [--workers 2] [--faults] [--seconds 600]

They are played as a run plays them, by a script that draws one of the admissible actions. Prints
what this process and its workers hold after every fiftieth part, and exits with 1 where the second
half held more than the first: above 16 MiB of memory, or any thread, open file or process.
"""

import argparse
import hashlib
import time
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import astuple, dataclass
from typing import Any

import psutil

from rewardswap.envs.alfworld.generator import GeneratedWorld
from rewardswap.envs.base import Observation, World
from rewardswap.envs.faulty import Fault, FaultyWorld
from rewardswap.models.loading import load_language_model
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.environments import Environments, LocalEnvironments
from rewardswap.rollout.episodes import EpisodeRequest, Played, play
from rewardswap.rollout.host import Broken
from rewardswap.rollout.scripted import ScriptedEngine
from rewardswap.rollout.workers import WorkerEnvironments
from rewardswap.task import Task

TURNS, AT_ONCE, PARTS = 12, 64, 50
MOST_GROWTH = 16.0
"""MiB; an allocator's own breathing stays below."""
FAULTS = (
    Fault("raises", share=1e-3),
    Fault("nan", share=1e-3),
    Fault("nothing", share=1e-3),
    Fault("floods", share=1e-4),
)


def sound() -> World:
    """The default world."""
    return GeneratedWorld(seed=0, train=4000, held_out=400, turn_limit=TURNS)


def faulty() -> World:
    """The default world, about one step in three hundred broken."""
    return FaultyWorld(sound(), FAULTS)


@dataclass(frozen=True)
class Held:
    """What this process and its workers hold."""

    mebibytes: float
    threads: int
    files: int
    processes: int


def held() -> Held:
    """As it is now."""
    me = psutil.Process()
    every = [me, *me.children(recursive=True)]
    return Held(
        sum(process.memory_info().rss for process in every) / 2**20,
        sum(process.num_threads() for process in every),
        sum(process.num_fds() for process in every),
        len(every),
    )


class Seen:
    """Environments whose admissible actions are kept for the script."""

    def __init__(self, inner: Environments) -> None:
        self.inner = inner
        self.admissible: dict[int, tuple[str, ...]] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self.inner, name)

    def reset(self, tasks: Mapping[int, Task]) -> dict[int, Observation | Broken]:
        """As the inner ones."""
        found = self.inner.reset(tasks)
        self.admissible |= {n: o.admissible for n, o in found.items() if not isinstance(o, Broken)}
        return found

    def step(self, actions: Mapping[int, str]) -> Any:
        """As the inner ones."""
        found = self.inner.step(actions)
        for n, step in found.items():
            if not isinstance(step, Broken):
                self.admissible[n] = step.observation.admissible
        return found


class Player:
    """Plays episodes by a script."""

    def __init__(self, environments: Environments) -> None:
        self.environments: Any = Seen(environments)
        self.model = load_language_model("base-agent", "cpu")
        self.context = ChatContext(self.model.tokenizer, "", self.model.end_token_ids)

    def draws(self, session: str, turn: int) -> list[int]:
        """The tokens of an admissible action, drawn by episode and turn."""
        number = int(session.split("-")[1])
        actions = self.environments.admissible[number]
        place = int.from_bytes(hashlib.sha256(f"{number} {turn}".encode()).digest()[:4], "big")
        said = self.model.tokenizer.encode(actions[place % len(actions)], add_special_tokens=False)
        return [*said, self.model.end_token_ids[0]]

    def play(self, world: World, requests: Sequence[EpisodeRequest]) -> Played:
        """Play the requests."""
        return play(
            requests,
            world,
            ScriptedEngine(self.draws, self.model.end_token_ids),
            self.context,
            sampling=SamplingParams(max_tokens=24),
            seed=0,
            policy_version=0,
            turn_limit=TURNS,
            environments=self.environments,
        )


def run(player: Player, world: World, episodes: int, seconds: float) -> list[Held]:
    """What was held after each part."""
    tasks = world.tasks("train")
    begun, done, steps, failed, seen = time.monotonic(), 0, 0.0, 0, list[Held]()
    print("episodes steps failed seconds MiB threads files processes")
    while done < episodes and time.monotonic() - begun < seconds:
        part = min(done + max(AT_ONCE, episodes // PARTS), episodes)
        while done < part:
            batch = range(done, min(done + AT_ONCE, part))
            played = player.play(world, [EpisodeRequest(tasks[n % len(tasks)], n) for n in batch])
            steps += played.counters["environment_steps"]
            failed += len(played.failures)
            done = batch.stop
        seen.append(held())
        counts = f"{done} {steps:.0f} {failed} {time.monotonic() - begun:.0f}"
        print(counts, *(f"{value:.5g}" for value in astuple(seen[-1])), flush=True)
    return seen


def grown(seen: Sequence[Held]) -> list[float]:
    """How much more the second half held at most than the first: MiB, threads, files, processes."""
    first, second = seen[: len(seen) // 2], seen[len(seen) // 2 :]
    return [
        max(astuple(held)[n] for held in second) - max(astuple(held)[n] for held in first)
        for n in range(4)
    ]


def main() -> None:
    """Play, print, judge."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("episodes", type=int)
    parser.add_argument("--workers", type=int, default=0)
    parser.add_argument("--faults", action="store_true")
    parser.add_argument("--seconds", type=float, default=float("inf"))
    options = parser.parse_args()
    import soak  # this file by a name that workers find

    recipe = soak.faulty if options.faults else soak.sound
    world = recipe()
    environments: Environments = LocalEnvironments(world)
    if options.workers:
        environments = WorkerEnvironments(recipe, options.workers, step_seconds=60)
    with closing(environments):
        growth = grown(run(Player(environments), world, options.episodes, options.seconds))
    print("grown in the second half:", *(f"{value:.3g}" for value in growth))
    if growth[0] > MOST_GROWTH or max(growth[1:]) > 0:
        raise SystemExit("something grows")


if __name__ == "__main__":
    main()
