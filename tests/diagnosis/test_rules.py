"""Every rule: a run that trips it and only it, and a healthy one that trips none."""

from pathlib import Path

import pytest

import diagnosis_runs
from diagnosis_runs import CASES, Made, evaluation, healthy, quality
from rewardswap.diagnosis.diagnose import Diagnosis, diagnose, observe
from rewardswap.diagnosis.finding import Finding
from rewardswap.diagnosis.rules import RULES
from rewardswap.diagnosis.rules.groups import expected_informative


def looked_at(made: Made, folder: Path) -> Diagnosis:
    return diagnose(observe(made.write(folder / "run")))


def only(diagnosis: Diagnosis) -> Finding:
    (finding,) = diagnosis.findings
    return finding


def test_a_healthy_run_trips_no_rule_and_all_of_them_could_look(tmp_path: Path) -> None:
    found = looked_at(healthy(), tmp_path)
    assert [finding.rule.cause for finding in found.findings] == []
    assert (found.unchecked, found.idle) == ((), ())
    assert found.in_order == RULES


def test_every_rule_has_a_case() -> None:
    assert sorted(CASES) == sorted(rule.cause for rule in RULES)
    assert len({rule.about for rule in RULES}) == len(RULES)


@pytest.mark.parametrize("cause", CASES)
def test_a_case_trips_its_rule_and_no_other(cause: str, tmp_path: Path) -> None:
    made = healthy()
    CASES[cause](made)
    finding = only(looked_at(made, tmp_path))
    assert finding.rule.cause == cause
    assert finding.seen.words.endswith(".")
    assert finding.seen.evidence and all(finding.seen.evidence)


def severity(tmp_path: Path, change: diagnosis_runs.Case) -> str:
    made = healthy()
    change(made)
    return only(looked_at(made, tmp_path)).seen.severity


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("informative_groups", 0.3, None),
        ("informative_groups", 0.29, "warning"),
        ("informative_groups", 0.09, "serious"),
        ("zero_advantage_groups", 0.7, None),
        ("zero_advantage_groups", 0.71, "serious"),
        ("invalid_rate", 0.3, None),
        ("invalid_rate", 0.31, "warning"),
        ("invalid_rate", 0.61, "serious"),
        ("clip_low_share", 0.2, None),
        ("clip_high_share", 0.21, "warning"),
        ("effective_sample_size", 0.5, None),
        ("effective_sample_size", 0.49, "warning"),
        ("effective_sample_size", 0.09, "serious"),
        ("kl_old", 0.0499, None),
        ("kl_old", 0.051, "serious"),
        ("kl_old", 1e-6, None),
        ("kl_old", 9e-7, "serious"),
        ("kl_old", -1e-3, None),
        ("explorer_kl", -0.01, None),
        ("kl_reference", 0.5, None),
        ("kl_reference", 0.51, "warning"),
        ("explained_variance", 0.0, None),
        ("explained_variance", -0.01, "serious"),
        ("gradient_clipped", 0.94, None),
        ("gradient_clipped", 0.95, "note"),
        ("engine_gap_max", 0.1, None),
        ("engine_gap_max", 0.11, "serious"),
        ("engine_gap_mean", 1e-4, None),
        ("engine_gap_mean", 1.1e-4, "warning"),
        ("rollout/truncated_turns", 20.0, None),  # of 400 steps
        ("rollout/truncated_turns", 21.0, "warning"),
        ("rollout/context_full", 2.5, None),  # of 50 episodes
        ("rollout/context_full", 2.6, "warning"),
        ("failed_episodes", 16.0, "note"),  # of 56 rows x 50 + 16 episodes
        ("failed_episodes", 40.0, "warning"),
        ("failed_episodes", 900.0, "serious"),
    ],
)
def test_bounds(name: str, value: float, expected: str | None, tmp_path: Path) -> None:
    made = healthy()
    made.put(value, name)
    found = looked_at(made, tmp_path)
    assert [finding.seen.severity for finding in found.findings] == ([expected] if expected else [])


