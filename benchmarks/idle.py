"""How long devices wait in three ways of collecting and training: a simulation, no model runs.

    python benchmarks/idle.py [--environments 128 1024 8192] [--waves 2] [--seed 0]

Lock step: turn k + 1 of every episode begins when turn k of all has ended, as a batched loop over
environments does. Refilling: every episode goes at its own pace and a free slot takes the next
episode, as `--rollout.slots` does here; then all devices train. One-step-off: some devices roll
out batch v + 1 while the others train on batch v.

What is assumed stands in `World` and `Machine`; docs/scale.md tells where the numbers are from.
"""

import argparse
import heapq
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import count
from typing import NamedTuple

import numpy as np

Episode = Sequence[tuple[float, float]]
"""Of each turn the tokens of its action and the seconds of the environment's step."""


@dataclass(frozen=True)
class World:
    """What episodes are like."""

    turn_cap: int = 50
    won: float = 0.5
    """Share of episodes that end before the cap, after a number of turns drawn from `turns`."""
    turns: tuple[int, int] = (5, 25)
    tokens: float = 60.0
    """Median of an action's tokens; they are lognormal."""
    tokens_spread: float = 0.8
    """Deviation of the logarithm of an action's tokens."""
    tokens_cap: int = 512
    step: float = 0.02
    """Median of a step's seconds; they are lognormal."""
    step_spread: float = 1.0
    observation: float = 100.0
    """Tokens of an observation, which are trained through but not sampled."""

    def episodes(self, number: int, stream: np.random.Generator) -> list[Episode]:
        """So many episodes."""
        lengths = np.where(
            stream.random(number) < self.won,
            stream.integers(self.turns[0], self.turns[1] + 1, number),
            self.turn_cap,
        )
        found = []
        for length in lengths:
            tokens = np.ceil(self.tokens * np.exp(stream.normal(0, self.tokens_spread, length)))
            steps = self.step * np.exp(stream.normal(0, self.step_spread, length))
            tokens = np.minimum(tokens, self.tokens_cap)
            found.append(list(zip(tokens.tolist(), steps.tolist(), strict=True)))
        return found


@dataclass(frozen=True)
class Machine:
    """How fast one device is."""

    decode: float = 0.0065
    """Seconds of one decoding step of an engine, which gives one token to each live sequence."""
    decode_each: float = 0.00005
    """Seconds more for each live sequence."""
    train: float = 0.00014
    """Seconds of training for each token of a trajectory."""
    environments: int = 64
    """Episodes that are live for each device."""


class Measured(NamedTuple):
    """What a schedule costs, for one update."""

    seconds: float
    busy: float
    """Share of all devices' time in which they train or decode at least one sequence."""
    full: float
    """Share of the slots that decode, while episodes are live on their device."""


class Engine:
    """Sequences that share one device: all advance by one token in every decoding step."""

    def __init__(self, machine: Machine) -> None:
        self.machine = machine
        self.live: list[tuple[float, int]] = []
        """Tokens of all steps at which a sequence ends, and whose it is."""
        self.steps = 0.0
        self.now = 0.0
        self.busy = self.decoded = 0.0
        """Seconds with a live sequence, and of all sequences."""

    def pace(self) -> float:
        """Seconds of a decoding step."""
        return self.machine.decode + self.machine.decode_each * len(self.live)

    def advance(self, now: float) -> None:
        """Decode until then."""
        if self.live:
            self.steps += (now - self.now) / self.pace()
            self.busy += now - self.now
            self.decoded += len(self.live) * (now - self.now)
        self.now = now

    def next_end(self) -> float:
        """When the next sequence ends, if none joins before."""
        return self.now + max(0.0, self.live[0][0] - self.steps) * self.pace()


