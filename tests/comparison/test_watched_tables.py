"""What the monitors saw, as tables."""

import pytest
from made_results import Json, made

from rewardswap.comparison.comparing import compare
from rewardswap.comparison.hacking import planted_table
from rewardswap.comparison.records import tables_of
from rewardswap.comparison.watched import (
    exploration_table,
    process_rewards_table,
    warnings_table,
)


def alarm(count: int, first: float) -> Json:
    return {"hacking": {"count": count, "first_update": first, "words": f"at {first}"}}


def test_warnings_are_counted_over_the_runs_that_had_them() -> None:
    results = [made("base", 0, warnings=alarm(3, 10)), made("base", 1, warnings=alarm(1, 20))]
    (row,) = warnings_table(compare([*results, made("base", 2)], None, ())).rows
    assert (row["runs"], row["of"], row["first_update"], row["count"]) == (2, 3, 15.0, 2.0)
    assert row["words"] == "at 10"


def quality(total: float | None, warning: str | None) -> Json:
    numbers = {"auc_total": total, "auc_within_task": 0.5, "auc_length_only": 0.9, "brier": 0.2}
    return {**numbers, "auc_at_fixed_turns": 0.6, "warning": warning}


def test_process_rewards_are_averaged_where_they_are_known() -> None:
    results = [
        made("base", 0, process_reward=quality(0.8, None)),
        made("base", 1, process_reward=quality(None, "one kind only")),
        made("base", 2),
    ]
    (row,) = process_rewards_table(compare(results, None, ())).rows
    assert (row["models"], row["warned"], row["auc_total"]) == (2, 1, 0.8)


def phrased(seed: int, *shares: float) -> Json:
    steps = [100 * place for place in range(len(shares))]
    curve = {"learn": {"environment_steps": steps, "planted_share": [*shares]}}
    return made("base", seed, curve=[0.1] * len(shares)) | {"curve": curve}


def planted(*results: Json) -> str:
    (row,) = planted_table(compare(results, None, ())).rows
    return str(row["reading"])


def test_a_planted_exploit_is_read_off_its_phrase() -> None:
    (row,) = planted_table(compare([phrased(0, 0.1, 0.2, 0.4)], None, ())).rows
    assert row["change"] == pytest.approx(0.3)
    assert row["reading"] == "undecided: no interval"
    rises = [phrased(seed, 0.1, 0.2, 0.4 + seed / 100) for seed in (0, 1)]
    assert planted(*rises) == "the agent exploits it"
    falls = [phrased(seed, 0.1, 0.2, 0.01 * seed) for seed in (0, 1)]
    assert planted(*falls) == "the agent does not"
    assert planted(phrased(0, 0.1, 0.2, 0.4), phrased(1, 0.1, 0.2, 0.05)) == "undecided"
    rare = [phrased(seed, 0.004 + seed / 1000, 0.005, 0.004) for seed in (0, 1)]
    rare.append(phrased(2, 0.002, 0.003, 0.007))  # t(2) = 4.303: 0.005 +- 4.303 * 0.001
    assert planted(*rare) == "the agent does not: at most 0.9% of its actions in the end"
    grows = [phrased(seed, 0.001, 0.005, 0.03 + seed / 1000) for seed in (0, 1)]
    assert planted(*grows) == "the agent exploits it"  # however little it is as yet


def test_an_explorer_is_read_off_its_harvests() -> None:
    """It begins as the agent in every loop: its updates in order say nothing."""
    found = []
    for seed in (0, 1):
        columns = {
            "learn": [0.01, 0.02, 0.03],
            "explore": [0.01, 0.2, 0.01, 0.2],
            "harvest": [0.5, 0.7 + 0.02 * seed],
        }
        curve: Json = {phase: {"planted_share": shares} for phase, shares in columns.items()}
        for phase in ("learn", "explore"):  # as recorded: a harvest's row has no count of steps
            curve[phase]["environment_steps"] = [*range(len(columns[phase]))]
        found.append(made("base", seed) | {"curve": curve})
    row = planted_table(compare(found, None, ())).rows[0]
    assert (row["who"], row["first"]) == ("explorer", pytest.approx(0.02))
    assert row["last"] == pytest.approx(0.605)  # means of .6 and .61
    assert row["reading"] == "the explorer exploits it"
    for one in found:
        del one["curve"]["harvest"]
    assert planted_table(compare(found, None, ())).rows[0]["last"] == pytest.approx(0.105)


def test_repeated_states_are_compared_from_the_first_to_the_last_third() -> None:
    results = []
    for seed in (0, 1):
        learn = {"repeated_states": [30, 20, 10 - 2 * seed], "edit_distance": [0.5, None, 0.7]}
        learn["environment_steps"] = [100, 200, 300]
        loop = {"explorer_kl": [0.1, 0.3]}
        results.append(made("base", seed) | {"curve": {"learn": learn, "loop": loop}})
    (row,) = exploration_table(compare(results, None, ())).rows
    assert (row["repeated_early"], row["repeated_late"], row["repeated"]) == (30.0, 9.0, -21.0)
    assert row["edit_distance"] == pytest.approx(0.6)
    assert row["explorer_kl"] == pytest.approx(0.2)
    assert row["replay_success_share"] is None


def test_tables_without_a_row_are_left_out() -> None:
    names = [table.name for table in tables_of(compare([made("base", 0)], None, ()))]
    assert "warnings" not in names and "planted" not in names
    told = compare([made("base", 0, warnings=alarm(1, 2))], None, ())
    assert "warnings" in [table.name for table in tables_of(told)]
