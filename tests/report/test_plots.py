import re

from rewardswap.report.plots import Curve, curve_plot, large_curves

METRICS = [
    {"phase": "learn", "update": u, "loop": 0, "environment_steps": 9 * u, "success": 0.1 * u}
    for u in range(4)
]


def test_what_was_not_recorded_is_not_drawn() -> None:
    assert curve_plot(METRICS, Curve("entropy", "Entropy", ("entropy",))) is None


def test_labels_of_ticks_keep_their_digits() -> None:
    rows = [{"phase": "learn", "update": u, "kl_old": 0.005 * u} for u in range(4)]
    plot = curve_plot(rows, Curve("kl", "KL", ("kl_old",)))
    assert plot is not None
    labels = re.findall(r"<text[^>]*>([^<]*)</text>", plot.svg)
    assert {"0.005", "0.010", "0.015"} <= {*labels}


def test_drawings_share_no_id() -> None:
    ids = [
        name
        for curve in large_curves(METRICS)[:2]
        if (plot := curve_plot(METRICS, curve))
        for name in re.findall(r"\bid=\"([^\"]*)\"", plot.svg)
    ]
    assert ids
    assert len(ids) == len(set(ids))


def test_the_dense_reward_goes_by_the_name_that_the_run_gave_it() -> None:
    rows = [{"phase": "explore", "update": 0, "process_reward_mean": 0.5, "success": 0.1}]
    assert [curve.keys for curve in large_curves(rows)[::2]] == [
        ("success",),
        ("process_reward_mean",),
    ]
    assert large_curves(METRICS)[2].keys == ("dense_reward_mean",)


def test_a_score_that_differs_from_the_outcome_has_curves_of_its_own() -> None:
    same = [{"phase": "learn", "update": 1, "outcome_mean": 0.5, "task_score_mean": 0.5}]
    other = [*same, {"phase": "learn", "update": 2, "outcome_mean": 0.5, "task_score_mean": 0.6}]
    evaluated = [*same, {"phase": "evaluate", "update": 1, "task_score_mean": 0.6}]
    for rows, scored in ((same, False), (other, True), (evaluated, False)):
        assert (("task_score_mean",) in [curve.keys for curve in large_curves(rows)]) == scored


def test_every_curve_of_a_run_has_the_whole_run_below_it() -> None:
    late = [{**row, "kl_old": 0.1} if row["update"] == 3 else row for row in METRICS]
    for key in ("success", "kl_old"):
        plot = curve_plot(late, Curve("one", "One", (key,)))
        assert plot is not None
        assert {"0", "1", "2", "3"} <= {*re.findall(r"<text[^>]*>([^<]*)</text>", plot.svg)}
