"""The data of the viewer: what is in it, and that no text in it gets out."""

import json
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from reported import token_trajectory, write_lines

from rewardswap.report.records import read_run
from rewardswap.report.trajectories import _encoded, shown_trajectory, viewer_data
from rewardswap.shown import visible_text


def data_of(run: Path, **limits: int) -> Any:
    return json.loads(viewer_data(read_run(run), **limits))


def test_all_trajectories_are_there_in_the_order_of_the_run(run_folder: Path) -> None:
    kept = [token_trajectory(1), token_trajectory(2, replayed=True)]
    write_lines(run_folder / "trajectories/train.jsonl", kept)
    found = data_of(run_folder)
    assert found["left_out"] == 0
    assert [t["when"] for t in found["trajectories"]] == [
        *["before"] * 7, "training", "training", *["after"] * 7,
    ]  # fmt: skip
    assert len({t["id"] for t in found["trajectories"]}) == 16
    fresh, replayed = found["trajectories"][7:9]
    assert (fresh["replayed"], replayed["replayed"]) == (False, True)
    assert (replayed["phase"], replayed["update"], replayed["version"]) == ("learn", 2, 2)
    assert replayed["stop"] == "out of turns" and replayed["process"] == [0.5, -0.25]
    turn = replayed["turns"][0]
    assert turn["pieces"] == ["go", " to sink <end>"] and turn["context"] == "the sink 2 . <act>"
    assert [turn[n] for n in ("behavior", "old", "advantage")] == [
        [-0.5, -0.25], [-0.75, -0.125], [0.5, -1.0],
    ]  # fmt: skip


def test_trajectories_without_tokens_are_read(run_folder: Path) -> None:
    before = data_of(run_folder)["trajectories"][0]
    assert "pieces" not in before["turns"][0]
    assert before["turns"][1]["valid"] is False and before["phase"] == "before"
    assert before["update"] is None and before["replayed"] is False


@pytest.mark.parametrize(
    "strange",
    [
        {"pieces": "go"},
        {"pieces": [1, 2]},
        {"pieces": []},
        {"pieces": None},
    ],
)
def test_pieces_of_another_type_are_not_shown(strange: dict[str, Any]) -> None:
    played = token_trajectory(1)
    played["turns"] = [{**played["turns"][0], **strange}]
    (turn,) = shown_trajectory(played, "training", 0)["turns"]
    assert "pieces" not in turn and turn["action"] == "go to sink"


@pytest.mark.parametrize("strange", [[1.0], "ab", [1.0, "b"], [1.0, float("nan")], None, 3])
def test_numbers_that_do_not_fit_the_tokens_are_not_shown(strange: Any) -> None:
    played = token_trajectory(1)
    played["turns"] = [{**played["turns"][0], "advantage": strange}]
    (turn,) = shown_trajectory(played, "training", 0)["turns"]
    assert turn["advantage"] is None and turn["old"] == [-0.75, -0.125]


def test_what_would_make_the_page_too_large_is_left_out_and_counted(run_folder: Path) -> None:
    write_lines(run_folder / "trajectories/train.jsonl", [token_trajectory(n) for n in range(40)])
    sizes = [len(json.dumps(t)) for t in data_of(run_folder)["trajectories"]]
    found = data_of(run_folder, most_bytes=sum(sizes) // 2)
    shown = [t["update"] for t in found["trajectories"] if t["when"] == "training"]
    assert shown[0] > 0 and {b - a for a, b in pairwise(shown)} <= {2, 4}
    assert found["left_out"] == 54 - len(found["trajectories"]) > 0
    assert data_of(run_folder, most_bytes=0) == {"left_out": 54, "trajectories": []}


HOSTILE = (
    st.text(st.sampled_from("</script>!-&\u2028\u2029\\\"'\x00\x1b\u202e\ud800aé ")) | st.text()
)


@given(HOSTILE, HOSTILE)
def test_no_text_ends_the_script_and_none_is_changed_but_what_is_unseen(
    text: str, other: str
) -> None:
    played = token_trajectory(1, family=text)
    played["turns"][0] |= {"pieces": [text, other], "context": other, "observation": text}
    written = _encoded(played, "training", 0)
    assert not {*"<>&\u2028\u2029"} & {*written}
    written.encode("utf-8")
    read = json.loads(written)
    assert read["family"] == read["turns"][0]["observation"] == visible_text(text)
    assert read["turns"][0]["pieces"] == [visible_text(text), visible_text(other)]
