"""Collections on disk: what is read equals what was written, and damage is named by its line."""

import json
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from made import made_trajectory
from rewardswap import whole
from rewardswap.errors import UnwrittenError
from rewardswap.prm.lines import line_of, read_line
from rewardswap.prm.store import Collection, read_collection, task_hashes, write_collection
from rewardswap.types import Task, Trajectory, Turn

ids = st.lists(st.integers(0, 2**40), max_size=4).map(lambda v: np.array(v, dtype=np.int64))
logprobs = st.floats(max_value=0, width=32, allow_nan=False, allow_infinity=False)
numbers = st.floats(allow_nan=False, allow_infinity=False)
unit = st.floats(0, 1)


turns = st.fixed_dictionaries(
    {
        "observation": st.text(max_size=8),
        "context_ids": ids,
        "extends": st.booleans(),
        "said": st.lists(st.tuples(st.integers(0, 2**40), logprobs), min_size=1, max_size=4),
        "action": st.text(max_size=8),
        "valid": st.booleans(),
        "truncated": st.booleans(),
        "reward": numbers,
        "state_key": st.text(max_size=4),
    }
)
episodes = st.fixed_dictionaries(
    {
        "task": st.tuples(*[st.text(max_size=4)] * 3),
        "index": st.integers(0, 99),
        "turns": st.lists(turns, min_size=1, max_size=3),
        "final_observation": st.text(max_size=8),
        "final_context_ids": ids,
        "outcome": unit,
        "success": st.booleans(),
        "stop": st.sampled_from(["done", "turn_limit", "token_limit"]),
        "policy_version": st.integers(0, 9),
        "task_score": unit,
    }
)


def episode_of(drawn: dict[str, Any]) -> Trajectory:
    turns = tuple(turn_of(turn) for turn in drawn["turns"])
    return Trajectory(**{**drawn, "task": Task(*drawn["task"]), "turns": turns})


def turn_of(drawn: dict[str, Any]) -> Turn:
    tokens, values = zip(*drawn["said"], strict=True)
    named = {name: value for name, value in drawn.items() if name != "said"}
    return Turn(
        **named,
        action_ids=np.array(tokens, dtype=np.int64),
        logprobs=np.array(values, dtype=np.float32),
    )


def same(one: Any, other: Any) -> bool:
    """Equal to the bit, in types too."""
    if isinstance(one, np.ndarray):
        return one.dtype == other.dtype and one.tobytes() == other.tobytes()
    if isinstance(one, Turn | Trajectory):
        return all(same(getattr(one, f.name), getattr(other, f.name)) for f in fields(one))
    if isinstance(one, tuple):
        return len(one) == len(other) and all(map(same, one, other))
    return type(one) is type(other) and repr(one) == repr(other)


@given(episodes, st.integers(0, 9))
@settings(max_examples=50)
def test_a_line_gives_an_equal_trajectory_back(drawn: dict[str, Any], share: int) -> None:
    trajectory = episode_of(drawn)
    line = line_of(trajectory, share)
    assert "\n" not in line and line.isascii()
    found, number = read_line(line)
    assert same(found, trajectory) and number == share


@given(st.data())
def test_any_changed_character_is_seen(data: st.DataObject) -> None:
    line = line_of(made_trajectory(), 3)
    place = data.draw(st.integers(0, len(line) - 1))
    other = data.draw(st.characters(codec="ascii").filter(lambda c: c != line[place]))
    with pytest.raises(ValueError):
        read_line(line[:place] + other + line[place + 1 :])


def some() -> Collection:
    kept = tuple(made_trajectory(task, n) for task in "ab" for n in range(2))
    about = {"policies": [{"model": "m"}], "tokenizer_sha256": "0", "environment": {}}
    return Collection(kept, (0, 0, 1, 1), about)


def test_a_folder_is_read_back(tmp_path: Path) -> None:
    write_collection(tmp_path / "data", some())
    found = read_collection(tmp_path / "data")
    assert same(found.trajectories, some().trajectories) and found.shares == (0, 0, 1, 1)
    assert found.manifest["policies"] == [{"model": "m"}] and found.manifest["lines"] == 4
    assert [path.name for path in tmp_path.iterdir()] == ["data"]


def test_an_empty_folder_is_taken_and_a_full_one_is_not(tmp_path: Path) -> None:
    (tmp_path / "data").mkdir()
    write_collection(tmp_path / "data", some())
    with pytest.raises(ValueError, match="data is not empty; give another --output"):
        write_collection(tmp_path / "data", some())
    (tmp_path / "file").touch()
    with pytest.raises(ValueError, match="file is a file"):
        write_collection(tmp_path / "file", some())
    with pytest.raises(ValueError, match="below cannot be written"):
        write_collection(tmp_path / "file" / "below", some())


