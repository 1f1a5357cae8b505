"""An experiment as a frozen value: its arms, their seeds, and the order in which they run."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from rewardswap.checks import folder_name
from rewardswap.configuration import Run
from rewardswap.names import named


@dataclass(frozen=True)
class Arm:
    """One configuration of an experiment, repeated over seeds.

    Raises ValueError for a name that is no folder's, for seeds that repeat, and for settings of the
    run that the experiment decides.
    """

    name: str
    """Small letters, digits, `.`, `_` and `-`: the folder of its runs."""
    run: Run
    """The whole configuration, but for seed and output."""
    seeds: tuple[int, ...]
    """Seeds of its runs, in their order."""
    baseline: str | None = None
    """Name of the arm that it is compared with, seed by seed; none: it is compared with nothing."""
    needs: str | None = None
    """Name of the arm whose first seed's checkpoint is the start model of all seeds, as the agent
    that ships is; none: the start model is what the run says."""
    block: str = ""
    """Arms of one block run side by side: first all with their first seed, then all with their
    second, so that a block that is cut off compares all of its arms."""

    def __post_init__(self) -> None:
        folder_name("arm", self.name)
        where = f"arm {self.name!r}"
        if not self.seeds or len(set(self.seeds)) < len(self.seeds) or min(self.seeds) < 0:
            raise ValueError(f"{where} needs seeds of 0 or more, each once, got {list(self.seeds)}")
        if self.run.output is not None or self.run.seed:
            raise ValueError(f"{where} sets output or seed of its run; the experiment decides them")
        if self.needs is not None and self.run.policy.model is not None:
            raise ValueError(
                f"policy.model of {where} does nothing beside `needs`; give one of the two"
            )


@dataclass(frozen=True)
class Job:
    """One run of an experiment: an arm with a seed."""

    arm: Arm
    seed: int

    @property
    def key(self) -> tuple[str, int]:
        """Name of the arm, and seed."""
        return self.arm.name, self.seed

    @property
    def label(self) -> str:
        """How it is called in lines for a person."""
        return f"{self.arm.name} seed {self.seed}"

    def run(self, start_model: Path | None = None) -> Run:
        """The run's whole configuration, from the start model where the arm needs one."""
        policy = self.arm.run.policy
        if start_model is not None:
            policy = replace(policy, model=str(start_model))
        return replace(self.arm.run, seed=self.seed, policy=policy)


@dataclass(frozen=True)
class Experiment:
    """Arms to be compared.

    Raises ValueError for names that are no folder's, repeat or are unknown, for an arm that needs
    a later one, and for seeds that an arm's baseline lacks.
    """

    name: str
    """Small letters, digits, `.`, `_` and `-`."""
    summary: str
    """What it asks, in one sentence."""
    arms: tuple[Arm, ...]

    def __post_init__(self) -> None:
        folder_name("experiment", self.name)
        names = [arm.name for arm in self.arms]
        for arm in self.arms:
            where = f"arm {arm.name!r} of experiment {self.name!r}"
            if names.count(arm.name) > 1:
                raise ValueError(f"{where} is there twice; give each arm a name of its own")
            if arm.baseline is not None:
                self._check_baseline(arm, where)
            if arm.needs is not None and arm.needs not in names[: names.index(arm.name)]:
                raise ValueError(f"{where} needs {arm.needs!r}, which is no arm before it")

    def _check_baseline(self, arm: Arm, where: str) -> None:
        if arm.baseline == arm.name:
            raise ValueError(f"{where} is its own baseline; give another arm or none")
        baseline = self.arm(str(arm.baseline))
        missing = sorted(set(arm.seeds) - set(baseline.seeds))
        if missing:
            raise ValueError(
                f"{where} has seeds {missing} that its baseline {baseline.name!r} lacks: nothing "
                "to compare them with; give both the same"
            )

    def arm(self, name: str) -> Arm:
        """The arm of a name; ValueError names the nearest known one."""
        return named(f"arm of {self.name}", name, {arm.name: arm for arm in self.arms})

    def needed(self, job: Job) -> Job | None:
        """The run whose checkpoint a run starts from: its arm's `needs` with that one's first
        seed (ours: one start for all seeds)."""
        if job.arm.needs is None:
            return None
        arm = self.arm(job.arm.needs)
        return Job(arm, arm.seeds[0])

    def jobs(self, arms: Sequence[str] = (), seeds: Sequence[int] = ()) -> list[Job]:
        """The runs of these arms (none: all) with their seeds, or with `seeds` in place of them.

        Block by block in the order in which blocks first appear; inside one, seeds outermost.
        Raises ValueError for an arm that is not there.
        """
        for name in arms:
            self.arm(name)
        chosen = [arm for arm in self.arms if not arms or arm.name in arms]
        ordered: list[Job] = []
        for block in dict.fromkeys(arm.block for arm in chosen):
            beside = [(arm, tuple(seeds) or arm.seeds) for arm in chosen if arm.block == block]
            for turn in range(max(len(own) for _, own in beside)):
                ordered += [Job(arm, own[turn]) for arm, own in beside if turn < len(own)]
        return ordered
