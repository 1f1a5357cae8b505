"""Options of `plan` and of a dry run beside those of the run."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
from typing import Any

from rewardswap.checks import at_least, positive


@dataclass(frozen=True)
class PlanSettings:
    """What a plan is made for."""

    devices: int = 1
    """Devices, one process each: they share the episodes and hold a copy of everything else, or
    with policy.sharded a part of weights, gradients and moments."""
    device_memory: float | None = None
    """Memory of one device in GiB; none: what torch says of policy.device, if it is there."""
    host_memory: float | None = None
    """Memory of the host in GiB; none: this machine's."""
    success: float | None = None
    """Chance that the start policy wins a task, for the share of groups that teach something."""
    turns: int | None = None
    """Mean turns of an episode, for tokens and FLOPs; none: the turn cap."""
    tokens_per_action: int | None = None
    """Mean tokens of one action; none: as measured, with thinking assumed where there is some."""
    check: bool = False
    """Whether the exit code is 1 where something does not fit."""

    def __post_init__(self) -> None:
        at_least(1, devices=self.devices)
        for name in ("turns", "tokens_per_action"):
            value = getattr(self, name)
            if value is not None:
                at_least(1, **{name: value})
        for name in ("device_memory", "host_memory"):
            value = getattr(self, name)
            if value is not None:
                positive(**{name: value})
        if self.success is not None and not 0 <= self.success <= 1:
            raise ValueError(f"success must be in [0, 1], got {self.success}")


@dataclass(frozen=True)
class DryRunSettings:
    """Whether `train` only tries everything once."""

    dry_run: bool = False
    """Build everything with random weights, play one turn, do one update of every kind."""
    dry_run_layers: int | None = None
    """Layers of the model in the dry run; none: all of them."""

    def __post_init__(self) -> None:
        if self.dry_run_layers is not None:
            at_least(1, dry_run_layers=self.dry_run_layers)
            if not self.dry_run:
                raise ValueError("dry_run_layers does nothing without dry_run")


def split_words(settings: type[Any], words: Sequence[str]) -> tuple[list[str], list[str]]:
    """The words that give these settings, and the others; a truth value may be left out."""
    truths = {f"--{_option(f.name)}" for f in fields(settings) if f.type is bool}
    own = {f"--{_option(f.name)}" for f in fields(settings)}
    mine: list[str] = []
    others: list[str] = []
    target = others
    for number, word in enumerate(words):
        if word.startswith("--"):
            key = word.split("=", 1)[0].replace("_", "-")
            target = mine if key in own else others
        target.append(word)
        follows = words[number + 1] if number + 1 < len(words) else "--"
        if target is mine and word.replace("_", "-") in truths and follows.startswith("--"):
            mine.append("true")
    return mine, others


def _option(name: str) -> str:
    return name.replace("_", "-")
