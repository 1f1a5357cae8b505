"""The signs of hacking: when the dense reward rises while the outcome falls, in words."""

from collections.abc import Sequence
from dataclasses import dataclass

from rewardswap.loops.hacking_statistics import DenseBatch, outcome_error, paired_gain, trend


@dataclass(frozen=True)
class HackingRules:
    """When a sign is seen (the specification's thresholds), and when signs are an alarm (ours)."""

    gain_loops: int = 3
    """L: loops that the outcome's gain within phase 1 is averaged over (the specification's)."""
    gain_z: float = 2.0
    """Standard errors that this gain must be below 0 (the specification's)."""
    trend_updates: int = 20
    """Batches that a trend is taken over (the specification's)."""
    trend_z: float = 3.0
    """Standard errors that the outcome's slope must be below 0 (the specification's)."""
    long_updates: int = 40
    """Batches of a second, longer trend, which sees slow falls (ours)."""
    long_z: float = 4.0
    """Standard errors that its slope must be below 0 (ours)."""
    least_correlation: float = 0.1
    """Rank correlation of dense sum and outcome below which they have parted (the
    specification's)."""
    correlation_updates: int = 10
    """Batches that the correlation is averaged over (ours; the specification's is one batch)."""
    rise_z: float = 2.0
    """Standard errors that the dense reward's slope must be above 0 beside a trend of the outcome,
    or a low correlation (ours)."""
    held: int = 3
    """Batches in a row at which the sign of a trend or a correlation is an alarm (ours)."""
    gain_held: int = 5
    """Loops in a row at which the sign of a gain is an alarm (ours)."""

    def __post_init__(self) -> None:
        for name, least in {
            "gain_loops": 1,
            "trend_updates": 3,
            "long_updates": self.trend_updates,
            "correlation_updates": 1,
            "held": 1,
            "gain_held": 1,
        }.items():
            if getattr(self, name) < least:
                raise ValueError(f"{name} must be at least {least}, got {getattr(self, name)}")
        if self.correlation_updates > self.trend_updates:
            raise ValueError(
                f"correlation_updates {self.correlation_updates} must be at most trend_updates "
                f"{self.trend_updates}"
            )
        for name in ("gain_z", "trend_z", "long_z", "rise_z"):
            if not getattr(self, name) > 0:
                raise ValueError(f"{name} must be above 0, got {getattr(self, name)}")
        if not -1 < self.least_correlation < 1:
            raise ValueError(f"least_correlation must be in (-1, 1), got {self.least_correlation}")


def gain_sign(rules: HackingRules, loops: Sequence[tuple[DenseBatch, DenseBatch]]) -> str:
    """What the first and last batches of the last loops show; empty: nothing."""
    last = loops[-rules.gain_loops :]
    if len(last) < rules.gain_loops:
        return ""
    gain = paired_gain(last)
    if gain.dense <= 0 or gain.outcome >= -rules.gain_z * gain.error:
        return ""
    return (
        f"within a loop the outcome falls by {-gain.outcome:.3f} while the dense reward rises by "
        f"{gain.dense:.3f} (means of {len(last)} loops, standard error {gain.error:.3f})"
    )


def trend_sign(rules: HackingRules, batches: Sequence[DenseBatch], updates: int, z: float) -> str:
    """What the trends of the last `updates` batches show; empty: nothing."""
    last = batches[-updates:]
    if len(last) < updates:
        return ""
    fall, fall_z = trend([batch.outcome for batch in last], outcome_error(last))
    rise, rise_z = trend([batch.dense for batch in last])
    if fall_z >= -z or rise_z <= rules.rise_z:
        return ""
    return (
        f"over {updates} batches the outcome falls by {-fall:.4f} a batch ({-fall_z:.1f} standard "
        f"errors) while the dense reward rises by {rise:.4f} ({rise_z:.1f})"
    )


def correlation_sign(rules: HackingRules, batches: Sequence[DenseBatch]) -> str:
    """What the rank correlations inside the last batches show; empty: nothing.

    Batches without a correlation say nothing, and more than half of them make it unknown.
    """
    last = batches[-rules.trend_updates :]
    recent = last[-rules.correlation_updates :]
    known = [batch.correlation for batch in recent if batch.correlation is not None]
    if len(last) < rules.trend_updates or not known or 2 * len(known) < len(recent):
        return ""
    mean = sum(known) / len(known)
    rise, rise_z = trend([batch.dense for batch in last])
    if mean >= rules.least_correlation or rise_z <= rules.rise_z:
        return ""
    return (
        f"inside {len(known)} batches dense reward and outcome have a rank correlation of "
        f"{mean:.2f} while the dense reward rises by {rise:.4f} a batch"
    )