class Rollout:
    """Episodes on engines, each at its own pace; who ends leaves its slot to the next one."""

    def __init__(self, machine: Machine, engines: int, slots: int) -> None:
        self.engines = [Engine(machine) for _ in range(engines)]
        self.free = [slots] * engines
        self._events: list[tuple[float, int, int, int, int]] = []
        self._order = count()
        self._versions = [0] * engines
        self._turn: dict[int, int] = {}
        self._place: dict[int, int] = {}
        self.episodes: dict[int, Episode] = {}

    def start(self, now: float, key: int, episode: Episode) -> bool:
        """Begin an episode on the device with most free slots; whether there was one."""
        place = max(range(len(self.free)), key=lambda one: self.free[one])
        if self.free[place] == 0:
            return False
        self.free[place] -= 1
        self.episodes[key], self._turn[key], self._place[key] = episode, 0, place
        self._decode(now, key)
        return True

    @property
    def busy(self) -> float:
        """Seconds of all devices with a live sequence."""
        return sum(engine.busy for engine in self.engines)

    @property
    def decoded(self) -> float:
        """Seconds of all sequences."""
        return sum(engine.decoded for engine in self.engines)

    def wake(self, at: float) -> None:
        """Have `ends` say that moment too."""
        heapq.heappush(self._events, (at, next(self._order), WOKEN, 0, 0))

    def ends(self) -> Iterator[tuple[float, int | None]]:
        """Ends of episodes in order, and whose they are; others may be started in between."""
        while self._events:
            now, _, kind, one, version = heapq.heappop(self._events)
            if kind == WOKEN:
                for engine in self.engines:
                    engine.advance(now)
                yield now, None
            elif kind == STEPPED:
                self._turn[one] += 1
                if self._turn[one] < len(self.episodes[one]):
                    self._decode(now, one)
                else:
                    self.free[self._place[one]] += 1
                    yield now, one
            elif version == self._versions[one]:  # else somebody joined since this was foreseen
                engine = self.engines[one]
                engine.advance(now)
                _, key = heapq.heappop(engine.live)
                self._foresee(one)
                step = self.episodes[key][self._turn[key]][1]
                heapq.heappush(self._events, (now + step, next(self._order), STEPPED, key, 0))

    def _decode(self, now: float, key: int) -> None:
        place = self._place[key]
        engine = self.engines[place]
        engine.advance(now)
        tokens, _ = self.episodes[key][self._turn[key]]
        heapq.heappush(engine.live, (engine.steps + tokens, key))
        self._foresee(place)

    def _foresee(self, place: int) -> None:
        self._versions[place] += 1
        if self.engines[place].live:
            event = (self.engines[place].next_end(), next(self._order), DECODED, place)
            heapq.heappush(self._events, (*event, self._versions[place]))


DECODED, STEPPED, WOKEN = 0, 1, 2
"""Kinds of events: an action is sampled, the environment has answered, somebody wanted to know."""


def lock_step(machine: Machine, waves: Sequence[Sequence[Episode]], devices: int) -> Measured:
    """All episodes of a wave take their turns together; the waves follow one another.

    Episode i is on device i modulo their number.
    """
    seconds = busy = decoded = 0.0
    for wave in waves:
        for turn in range(max(map(len, wave))):
            parts: list[list[float]] = [[] for _ in range(devices)]
            slowest = slowest_step = 0.0
            for number, episode in enumerate(wave):
                if turn < len(episode):
                    length, step = episode[turn]
                    parts[number % devices].append(length)
                    slowest_step = max(slowest_step, step)
            for tokens in parts:
                needed = before = 0.0
                for done, length in enumerate(sorted(tokens)):
                    left = len(tokens) - done
                    part = (length - before) * (machine.decode + machine.decode_each * left)
                    needed, before, decoded = needed + part, length, decoded + left * part
                busy += needed
                slowest = max(slowest, needed)
            seconds += slowest + slowest_step
    return Measured(seconds, busy / (devices * seconds), decoded / (seconds * len(waves[0])))


def refilled(machine: Machine, episodes: Sequence[Episode], devices: int) -> Measured:
    """Every episode at its own pace, a free slot for the next one."""
    rollout = Rollout(machine, devices, machine.environments)
    waiting = iter(enumerate(episodes))
    for _ in range(devices * machine.environments):
        rollout.start(0.0, *next(waiting))
    seconds = 0.0
    for seconds, _ in rollout.ends():
        if (following := next(waiting, None)) is not None:
            rollout.start(seconds, *following)
    return Measured(
        seconds,
        rollout.busy / (devices * seconds),
        rollout.decoded / (devices * machine.environments * seconds),
    )


def training_seconds(
    machine: Machine, world: World, episodes: Sequence[Episode], devices: int
) -> float:
    """Seconds of an update on a batch."""
    tokens = sum(length + world.observation for episode in episodes for length, _ in episode)
    return machine.train * tokens / devices


