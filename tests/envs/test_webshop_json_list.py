"""A large JSON list is read like one read at once, wherever the pieces that are read end."""

import json
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import given
from hypothesis import strategies as st

from rewardswap.envs.webshop import json_list
from rewardswap.envs.webshop.json_list import is_list, read_elements

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)
objects = st.lists(st.dictionaries(st.text(max_size=5), values, max_size=3), max_size=6)

TEXTS = [
    '[{"a": "é›💯"}, {"b": [1, {"c": null}]}]',
    ' \n[ {} ,\t{"x": "\\u203a\\"]}"}\r\n] \n',
    "[]",
    "[ ]  ",
]
WRONG = [
    "[",
    "[{}",
    "[{},",
    "[{},]",
    "[{} {}]",
    "[,]",
    "[{}]]",
    "[{}] x",
    '[{"a": "cut',
    '[{"a": 1}, {"b" 2}]',
    "[{}}",
    "[nope]",
]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "list.json"


@pytest.mark.parametrize("size", [1, 2, 3, 7, 2**20])
def test_equal_to_reading_at_once(size: int, path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(json_list, "CHUNK", size)
    for text in TEXTS:
        path.write_text(text, encoding="utf-8")
        assert list(read_elements(path)) == json.loads(text)


@pytest.mark.parametrize("size", [1, 4, 2**20])
@pytest.mark.parametrize("text", WRONG)
def test_wrong_where_reading_at_once_is_wrong(
    text: str, size: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_list, "CHUNK", size)
    path.write_text(text)
    with pytest.raises(json.JSONDecodeError) as at_once:
        json.loads(text)
    with pytest.raises(json.JSONDecodeError) as caught:
        list(read_elements(path))
    assert abs(caught.value.pos - at_once.value.pos) <= 1


@pytest.mark.parametrize("size", [1, 5, 2**20])
def test_the_place_of_what_is_no_text(
    size: int, path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(json_list, "CHUNK", size)
    for before, wrong in (('[{"a": "é›', b"\xff"), ('[{"💯": "', b"\xe2\x80")):
        path.write_bytes(before.encode() + wrong)
        with pytest.raises(UnicodeDecodeError) as caught:
            list(read_elements(path))
        assert caught.value.start == len(before.encode())


@given(objects, st.integers(1, 40))
def test_any_list_comes_back(listed: list[object], size: int) -> None:
    with TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setattr(json_list, "CHUNK", size)
        path = Path(folder, "list.json")
        path.write_text(json.dumps(listed, ensure_ascii=False), encoding="utf-8", newline="")
        assert list(read_elements(path)) == listed


def test_only_what_is_asked_for_is_read(path: Path) -> None:
    path.write_text("[" + '{"a": "' + "x" * 10 + '"},' * 400_000 + "broken")
    first = next(iter(read_elements(path)))
    assert first == {"a": "x" * 10}


def test_what_begins_like_a_list(path: Path) -> None:
    for text, listed in (("[", True), (" \n[1]", True), ("{}", False), ("", False), ("x[", False)):
        path.write_text(text)
        assert is_list(path) == listed
