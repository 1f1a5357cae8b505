"""Plots of a comparison as PNG; the same results give the same bytes."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import BytesIO
from typing import Any

import matplotlib.style
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, MaxNLocator, PercentFormatter

from rewardswap.comparison.comparing import Comparison
from rewardswap.comparison.curves import AXES, Curve
from rewardswap.comparison.hacking import WHO
from rewardswap.comparison.paired import Paired
from rewardswap.report.page import visible

MOST = 8
"""Arms that one plot can tell apart."""
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000", "#8a8a8a")
"""Of Okabe and Ito, told apart without red and green; grey in the place of yellow."""
DASHES = ("-", "--", "-.", ":")
OTHER = "#777777"
SUCCESS = ("learn", "success")
DENSE_AXIS = "environment_steps"

STYLE = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.dpi": 144,
    "font.family": "DejaVu Sans",
    "font.size": 9,
    "grid.color": "#dddddd",
    "legend.frameon": False,
    "text.parse_math": False,
}


@dataclass(frozen=True)
class Plot:
    """One picture: its file's name without ending, what it shows, and its bytes."""

    name: str
    title: str
    png: bytes


def plots_of(comparison: Comparison) -> list[Plot]:
    """All plots for which there is something to draw."""
    made = [success_plot(comparison, axis) for axis in AXES]
    made += [differences_plot(comparison.pairs)]
    return [plot for plot in [*made, *dense_plots(comparison)] if plot is not None]


def success_plot(comparison: Comparison, axis: str) -> Plot | None:
    """Success of the agent's fresh rollouts; many arms each for itself beside its baseline."""
    curves = [c for c in comparison.curves if (c.phase, c.column, c.axis) == (*SUCCESS, axis)]
    if not curves:
        return None
    title = f"Success on training tasks over {AXES[axis]}"
    if len(curves) > MOST:
        baselines = {arm.name: arm.baseline for arm in comparison.arms}
        return _small_multiples(f"success-{axis}", title, curves, baselines)

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        _axis(axes, axis, percent=True)
        axes.set_ylabel("success")
        for n, curve in enumerate(curves):
            _line(axes, curve, COLORS[n], DASHES[n % len(DASHES)])
        figure.legend(loc="outside right upper")

    return _plot(f"success-{axis}", title, 8.0, 4.0, draw)


