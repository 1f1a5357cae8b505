"""One curve of several runs in one plot, each run in its own colour."""

from collections.abc import Mapping, Sequence
from typing import Any

from rewardswap.report.plots import (
    COLORS,
    X_LABELS,
    Curve,
    Plot,
    across,
    drawn,
    large_curves,
    scale,
)
from rewardswap.report.records import Json
from rewardswap.report.series import Point, Segments, dense_reward_key, running_mean, series


def success_curves() -> list[Curve]:
    """Success over both axes."""
    return large_curves([])[: len(X_LABELS)]


def overlaid_plot(
    runs: Mapping[str, Sequence[Json]], curve: Curve, keys: Mapping[str, str] | None = None
) -> Plot | None:
    """One curve of several runs, by the first of its keys or by each run's own among `keys`.

    It is the agent's, or the explorer's where the agent has none. None if no run recorded it.
    """
    lines: list[tuple[str, str, Segments]] = []
    diamonds: list[tuple[str, list[Point]]] = []
    for n, (name, metrics) in enumerate(runs.items()):
        key = curve.keys[0] if keys is None else keys[name]
        found = [series(metrics, role, curve.x, key) for role in ("agent", "explorer")]
        if segments := found[0] or found[1]:
            lines.append((name, f"run-{n}", segments))
        evaluated = [p for segment in series(metrics, "evaluation", curve.x, key) for p in segment]
        diamonds.append((f"run-{n}", evaluated))
    if not lines:
        return None

    parts = [(color, points) for _, color, segments in lines for points in segments]

    def draw(axes: Any) -> None:
        for color, points in parts:
            places, up = zip(*running_mean(points), strict=True)
            axes.plot(places, up, "-" if len(up) > 1 else ".", color=COLORS[color], linewidth=1.6)
        for color, points in diamonds:
            for point in points:
                axes.plot(*point, "D", color=COLORS[color], markersize=5)
        across(axes, curve, [row for metrics in runs.values() for row in metrics])
        scale(axes, curve, [y for _, points in parts for _, y in points])

    title = curve.title.partition(",")[0] if len(curve.keys) > 1 else curve.title
    title = title if curve.small else f"{title} over {X_LABELS[curve.x]}"
    ends = [f"{name}: from {s[0][0][1]:.3g} to {s[-1][-1][1]:.3g}" for name, _, s in lines]
    return Plot(title, drawn(curve, f"{title}. {'; '.join(ends)}.", draw))


def overlaid_reward_plot(runs: Mapping[str, Sequence[Json]]) -> list[Plot | None]:
    """The dense reward of each run, whatever its name there, over both axes."""
    keys = {
        name: dense_reward_key(key for row in metrics for key in row) or ""
        for name, metrics in runs.items()
    }
    return [
        overlaid_plot(runs, curve, keys) for curve in large_curves([]) if curve.keys != ("success",)
    ]
