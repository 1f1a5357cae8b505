import pytest

from rewardswap.core.anchors import anchor_ids, are_similar, similar_anchor_ids


def test_equal_states_of_one_task_share_an_id_and_those_of_two_tasks_do_not() -> None:
    ids = anchor_ids(["a", "a", "b", "a", "b"], ["desk", "lamp", "desk", "desk", "desk"])
    assert ids.tolist() == [0, 1, 2, 0, 2]


def test_similar_states_join_the_first_cluster_that_they_resemble() -> None:
    keys = ["you see a mug 1", "you see a mug 2", "nothing", "you see a mug 3"]
    # 14 of 15 characters match: 28/30 = .933
    assert similar_anchor_ids(["t"] * 4, keys, 0.9).tolist() == [0, 0, 1, 0]
    assert similar_anchor_ids(["t"] * 4, keys, 0.95).tolist() == [0, 1, 2, 3]
    assert similar_anchor_ids(["t", "u", "t", "u"], keys, 0.9).tolist() == [0, 1, 2, 1]


def test_are_similar() -> None:
    # "abc" and "abd" share 2 of 3 characters: 4/6 = .667
    assert are_similar("abc", "abd", 0.66)
    assert not are_similar("abc", "abd", 0.67)


@pytest.mark.parametrize("threshold", [0.0, 1.0, -1.0])
def test_a_threshold_outside_the_open_interval_is_refused(threshold: float) -> None:
    with pytest.raises(ValueError, match=f"inside .0, 1., got {threshold}"):
        are_similar("a", "b", threshold)


@pytest.mark.parametrize("group", [anchor_ids, lambda t, k: similar_anchor_ids(t, k, 0.5)])
def test_lists_of_different_lengths_are_refused(group) -> None:
    with pytest.raises(ValueError, match="2 tasks and 1 state keys"):
        group(["a", "b"], ["desk"])