def test_nothing_is_left_of_a_folder_that_could_not_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(path: Path) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(whole, "_sync", full)
    with pytest.raises(UnwrittenError, match="data cannot be written: No space left on device"):
        write_collection(tmp_path / "data", some())
    assert not list(tmp_path.iterdir())


def test_numbers_that_are_not_finite_are_not_kept(tmp_path: Path) -> None:
    first = made_trajectory("mug")
    broken = replace(first, turns=(replace(first.turns[0], reward=float("nan")),))
    with pytest.raises(ValueError, match="task 'mug', episode 0 cannot be kept"):
        write_collection(tmp_path / "data", Collection((broken,), (0,), {}))
    assert not list(tmp_path.iterdir())


def damage(path: Path, change: Any) -> None:
    path.write_bytes(change(path.read_bytes()))


def second_line(change: Any) -> Any:
    def changed(content: bytes) -> bytes:
        lines = content.split(b"\n")
        lines[1] = change(lines[1])
        return b"\n".join(lines)

    return changed


def without(name: str, part: str) -> Any:
    """A line whose checksum is right and which lacks a field."""

    def changed(line: bytes) -> bytes:
        from rewardswap.prm.lines import _check

        record = json.loads(line)
        del record["check"]
        inside = record["trajectory"]
        del (inside["turns"][0] if part == "turn" else inside)[name]
        return json.dumps({"check": _check(record), **record}).encode()

    return changed


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (second_line(lambda line: line[:40]), "line 2 of .* is cut or damaged"),
        (second_line(lambda line: b""), "line 2 of .* is cut or damaged"),
        (second_line(lambda line: b"[]"), "line 2 of .* it is no trajectory"),
        (second_line(lambda line: b"7"), "line 2 of .* it is no trajectory"),
        (second_line(lambda line: b"\xff" + line), "line 2 of .* is cut or damaged"),
        (second_line(lambda line: line.replace(b"family", b"famous")), "2 .* checksum is another"),
        (second_line(without("state_key", "turn")), "line 2 .* a turn has 'state_key' or lacks it"),
        (second_line(without("stop", "all")), "line 2 of .* a trajectory has 'stop' or lacks it"),
        (lambda text: b"".join(text.splitlines(True)[:3]), "ends behind line 3, .* counts 4"),
        (lambda text: text[:-30], "line 4 of .* is cut or damaged"),
        (lambda text: text[:-1], "has other lines than its manifest says"),
        (lambda text: b"".join(text.splitlines(True)[::-1]), "other lines than its manifest says"),
        (lambda text: b"", "ends behind line 0, its manifest counts 4"),
    ],
)
def test_damage_is_one_error_with_the_line(tmp_path: Path, change: Any, said: str) -> None:
    write_collection(tmp_path / "data", some())
    damage(tmp_path / "data" / "trajectories.jsonl", change)
    with pytest.raises(ValueError, match=said):
        read_collection(tmp_path / "data")


def test_what_is_no_collection_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"there is no folder .*nowhere; `rewardswap prm collect`"):
        read_collection(tmp_path / "nowhere")
    with pytest.raises(ValueError, match=r"there is no manifest\.json in"):
        read_collection(tmp_path)
    for content, said in (
        ("{", "cannot be read"),
        ("[]", "holds no table"),
        ("{}", "has format None, this version reads 1"),
        ('{"format": 1}', r"manifest\.json lacks 'lines'; collect anew"),
    ):
        (tmp_path / "manifest.json").write_text(content)
        with pytest.raises(ValueError, match=said):
            read_collection(tmp_path)


def test_a_collection_without_its_trajectories_is_refused(tmp_path: Path) -> None:
    write_collection(tmp_path / "data", some())
    (tmp_path / "data" / "trajectories.jsonl").unlink()
    with pytest.raises(ValueError, match=r"trajectories\.jsonl cannot be read: No such file"):
        read_collection(tmp_path / "data")


def test_tasks_are_known_by_hashes() -> None:
    # sha256 of "a": ca978112ca1bbdca...
    assert task_hashes(["a", "a"]) == ["ca978112ca1bbdca"]
    assert task_hashes(["b", "a"]) == task_hashes(["a", "b"]) and len(task_hashes("ab")) == 2
