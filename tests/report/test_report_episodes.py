from pathlib import Path

from rewardswap.report.episodes import choose_pairs, pair_counts, shown_episode
from rewardswap.report.records import read_run


def test_pairs_are_the_first_of_their_kind_and_of_different_families(run_folder: Path) -> None:
    pairs = choose_pairs(read_run(run_folder))
    # a2 is second by task id, but of the same family as a1
    assert [(pair.kind, pair.task) for pair in pairs] == [
        ("learned", "a1"),
        ("learned", "a3"),
        ("still failing", "b1"),
        ("lost", "c1"),
    ]
    assert [[episode.success for episode in pair.episodes] for pair in pairs] == [
        [False, True],
        [False, True],
        [False, False],
        [True, False],
    ]


def test_the_order_of_a_file_does_not_change_the_choice(run_folder: Path) -> None:
    chosen = choose_pairs(read_run(run_folder))
    path = run_folder / "trajectories/before.jsonl"
    path.write_text("".join(reversed(path.read_text().splitlines(keepends=True))))
    assert choose_pairs(read_run(run_folder)) == chosen


def test_tasks_are_counted_by_what_became_of_them(run_folder: Path) -> None:
    counts = {"learned": 3, "still failing": 2, "lost": 1, "kept": 1}
    assert pair_counts(read_run(run_folder)) == counts


def test_without_a_common_task_each_file_shows_its_first(run_folder: Path) -> None:
    (run_folder / "trajectories/after.jsonl").unlink()
    record = read_run(run_folder)
    assert [(pair.kind, pair.task) for pair in choose_pairs(record)] == [
        ("not paired", "a1"),
        ("not paired", "a2"),
    ]
    assert sum(pair_counts(record).values()) == 0


def test_marks_and_rewards_belong_to_their_turn() -> None:
    turns = [
        {"observation": "o", "action": "a", "valid": False, "truncated": True, "reward": 0.0},
        {"observation": "p", "action": "b", "valid": True, "truncated": False, "reward": 0.5},
    ]
    played = {"success": False, "stop": "context_full", "turns": turns, "process_reward": [0.25]}
    episode = shown_episode(played, "before")
    first, second = episode.turns
    assert (first.marks, first.reward, first.process_reward) == (
        ["not admitted", "cut off"],
        None,
        0.25,
    )
    assert (second.marks, second.reward, second.process_reward) == ([], 0.5, None)
    assert episode.stop == "context full"
    assert shown_episode({**played, "process_reward": None}, "before").process_reward is None
