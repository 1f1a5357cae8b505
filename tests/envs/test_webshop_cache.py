"""The index of a large shop is kept in a cache folder, and what is wrong there is never used."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from small_shop import ITEMS, NAMES, NOUNS, RECORDS, record, write_folder

from rewardswap.envs.webshop import cache, load_catalogue
from rewardswap.envs.webshop.cache import cache_folder
from rewardswap.envs.webshop.progress import watched
from rewardswap.envs.webshop.search import SearchIndex

QUERIES = ("blue mug", "linen", "mug number 3", "care", "garden")


@pytest.fixture
def data(tmp_path: Path) -> Path:
    folder = tmp_path / "data"
    folder.mkdir()
    return write_folder(folder)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The cache folder, with every shop large enough for it."""
    monkeypatch.setattr(cache, "KEPT_FROM", 1)
    monkeypatch.setenv("REWARDSWAP_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def builds(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """Grows with every index that is built."""
    counted: list[int] = []
    build = SearchIndex.build

    def counting(documents: object) -> SearchIndex:
        counted.append(1)
        return build(documents)

    monkeypatch.setattr(SearchIndex, "build", counting)
    return counted


def found(data: Path, **settings: object) -> list[list[str]]:
    catalogue = load_catalogue(data, **settings)
    return [catalogue.search(query) for query in QUERIES]


def test_a_small_shop_leaves_no_file(data: Path, tmp_path: Path, builds: list[int]) -> None:
    found(data, cache=tmp_path / "cache")
    assert not (tmp_path / "cache").exists()
    assert len(builds) == 1


def test_the_index_is_built_once(data: Path, kept: Path, builds: list[int]) -> None:
    before = sorted(path.name for path in data.iterdir())
    first = found(data)
    assert found(data) == first
    assert len(builds) == 1
    assert [path.suffix for path in kept.iterdir()] == [".index"]
    assert sorted(path.name for path in data.iterdir()) == before


def test_it_is_the_same_from_the_cache_and_without(data: Path, kept: Path) -> None:
    expected = found(data, cache="off")
    assert not kept.exists()
    assert found(data) == expected
    assert found(data) == expected


def test_an_index_of_other_products_is_built_anew(
    data: Path, kept: Path, builds: list[int]
) -> None:
    found(data)
    changed = [record("B000000077", "Garden Gnome"), *RECORDS]
    (data / ITEMS).write_text(json.dumps(changed))
    (data / NOUNS).write_text(json.dumps({**NAMES, "B000000077": ["gnome"]}))
    assert "B000000077" in load_catalogue(data).search("garden gnome")
    assert len(builds) == 2
    assert len(list(kept.iterdir())) == 1


def test_two_folders_do_not_share_a_file(data: Path, kept: Path, tmp_path: Path) -> None:
    other = tmp_path / "other"
    other.mkdir()
    write_folder(other)
    found(data)
    found(other)
    assert len(list(kept.iterdir())) == 2


def test_every_flipped_byte_is_noticed(data: Path, kept: Path) -> None:
    found(data)
    (path,) = kept.iterdir()
    content = path.read_bytes()
    right = SearchIndex.build(
        (asin, product.contents) for asin, product in load_catalogue(data).products.items()
    )
    answers = [right.search(query) for query in QUERIES]
    unread = 0
    for place in range(0, len(content)):
        wrong = bytearray(content)
        wrong[place] ^= 0x10
        path.write_bytes(wrong)
        index = SearchIndex.load(path, right.fingerprint)
        if index is not None:  # a byte between two arrays
            unread += 1
            assert [index.search(query) for query in QUERIES] == answers
    assert unread < 12 * 64


@pytest.mark.parametrize("damage", ["cut", "longer", "empty", "flipped", "folder", "text"])
def test_a_damaged_index_is_replaced(
    data: Path, kept: Path, builds: list[int], damage: str
) -> None:
    expected = found(data)
    (path,) = kept.iterdir()
    content = path.read_bytes()
    wrong = {
        "cut": content[:-1],
        "longer": content + b"\0",
        "empty": b"",
        "flipped": content[:-5] + bytes([content[-5] ^ 1]) + content[-4:],
        "text": b"not an index",
    }
    if damage == "folder":
        path.unlink()
        path.mkdir()
        with pytest.warns(UserWarning, match=r"not kept in .*Is a directory"):
            assert found(data) == expected
        return
    path.write_bytes(wrong[damage])
    assert found(data) == expected
    assert (len(builds), path.read_bytes()) == (2, content)


def test_a_folder_that_cannot_be_made_is_a_warning(data: Path, kept: Path) -> None:
    kept.write_text("in the way")
    with pytest.warns(UserWarning, match="not kept") as caught:
        assert found(data) == found(data, cache="off")
    (warning,) = caught
    assert str(kept) in str(warning.message) and "REWARDSWAP_CACHE" in str(warning.message)
    assert kept.read_text() == "in the way"


LIMITED = """
import resource, sys, warnings
from rewardswap.envs.webshop import cache, load_catalogue
cache.KEPT_FROM = 1
resource.setrlimit(resource.RLIMIT_FSIZE, (2000, 2000))
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(load_catalogue(sys.argv[1]).search("blue mug")[0])
print(*[w.message for w in caught])
"""


def test_a_full_disk_is_a_warning(data: Path, tmp_path: Path) -> None:
    """The system refuses to let a file grow: the draft goes, the shop works."""
    folder = tmp_path / "cache"
    said = subprocess.run(
        [sys.executable, "-c", LIMITED, str(data)],
        env={**os.environ, "REWARDSWAP_CACHE": str(folder)},
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    assert said.startswith("B000000001\nthe search index is not kept in ")
    assert "File too large" in said
    assert list(folder.iterdir()) == []


def test_a_stopped_write_leaves_nothing(
    data: Path, kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def stop(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("os.replace", stop)
    with pytest.raises(KeyboardInterrupt):
        found(data)
    assert list(kept.iterdir()) == []


def test_which_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("REWARDSWAP_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    if sys.platform == "linux":
        assert cache_folder(None) == tmp_path / "rewardswap"
    monkeypatch.setenv("REWARDSWAP_CACHE", "~/mine")
    assert cache_folder(None) == Path.home() / "mine"
    assert cache_folder("here") == Path("here")
    assert cache_folder("off") is None
    assert cache_folder(Path("off")) == Path("off")
    monkeypatch.setenv("REWARDSWAP_CACHE", "off")
    assert cache_folder(None) is None
    assert cache_folder(tmp_path) == tmp_path


def test_a_bar_is_for_terminals(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("FORCE_COLOR", "TTY_COMPATIBLE"):
        monkeypatch.delenv(name, raising=False)
    assert list(watched(iter("abc"), "things", 3)) == ["a", "b", "c"]
    captured = capsys.readouterr()
    assert (captured.out, captured.err) == ("", "")
    monkeypatch.setenv("FORCE_COLOR", "1")  # to rich, this makes anything a terminal
    assert list(watched(iter("abc"), "things", 3)) == ["a", "b", "c"]
    captured = capsys.readouterr()
    assert captured.out == "" and "things" in captured.err and "100%" in captured.err
