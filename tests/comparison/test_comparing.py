"""Arms, their pairs, and what may not be compared."""

import random
from typing import Any

import pytest
from made_results import Json, made

from rewardswap.comparison.comparing import compare


def three_seeds() -> list[Json]:
    """Successes of the base .4, .5, .6; of the arm .5, .7, .9."""
    rows = []
    for seed, (base, arm) in enumerate(((4, 5), (5, 7), (6, 9))):
        for name, won in (("base", base), ("arm", arm)):
            bits = "1" * won + "0" * (10 - won)
            rows.append(made(name, seed, {"cool": bits[:5], "heat": bits[5:]}))
    return rows


def test_differences_are_taken_seed_by_seed() -> None:
    (pair,) = compare(three_seeds(), None, ()).pairs
    assert (pair.arm, pair.baseline, pair.seeds) == ("arm", "base", (0, 1, 2))
    # .1, .2, .3: mean .2, s = .1, reach .248414; t = 2√3, p = 1 - t/√(t² + 2) = 1 - √(12/14)
    assert pair.difference.value == pytest.approx(0.2)
    assert pair.difference.interval == pytest.approx((0.2 - 0.248414, 0.2 + 0.248414), abs=1e-6)
    assert pair.p == pytest.approx(1 - (12 / 14) ** 0.5)
    assert pair.crossed is not None and pair.crossed.value == pytest.approx(0.2)


def test_pairing_is_by_seed_and_says_who_is_alone() -> None:
    rows = [row for row in three_seeds() if (row["arm"], row["seed"]) != ("base", 1)]
    found = compare(rows, None, ())
    (pair,) = found.pairs
    assert (pair.seeds, pair.left_out) == ((0, 2), (1,))
    assert pair.difference.value == pytest.approx(0.2)  # of .1 and .3
    assert "arm and base do not both have seeds 1." in found.notes


def test_equal_differences_have_no_interval_and_no_p_value() -> None:
    rows = [made("base", seed, {"cool": bits}) for seed, bits in enumerate(("1000", "1100"))]
    rows += [made("arm", seed, {"cool": bits}) for seed, bits in enumerate(("1100", "1110"))]
    (pair,) = compare(rows, None, ()).pairs
    assert (pair.difference.value, pair.difference.interval, pair.p) == (0.25, None, None)


def test_unknown_bits_leave_the_view_over_tasks_out() -> None:
    rows = three_seeds()
    rows[1]["tasks"] = {}
    (pair,) = compare(rows, None, ()).pairs
    assert pair.crossed is None
    assert pair.p is not None


def test_the_order_of_lines_and_seeds_changes_nothing() -> None:
    rows = three_seeds()
    expected = compare(rows, None, ())
    for seed in range(3):
        random.Random(seed).shuffle(rows)
        assert compare(rows, None, ()) == expected


def test_arms_are_in_the_order_of_their_numbers() -> None:
    rows = [made(name, 0) for name in ("k-10", "k-3", "base")]
    assert [arm.name for arm in compare(rows, None, ()).arms] == ["base", "k-3", "k-10"]


def test_one_seed_is_said_and_has_no_interval() -> None:
    found = compare([made("base", 0), made("arm", 0)], None, ())
    assert "One seed only, and so no interval over seeds: arm, base." in found.notes
    (pair,) = found.pairs
    assert pair.difference.interval is None and pair.p is None


def test_a_baseline_without_results_is_said() -> None:
    found = compare([made("arm", 0)], None, ())
    assert "arm is to be compared with base, which has no result yet." in found.notes
    assert not found.pairs


def test_a_baseline_is_given_to_arms_that_name_none() -> None:
    rows = [made(name, 0, baseline=None) for name in ("one", "two")]
    assert not compare(rows, None, ()).pairs
    assert [(p.arm, p.baseline) for p in compare(rows, "two", ()).pairs] == [("one", "two")]
    with pytest.raises(ValueError, match="--baseline three is no arm; there are one, two"):
        compare(rows, "three", ())


@pytest.mark.parametrize(
    ("kind", "change", "said"),
    [
        ("commits", {"commit": "badbad"}, "badbad"),
        ("budgets", {"budget": {"amount": 9, "unit": "agent_updates"}}, "9 agent_updates"),
        ("temperatures", {"temperature": 0.4}, "0.4"),
    ],
)
def test_what_differs_is_refused_unless_it_may(
    kind: str, change: dict[str, Any], said: str
) -> None:
    rows = [made("base", 0), made("arm", 0, **change)]
    with pytest.raises(ValueError, match=f"mix {kind} .*--mix {kind}") as refusal:
        compare(rows, None, ())
    assert said in str(refusal.value) and "\n" not in str(refusal.value)
    mixture = compare(rows, None, (kind,)).mixture
    assert mixture.startswith(f"Mixed: {kind} (") and said in mixture
    recorded = [rows[0], {**rows[1], "mixed": [kind]}]
    assert compare(recorded, None, ()).mixture == mixture


def test_other_budgets_are_no_matter_where_nothing_is_compared() -> None:
    rows = [made("base", 0), made("alone", 0, baseline=None, budget={"amount": 9, "unit": "x"})]
    assert compare(rows, None, ()).mixture == ""


def test_settings_that_differ_inside_an_arm_are_refused() -> None:
    rows = [made("base", 0), made("base", 1, settings="others")]
    with pytest.raises(ValueError, match="arm base mix settings"):
        compare(rows, None, ())
    assert "settings" in compare(rows, None, ("settings",)).mixture


def test_other_panels_are_never_compared() -> None:
    other = {"split": "valid", "hash": "77", "tasks": 6}
    rows = [made("base", 0), made("arm", 0, panel=other)]
    for mix in ((), ("panels",)):
        with pytest.raises(ValueError, match=r"held_out 9f3a.*report them apart$"):
            compare(rows, None, mix)


def test_a_seed_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="arm base has seed 0 twice"):
        compare([made("base", 0), made("base", 0)], None, ())


def test_two_baselines_are_refused() -> None:
    rows = [made("arm", 0), made("arm", 1, baseline="other")]
    with pytest.raises(ValueError, match="compared with base and other"):
        compare(rows, None, ())


def test_no_result_is_refused() -> None:
    with pytest.raises(ValueError, match="no result to report"):
        compare([], None, ())


def test_what_results_say_of_their_making_is_said() -> None:
    rows = [made("base", seed, commit="c0ffee-dirty", mixed=["settings"]) for seed in (0, 1)]
    notes = compare(rows, None, ()).notes
    assert "Made with changes that are in no commit: c0ffee-dirty." in notes
    assert "The results say that they were allowed to mix settings." in notes
