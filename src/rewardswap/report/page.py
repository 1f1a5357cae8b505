"""The page: everything put together and written as one file."""

from base64 import b64encode
from hashlib import sha256
from importlib.resources import files
from pathlib import Path

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from rewardswap.report.episodes import choose_pairs, pair_counts, shown_episode
from rewardswap.report.plots import (
    SMALL,
    curve_plot,
    large_curves,
    process_reward_plot,
)
from rewardswap.report.quality import process_reward_quality
from rewardswap.report.records import RunRecord, number, read_run
from rewardswap.report.series import (
    PHASES_OF,
    running_window,
    series,
    with_evaluations,
    with_explorer_updates,
)
from rewardswap.report.tables import (
    Estimate,
    facts,
    family_rows,
    flat,
    has_scores,
    headline,
    origin_row,
    panel_in_words,
)
from rewardswap.report.trajectories import viewer_data
from rewardswap.shown import visible_text
from rewardswap.whole import write_text


def write_report(run: Path) -> Path:
    """Write `report.html` into a run folder, from what the folder holds, and return its path.

    The page needs no network, and no script but for its viewer of trajectories; the same folder
    gives the same bytes.

    Raises ValueError if `run` is no folder or has not one complete line of metrics, and
    UnwrittenError; the page that was there stays then.
    """
    page = run / "report.html"
    write_text(page, render(read_run(run)))
    return page


def render(record: RunRecord, live: str | None = None) -> str:
    """The page of a run as HTML; a `live` one, of the version so named, asks its server for more.

    The server answers at `version` and `page`, beside the page.
    """
    quality = process_reward_quality(record.process_reward)
    metrics = with_explorer_updates(with_evaluations(record))
    curves = {curve: curve_plot(metrics, curve) for curve in large_curves(metrics)}
    small = {curve.title: curve_plot(metrics, curve) for curve in SMALL}
    families = family_rows(record.before, record.after)
    liked = record.liked_failure
    learned = series(metrics, "agent", "update", "success")
    script = script_of("trajectory.js", "viewer.js", *(["live.js"] if live else []))
    return (
        templates()
        .get_template("page.html.jinja")
        .render(
            record=record,
            headline=headline(record),
            panel=panel_in_words(record.after or record.before or {}),
            facts=facts(record.summary),
            summary=flat(record.summary),
            environment=flat(record.environment),
            curves=[plot for plot in curves.values() if plot],
            unseen_curves=sorted({curve.title for curve, plot in curves.items() if not plot}),
            roles=[role for role in PHASES_OF if series(metrics, role, "update", "update")],
            window=running_window(sum(map(len, learned))),
            small=[plot for plot in small.values() if plot],
            families=families,
            scored=has_scores(families),
            origins=origin_row(record.before, record.after),
            quality=quality,
            quality_plot=process_reward_plot(quality.turns) if quality else None,
            pairs=choose_pairs(record),
            pair_counts=pair_counts(record),
            played=len(record.trajectories),
            trajectories=viewer_data(record),
            script=script,
            policy=policy_of(script, live),
            live=live,
            liked=None if liked is None else shown_episode(liked, "training"),
        )
    )


def render_waiting(name: str, words: str, live: str) -> str:
    """A page that stands for that of a run of which there is nothing to show yet."""
    script = script_of("live.js")
    return (
        templates()
        .get_template("waiting.html.jinja")
        .render(name=name, words=words, live=live, script=script, policy=policy_of(script, live))
    )


def script_of(*names: str) -> Markup:
    """Scripts of this package, one after the other."""
    room = files("rewardswap.report")
    return Markup("\n").join(Markup((room / name).read_text(encoding="utf-8")) for name in names)


def policy_of(script: str, live: str | None) -> str:
    """What a browser may do for the page: run this script alone, and ask nobody but its server."""
    connects = "'self'" if live else "'none'"
    digest = b64encode(sha256(script.encode()).digest()).decode()
    return (
        f"default-src 'none'; script-src 'sha256-{digest}'; style-src 'unsafe-inline'; "
        f"img-src data:; connect-src {connects}; base-uri 'none'; "
        "form-action 'none'"
    )


def templates() -> Environment:
    """The templates of this package, with the filters that they use; texts are escaped."""
    environment = Environment(
        loader=PackageLoader("rewardswap", "report"),
        autoescape=True,
        finalize=visible,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.filters |= {
        "percent": percent,
        "interval": interval,
        "points": points,
        "points_interval": points_interval,
        "across": across,
        "share": share,
        "auc": auc,
        "signed": signed,
    }
    return environment


def visible(value: object) -> object:
    """Text with terminal escapes and other unseen characters replaced by symbols for them."""
    if isinstance(value, Markup) or not isinstance(value, str):
        return value
    return visible_text(value)


def percent(value: float | None) -> str:
    """A share in percent, one decimal."""
    return "–" if value is None else f"{100 * value:.1f}\u202f%"


def interval(estimate: Estimate | None) -> str:
    """The interval of a rate in percent."""
    if estimate is None or estimate.interval is None:
        return ""
    low, high = estimate.interval
    return f"{100 * low:.1f} to {100 * high:.1f}"


def points(estimate: Estimate | None) -> str:
    """A difference of rates in percentage points, with its sign."""
    return "–" if estimate is None else signed(100 * estimate.value, 1)


def points_interval(estimate: Estimate | None) -> str:
    """The interval of a difference in percentage points."""
    if estimate is None or estimate.interval is None:
        return ""
    low, high = estimate.interval
    return f"{signed(100 * low, 1)} to {signed(100 * high, 1)}"


def signed(value: float, decimals: int = 2) -> str:
    """A number with its sign."""
    return f"{value:+.{decimals}f}".replace("-", "\u2212")


def across(share: float) -> str:
    """A share as a length in CSS."""
    return f"{100 * share:.2f}%"


def share(value: object) -> str:
    """A share as a file holds it, in percent."""
    return percent(number(value))


def auc(value: float | None) -> str:
    """An area under the ROC curve, three decimals."""
    return "–" if value is None else f"{value:.3f}"