def then_trained(rollout: Measured, training: float) -> Measured:
    """A rollout on all devices and then an update on all of them."""
    seconds = rollout.seconds + training
    return Measured(seconds, (rollout.busy * rollout.seconds + training) / seconds, rollout.full)


def one_step_off(
    machine: Machine,
    batches: Sequence[Sequence[Episode]],
    training: Sequence[float],
    devices: int,
    rolling: int,
) -> Measured:
    """`rolling` devices roll out while the others train, for `training` seconds on each batch.

    Episodes of batch v begin once the update on batch v - 2 is over: their policy is one update
    old at most. Measured from the update on batch 2 to that on the third batch before the last,
    where a next batch always waits.
    """
    live = devices * machine.environments
    rollout = Rollout(machine, rolling, live // rolling)
    waiting = [(number, episode) for number, batch in enumerate(batches) for episode in batch]
    left = [len(batch) for batch in batches]
    trained = 0
    """Batches whose update is over."""
    ready = 0.0
    """When the trainer is free."""
    ends: list[float] = []
    begun = 0
    marks = []

    def start(now: float) -> None:
        nonlocal begun
        while begun < len(waiting) and waiting[begun][0] < trained + 2:
            if not rollout.start(now, begun, waiting[begun][1]):
                return
            begun += 1

    start(0.0)
    for now, key in rollout.ends():
        if key is None:
            trained += 1
            marks.append((now, rollout.busy, rollout.decoded))
        else:
            number = waiting[key][0]
            left[number] -= 1
            while len(ends) < len(batches) and left[len(ends)] == 0:
                ready = max(ready, now) + training[len(ends)]
                ends.append(ready)
                rollout.wake(ready)
        start(now)
    first, last = 2, len(batches) - 3
    (began, busy_before, decoded_before), (ended, busy, decoded) = marks[first], marks[last]
    seconds = (ended - began) / (last - first)
    learned = sum(training[first + 1 : last + 1]) * (devices - rolling)
    used = (busy - busy_before + learned) / (devices * (ended - began))
    return Measured(seconds, used, (decoded - decoded_before) / (live * (ended - began)))


BATCHES = 9
"""Batches that one-step-off is simulated over."""
SHARES = (0.25, 0.375, 0.5, 0.625, 0.75)
"""Parts of the devices that may roll out there."""


def compared(
    world: World, machine: Machine, environments: int, waves: int, seed: int
) -> dict[str, Measured]:
    """The three ways for so many environments; one-step-off with its best share of devices."""
    stream = np.random.default_rng([seed, environments])
    devices = environments // machine.environments
    batches = [world.episodes(waves * environments, stream) for _ in range(BATCHES)]
    parts = [batches[0][n * environments : (n + 1) * environments] for n in range(waves)]
    training = training_seconds(machine, world, batches[0], devices)
    found = {
        "lock step": then_trained(lock_step(machine, parts, devices), training),
        "refilling": then_trained(refilled(machine, batches[0], devices), training),
    }
    best: tuple[str, Measured] | None = None
    for rolling in sorted({max(1, int(share * devices)) for share in SHARES}):
        times = [training_seconds(machine, world, batch, devices - rolling) for batch in batches]
        apart = one_step_off(machine, batches, times, devices, rolling)
        if best is None or apart.seconds < best[1].seconds:
            best = f"one-step-off, {rolling} of {devices} devices roll out", apart
    assert best is not None
    return {**found, best[0]: best[1]}


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=int, nargs="+", default=[128, 1024, 8192])
    parser.add_argument("--waves", type=int, default=2, help="episodes of an update / environments")
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    world, machine = World(), Machine()
    print(f"{world}\n{machine}\n")
    print(
        "| environments | way | seconds an update | against lock step | devices idle | "
        "slots that decode while rolling out |\n|---|---|---|---|---|---|"
    )
    for environments in given.environments:
        ways = compared(world, machine, environments, given.waves, given.seed)
        slowest = ways["lock step"].seconds
        for way, measured in ways.items():
            print(
                f"| {environments:,} | {way} | {measured.seconds:.0f} | "
                f"{slowest / measured.seconds:.2f} x | {1 - measured.busy:.0%} | "
                f"{measured.full:.0%} |",
                flush=True,
            )


if __name__ == "__main__":
    main()