@pytest.mark.parametrize(
    ("total", "fixed", "expected"),
    [
        (0.9, 0.55, None),
        (0.9, 0.549, "process_reward_length"),
        (0.6, 0.54, "process_reward_length"),
        (0.59, 0.54, "process_reward_chance"),
        (0.59, 0.45, "process_reward_chance"),
        (0.59, 0.449, "process_reward_reversed"),
    ],
)
def test_bounds_of_the_process_reward(
    total: float, fixed: float, expected: str | None, tmp_path: Path
) -> None:
    made = healthy()
    made.process_reward = quality(total, fixed)
    causes = [finding.rule.cause for finding in looked_at(made, tmp_path).findings]
    assert causes == ([expected] if expected else [])


def test_expected_share_of_informative_groups() -> None:
    # by hand: 1 - .18^2 - .82^2 = 1 - .0324 - .6724
    assert expected_informative(0.18, 2) == pytest.approx(0.2952)
    assert expected_informative(0.5, 8) == pytest.approx(1 - 2 / 256)
    assert expected_informative(0.0, 8) == expected_informative(1.0, 8) == 0.0


def test_group_size_against_success_is_said_and_a_size_that_helps(tmp_path: Path) -> None:
    made = healthy()
    made.line("success", 0.02, 0.04, "learn")
    made.put(0.2, "informative_groups")
    made.after = evaluation(0.45)
    made.before = evaluation(0.02, half=0.01)
    seen = only(looked_at(made, tmp_path)).seen
    # success of the last ten rows: 3.61 %; 1 - .9639^8 = 25.5 %, ^16 44 %, ^32 69 %
    assert "25.5% of groups of 8" in seen.evidence[1]
    assert seen.advice[0].settings == "--batch.group-size 32"


def test_alike_groups_at_a_high_success_are_a_note(tmp_path: Path) -> None:
    made = healthy()
    made.line("success", 0.3, 0.98, "learn")
    made.put(0.05, "informative_groups")
    seen = only(looked_at(made, tmp_path)).seen
    assert seen.severity == "note"
    assert "easy" in seen.words


def test_a_low_entropy_at_a_high_success_is_a_note(tmp_path: Path) -> None:
    def sure(made: Made) -> None:
        CASES["collapsed_entropy"](made)
        made.line("success", 0.3, 0.98, "learn")

    assert severity(tmp_path, sure) == "note"


def test_answers_that_grow_with_success_are_in_order(tmp_path: Path) -> None:
    made = healthy()
    made.line("rollout/generated_tokens", 1600.0, 4800.0, "learn")
    assert not looked_at(made, tmp_path).findings


def test_a_turn_cap_that_cuts_no_wins_is_in_order(tmp_path: Path) -> None:
    made = healthy()
    made.put(30.0, "rollout/turn_limit")
    assert not looked_at(made, tmp_path).findings


def test_a_turn_cap_without_any_win_is_seen(tmp_path: Path) -> None:
    made = healthy()
    made.put(30.0, "rollout/turn_limit")
    made.turns_of_wins = ()
    assert "no held-out episode was won after" in only(looked_at(made, tmp_path)).seen.evidence[0]


def test_the_interval_of_the_difference_decides(tmp_path: Path) -> None:
    # Newcombe by hand: both half widths .05, so the difference's is .05 sqrt 2 = .0707
    for after, undecided in ((0.37, True), (0.371, False)):
        made = healthy()
        made.before, made.after = evaluation(0.3, half=0.05), evaluation(after, half=0.05)
        found = looked_at(made, tmp_path / str(after))
        assert [f.rule.cause for f in found.findings] == (["undecided"] if undecided else [])


def test_what_a_panel_can_show_is_said(tmp_path: Path) -> None:
    made = healthy()
    made.before, made.after = evaluation(0.4, 100, 0.1), evaluation(0.5, 100, 0.1)
    evidence = " ".join(only(looked_at(made, tmp_path)).seen.evidence)
    assert "+10.0 points, 95 % interval [-4.1, +24.1]" in evidence
    # 1.96 sqrt(2 x .45 x .55 / 100) = .138
    assert "with 100 tasks a difference below about 14 points" in evidence


def test_the_most_severe_comes_first(tmp_path: Path) -> None:
    made = healthy()
    for cause in ("worker_restarts", "undecided", "invalid_actions", "worse_critic"):
        CASES[cause](made)
    found = looked_at(made, tmp_path).findings
    assert [(f.seen.severity, f.rule.cause) for f in found] == [
        ("serious", "worse_critic"),
        ("warning", "undecided"),
        ("warning", "invalid_actions"),
        ("note", "worker_restarts"),
    ]
