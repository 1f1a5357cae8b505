"""Curves as inline SVG in the colours of the page; the same run gives the same bytes."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from io import StringIO
from typing import Any

import matplotlib
import matplotlib.style
from markupsafe import Markup
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter, FuncFormatter, MaxNLocator

from rewardswap.report.quality import CHANCE, TurnQuality
from rewardswap.report.records import Json, number
from rewardswap.report.series import (
    PHASES_OF,
    Segments,
    dense_reward_key,
    evaluation_ranges,
    exploration_spans,
    running_mean,
    series,
    success_ranges,
)

# matplotlib cannot write CSS variables, so these stand for them until the SVG is written.
COLORS = {"ink": "#010101", "muted": "#010102", "rule": "#010103", "shade": "#010104"}
COLORS |= {"agent": "#010105", "explorer": "#010106", "evaluation": "#010107"}
MOST_RUNS = 8
"""Runs that one plot can tell apart."""
COLORS |= {f"run-{n}": f"#01010{8 + n:x}" for n in range(MOST_RUNS)}

STYLE = {
    "svg.fonttype": "none",
    "axes.edgecolor": COLORS["rule"],
    "axes.facecolor": "none",
    "axes.grid": True,
    "axes.grid.axis": "y",
    "axes.axisbelow": True,
    "axes.labelcolor": COLORS["muted"],
    "axes.spines.left": False,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "figure.facecolor": "none",
    "font.size": 10,
    "grid.color": COLORS["rule"],
    "grid.linewidth": 0.6,
    "text.color": COLORS["ink"],
    "xtick.color": COLORS["rule"],
    "xtick.labelcolor": COLORS["muted"],
    "ytick.color": COLORS["rule"],
    "ytick.labelcolor": COLORS["muted"],
    "ytick.major.size": 0,
}

X_LABELS = {"update": "updates of the agent", "environment_steps": "environment steps"}


@dataclass(frozen=True)
class Plot:
    """One drawing with its caption."""

    title: str
    svg: Markup


@dataclass(frozen=True)
class Curve:
    """What one plot shows: keys of the metrics over one axis."""

    name: str
    title: str
    keys: tuple[str, ...]
    x: str = "update"
    percent: bool = False
    size: tuple[float, float] = (5.4, 3.0)
    small: bool = False


def large_curves(metrics: Sequence[Json]) -> list[Curve]:
    """Success, the benchmark's own score if it is another, and the dense reward, over both axes."""
    dense = dense_reward_key(key for row in metrics for key in row) or "dense_reward_mean"
    pairs = [(row.get("task_score_mean"), row.get("outcome_mean")) for row in metrics]
    scored = any(None not in pair and len(set(pair)) == 2 for pair in pairs)
    score = {"Task score": "task_score_mean"} if scored else {}
    shown = {"Success": "success", **score, "Dense reward": dense}
    return [
        Curve(f"{key}-{x}".replace("_", "-"), title, (key,), x, percent=key == "success")
        for title, key in shown.items()
        for x in X_LABELS
    ]


SMALL = tuple(
    Curve(
        f"small-{keys[0]}".replace("_", "-"),
        title,
        keys,
        percent=percent,
        size=(3.1, 1.8),
        small=True,
    )
    for title, keys, percent in (
        ("KL to the old policy, nats", ("kl_old",), False),
        ("KL to the reference, nats", ("kl_reference",), False),
        ("Clip shares, high dashed", ("clip_low_share", "clip_high_share"), True),
        ("Effective sample size, share", ("effective_sample_size",), False),
        ("Entropy, nats", ("entropy",), False),
        ("Gradient norm", ("gradient_norm",), False),
        ("Weight of replayed rows (alpha)", ("replay_share",), False),
        ("Updates of the explorer in the loop (k)", ("explorer_updates",), False),
        ("Turns per episode", ("turns_mean",), False),
        ("Repeated states, all states dashed", ("repeated_states", "distinct_states"), False),
        ("Actions not admitted", ("invalid_rate",), True),
    )
)


def curve_plot(metrics: Sequence[Json], curve: Curve) -> Plot | None:
    """Draw one curve; None if the run recorded nothing of it."""
    found = [
        (role, key, segments)
        for key in curve.keys
        for role in (PHASES_OF if len(curve.keys) == 1 else ("agent",))
        if (segments := series(metrics, role, curve.x, key))
    ]
    if not found:
        return None

    def draw(axes: Any) -> None:
        for start, end in exploration_spans(metrics, curve.x):
            axes.axvspan(start, end, color=COLORS["shade"], linewidth=0)
        if curve.keys == ("success",):
            _draw_ranges(axes, metrics, curve.x)
        for role, key, segments in found:
            _draw_series(axes, role, segments, "-" if key == curve.keys[0] else "--")
        across(axes, curve, metrics)
        values = [y for _, _, segments in found for points in segments for _, y in points]
        scale(axes, curve, values)

    title = f"{curve.title} over {X_LABELS[curve.x]}"
    label = f"{title}. {' '.join(_in_words(*entry, curve) for entry in found)}"
    return Plot(curve.title if curve.small else title, drawn(curve, label, draw))


def _in_words(role: str, key: str, segments: Segments, curve: Curve) -> str:
    points = [point for segment in segments for point in segment]
    first, last = (f"{y:.1%}" if curve.percent else f"{y:.3g}" for _, y in (points[0], points[-1]))
    what = f"{role}, {key.replace('_', ' ')}"
    return f"{what}: {len(points)} points, from {first} to {last}."