def _small_multiples(
    name: str, title: str, curves: Sequence[Curve], baselines: dict[str, str | None]
) -> Plot:
    by_arm = {curve.arm: curve for curve in curves}
    rows = -(-len(curves) // 4)

    def draw(figure: Any) -> None:
        grid = figure.subplots(rows, 4, sharex=True, sharey=True, squeeze=False).flat
        for axes, curve in zip(grid, curves, strict=False):
            _axis(axes, curve.axis, percent=True)
            axes.set_xlabel("")
            axes.set_title(_wrapped(curve.arm), fontsize=8)
            other = by_arm.get(baselines[curve.arm] or "")
            if other is not None:
                _line(axes, other, OTHER, "--")
            _line(axes, curve, COLORS[0], "-")
        for axes in list(grid)[len(curves) :]:
            axes.remove()
        figure.supxlabel(f"{AXES[curves[0].axis]}; dashed grey: what the arm is compared with")

    return _plot(name, title, 10.0, 1.9 * rows + 0.6, draw)


def dense_plots(comparison: Comparison) -> list[Plot]:
    """Dense reward and success of whoever is trained on it, over environment steps."""
    curves = {(c.arm, c.phase, c.column): c for c in comparison.curves if c.axis == DENSE_AXIS}
    trained = [(arm, phase) for arm, phase, column in curves if column == "dense"]
    parts = [trained[start : start + MOST] for start in range(0, len(trained), MOST)]
    return [_dense_plot(number, part, curves) for number, part in enumerate(parts, 1)]


def _dense_plot(
    number: int, trained: Sequence[tuple[str, str]], curves: dict[tuple[str, str, str], Curve]
) -> Plot:
    def draw(figure: Any) -> None:
        above, below = figure.subplots(2, 1, sharex=True)
        for axes, column in ((above, "dense"), (below, "success")):
            _axis(axes, DENSE_AXIS, percent=column == "success")
            axes.set_ylabel("dense reward of a trajectory" if column == "dense" else "success")
            for n, (arm, phase) in enumerate(trained):
                curve = curves.get((arm, phase, column))
                if curve is not None:
                    label = f"{arm}, {WHO[phase]}" if column == "dense" else None
                    _line(axes, curve, COLORS[n], DASHES[n % len(DASHES)], label)
        above.set_xlabel("")
        figure.legend(loc="outside right upper")

    title = "Dense reward and success of those trained on it: does one rise while the other falls?"
    return _plot("dense" if number == 1 else f"dense-{number}", title, 8.0, 5.5, draw)


def differences_plot(pairs: Sequence[Paired]) -> Plot | None:
    """Arm minus baseline with both intervals."""
    if not pairs:
        return None

    def draw(figure: Any) -> None:
        axes = figure.add_subplot()
        axes.grid(axis="x")
        axes.grid(axis="y", visible=False)
        axes.axvline(0, color="#000000", linewidth=0.8)
        for row, pair in enumerate(pairs):
            for found, width, color in (
                (pair.crossed, 1.2, OTHER),
                (pair.difference, 3.0, COLORS[0]),
            ):
                if found is not None and found.interval is not None:
                    ends = [100 * end for end in found.interval]
                    place = row if color == COLORS[0] else row + 0.25
                    axes.plot(ends, [place] * 2, color=color, linewidth=width)
            axes.plot(100 * pair.difference.value, row, "o", color=COLORS[0])
        names = [f"{_wrapped(pair.arm)}\nagainst {_wrapped(pair.baseline)}" for pair in pairs]
        axes.set_yticks(range(len(pairs)), names)
        axes.set_ylim(len(pairs) - 0.4, -0.6)
        axes.set_xlabel("points of success; blue: over seeds, grey: over seeds and tasks, 95 %")

    title = "Success on the panel, arm minus baseline"
    return _plot("differences", title, 8.0, 0.6 * len(pairs) + 1.2, draw)


def _axis(axes: Any, axis: str, *, percent: bool) -> None:
    axes.set_xlabel(AXES[axis])
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    if percent:
        axes.yaxis.set_major_formatter(PercentFormatter(1.0, decimals=0, symbol=" %"))


def _line(axes: Any, curve: Curve, color: str, dashes: str, label: str | None = "") -> None:
    name = curve.arm if label == "" else label
    shown = None if name is None else _wrapped(name)
    axes.plot(curve.x, curve.mean, dashes, color=color, linewidth=1.7, label=shown)
    if curve.low:
        axes.fill_between(curve.x, curve.low, curve.high, color=color, alpha=0.14, linewidth=0)


def _wrapped(name: str, width: int = 30) -> str:
    """A name in lines that fit beside a plot; letters that its font may lack by their numbers."""
    lines = [""]
    drawn = str(visible(name)).encode("latin-1", "backslashreplace").decode("latin-1")
    for word in drawn.split():
        if lines[-1] and len(lines[-1]) + len(word) >= width:
            lines.append("")
        lines[-1] = f"{lines[-1]} {word}".strip()
    return "\n".join(lines)


def _plot(name: str, title: str, width: float, height: float, draw: Callable[[Any], None]) -> Plot:
    with matplotlib.style.context(["default", STYLE]):
        figure = Figure(figsize=(width, height), layout="constrained")
        draw(figure)
        buffer = BytesIO()
        figure.savefig(buffer, format="png", metadata={"Software": None})
    return Plot(name, title, buffer.getvalue())
