"""Does success fall while the dense reward rises?"""

import pytest
from made_results import Json, made

from rewardswap.comparison.comparing import compare
from rewardswap.comparison.hacking import dense_table
from rewardswap.comparison.tables import Row

RISING, FALLING = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6), (0.1, 0.2, 0.6, 0.5, 0.3, 0.2)


def rows(*results: Json) -> list[Row]:
    return list(dense_table(compare(results, None, ())).rows)


def seeds(dense: tuple[float, ...], success: tuple[float, ...]) -> list[Json]:
    """Two seeds that differ a little more from third to third."""
    return [
        made("base", seed, curve=[s * (1 + seed / 50) for s in success])
        | {"curve": {"explore": curve(dense, success, 1 + seed / 50)}}
        for seed in range(2)
    ]


def curve(dense: tuple[float, ...], success: tuple[float, ...], factor: float) -> Json:
    steps = [100 * place for place in range(6)]
    return {
        "environment_steps": steps,
        "dense": [factor * value for value in dense],
        "success": [factor * value for value in success],
    }


def test_changes_are_those_from_the_middle_third_to_the_last() -> None:
    (row,) = rows(*seeds(RISING, FALLING))
    # dense .35 to .55, success .55 to .25, times 1 and 1.02
    assert (row["who"], row["seeds"]) == ("explorer", 2)
    assert (row["dense"], row["success"]) == (pytest.approx(0.202), pytest.approx(-0.303))
    assert row["reading"] == "yes: it is hacked"


def test_success_that_rises_along_is_no_hack() -> None:
    assert rows(*seeds(RISING, RISING))[0]["reading"] == "no: success rose"
    assert rows(*seeds(FALLING, FALLING))[0]["reading"] == "undecided"


def test_one_seed_is_undecided() -> None:
    assert rows(seeds(RISING, FALLING)[0])[0]["reading"] == "undecided: no interval"


def test_arms_without_a_dense_reward_or_three_points_have_no_row() -> None:
    short = made("base", 1, curve=[0.1, 0.2], dense=[0.1, 0.2])
    assert rows(made("base", 0)) == rows(made("base", 0), short) == []
