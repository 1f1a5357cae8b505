"""One curve of several runs in one plot, each run in its own colour."""

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.ticker import EngFormatter

from rewardswap.report.plots import (
    COLORS,
    X_LABELS,
    Curve,
    Plot,
    drawn,
    large_curves,
    scale,
)
from rewardswap.report.records import Json
from rewardswap.report.series import Point, dense_reward_key, running_mean, series


def success_curves() -> list[Curve]:
    """Success over both axes."""
    return large_curves([])[: len(X_LABELS)]


def overlaid_plot(
    runs: Mapping[str, Sequence[Json]], curve: Curve, keys: Mapping[str, str] | None = None
) -> Plot | None:
    """One curve of several runs, by the first of its keys or by each run's own among `keys`.

    It is the agent's, or the explorer's where the agent has none. None if no run recorded it.
    """
    lines: list[tuple[str, str, list[Point]]] = []
    diamonds: list[tuple[str, list[Point]]] = []
    for n, (name, metrics) in enumerate(runs.items()):
        key = curve.keys[0] if keys is None else keys[name]
        found = [series(metrics, role, curve.x, key) for role in ("agent", "explorer")]
        points = [point for segment in found[0] or found[1] for point in segment]
        if points:
            lines.append((name, f"run-{n}", points))
        evaluated = [p for segment in series(metrics, "evaluation", curve.x, key) for p in segment]
        diamonds.append((f"run-{n}", evaluated))
    if not lines:
        return None

    def draw(axes: Any) -> None:
        for _, color, points in lines:
            across, up = zip(*running_mean(points), strict=True)
            axes.plot(across, up, "-" if len(up) > 1 else ".", color=COLORS[color], linewidth=1.6)
        for color, points in diamonds:
            for point in points:
                axes.plot(*point, "D", color=COLORS[color], markersize=5)
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        if not curve.small:
            axes.set_xlabel(X_LABELS[curve.x])
        scale(axes, curve, [y for _, _, points in lines for _, y in points])

    title = curve.title.partition(",")[0] if len(curve.keys) > 1 else curve.title
    title = title if curve.small else f"{title} over {X_LABELS[curve.x]}"
    ends = [f"{name}: from {points[0][1]:.3g} to {points[-1][1]:.3g}" for name, _, points in lines]
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