def _draw_series(axes: Any, role: str, segments: Segments, dashes: str) -> None:
    color = COLORS[role]
    for points in segments:
        across, up = zip(*points, strict=True)
        if role == "agent":
            axes.plot(across, up, ".", color=color, markersize=5, alpha=0.4)
            across, up = zip(*running_mean(points), strict=True)
            axes.plot(across, up, dashes, color=color, linewidth=1.8, solid_capstyle="round")
        elif role == "explorer":
            axes.plot(across, up, "^" + dashes, color=color, markersize=3.5, linewidth=0.9)
        else:
            axes.plot(across, up, "D", color=color, markersize=5.5, zorder=5)


def _draw_ranges(axes: Any, metrics: Sequence[Json], x: str) -> None:
    """Intervals of success: a band along the agent's line, bars at its evaluations."""
    if ranges := success_ranges(metrics, x):
        places, lows, highs = zip(*ranges, strict=True)
        axes.fill_between(places, lows, highs, color=COLORS["agent"], alpha=0.15, linewidth=0)
        for ends in (lows, highs):
            axes.plot(places, ends, color=COLORS["agent"], alpha=0.3, linewidth=0.6)
    for place, low, high in evaluation_ranges(metrics, x):
        axes.plot([place, place], [low, high], "-", color=COLORS["evaluation"], linewidth=1.4)


def across(axes: Any, curve: Curve, metrics: Sequence[Json]) -> None:
    """The whole run on the axis below, whatever part of it the curve has points in."""
    places = [place for row in metrics if (place := number(row.get(curve.x))) is not None]
    places += [end for _, end in exploration_spans(metrics, curve.x)]
    end = max(places, default=0.0) or 1.0
    axes.set_xlim(-0.03 * end, 1.03 * end)  # room for the markers at either end
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    if not curve.small:
        axes.set_xlabel(X_LABELS[curve.x])


def scale(axes: Any, curve: Curve, values: Sequence[float]) -> None:
    """Shares in percent from 0 on; what never changes, such as a setting, from 0 on too."""
    if curve.percent:
        ends = [float(end) for line in axes.lines for end in line.get_ydata()]
        axes.set_ylim(0, min(1.02, max(1.15 * max(ends), 0.01)))
        axes.yaxis.set_major_formatter(FuncFormatter(lambda share, _: f"{100 * share:.3g} %"))
    elif len({*values}) == 1 and values[0] > 0:
        axes.set_ylim(0, 1.3 * values[0])


def process_reward_plot(turns: Sequence[TurnQuality]) -> Plot | None:
    """AUC of the process reward among live episodes, beside that of their length."""
    model = [(float(row.turn), row.auc) for row in turns if row.auc is not None]
    length = [
        (float(row.turn), row.auc_length_only) for row in turns if row.auc_length_only is not None
    ]
    if not model:
        return None

    def draw(axes: Any) -> None:
        axes.axhline(CHANCE, color=COLORS["muted"], linewidth=1, linestyle=":")
        if length:
            axes.plot(*zip(*length, strict=True), "s--", color=COLORS["muted"], markersize=4)
        axes.plot(*zip(*model, strict=True), "o-", color=COLORS["agent"], linewidth=1.8)
        axes.set_xlabel("turn")
        axes.set_xticks([turn for turn, _ in model][:: len(model) // 12 + 1])
        low = min(auc for _, auc in [*model, *length])
        axes.set_ylim(min(0.4, low - 0.05), 1.02)

    values = ", ".join(f"{auc:.2f} at turn {turn:.0f}" for turn, auc in model)
    label = f"AUC among episodes live at a turn. Process reward: {values}."
    title = "AUC among live episodes: blue the process reward, dashed the length only"
    curve = Curve("process-reward-auc", title, ("auc",))
    return Plot(curve.title, drawn(curve, label, draw))


def drawn(curve: Curve, label: str, draw: Callable[[Any], None]) -> Markup:
    """A drawing as an SVG element that takes its colours and font from the page."""
    style = {**STYLE, "svg.hashsalt": curve.name}
    with matplotlib.style.context(["default", style]):
        figure = Figure(figsize=curve.size, layout="constrained")
        axes = figure.add_subplot()
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
        axes.yaxis.set_major_locator(MaxNLocator(4))
        axes.tick_params(axis="x", length=3)
        draw(axes)
        buffer = StringIO()
        figure.savefig(buffer, format="svg")
    return _inline(buffer.getvalue(), curve.name, label)


def _inline(document: str, name: str, label: str) -> Markup:
    svg = document[document.index("<svg") :]
    svg = re.sub(r"<style.*?</style>|<metadata.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = re.sub(r"<svg[^>]*?viewBox=\"([^\"]*)\"[^>]*>", r'<svg viewBox="\1">', svg, count=1)
    svg = re.sub(r"<g id=\"[^\"]*\"", "<g", svg)
    svg = re.sub(r"\bid=\"", f'id="{name}-', svg)
    svg = re.sub(r"(href=\"#|url\(#)", rf"\1{name}-", svg)
    svg = re.sub(r"font-family: [^;\"]*;? ?", "", svg)
    svg = re.sub(r"<[^>]*>", lambda tag: re.sub(r"(\d\.\d\d)\d+", r"\1", tag.group()), svg)
    svg = re.sub(r"\s*\n\s*", " ", svg)
    for variable, color in COLORS.items():
        svg = svg.replace(color, f"var(--{variable})")
    opening = Markup('<svg role="img" aria-label="{}" ').format(label)
    return opening + Markup(svg.removeprefix("<svg ").rstrip())
