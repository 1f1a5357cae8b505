"""Finding nouns with a stand-in for spaCy: what is kept of a name, the file, what is refused."""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from types import SimpleNamespace

import pytest
from small_shop import NOUNS, RECORDS, write_folder

from rewardswap.envs.webshop import load_catalogue
from rewardswap.envs.webshop.nouns import Tagger, load_tagger, tag_nouns, write_nouns


@dataclass
class Token:
    text: str
    pos_: str


def pipe(texts: Iterable[str]) -> Iterator[list[Token]]:
    """Texts are words with their tags: "Blue/ADJ Mug/NOUN"."""
    for text in texts:
        pairs = (word.rpartition("/") for word in text.split())
        yield [Token(word, tag) for word, _, tag in pairs]


TAGGER = Tagger(pipe, "en_made", "1.2.3", "3.8.18")


def test_nouns_and_names_are_kept_lower_case_with_duplicates() -> None:
    names = {
        "b": "Mug/NOUN for/ADP ACME/PROPN mug/NOUN Red/ADJ 12/NUM",
        "a": "",
        "c": "Go/VERB ÉTÉ/PROPN O'Neill/PROPN %/NOUN x/X",
    }
    assert tag_nouns(names, TAGGER) == {
        "b": ["mug", "acme", "mug"],
        "a": [],
        "c": ["été", "o'neill", "%"],
    }


def test_a_model_without_tags_is_refused() -> None:
    with pytest.raises(ValueError, match=r"en_made finds no noun in 2 names; .* en_core_web_sm"):
        tag_nouns({"a": "Blue/ Mug/", "b": "Red/ADJ"}, TAGGER)


def test_a_model_that_loses_a_name_is_no_table() -> None:
    losing = Tagger(lambda texts: pipe(list(texts)[:-1]), "en_made", "1", "3")
    with pytest.raises(ValueError):
        tag_nouns({"a": "Mug/NOUN", "b": "Shirt/NOUN"}, losing)


def test_the_table_says_what_made_it_and_is_read_back(tmp_path: Path) -> None:
    write_folder(tmp_path)
    (tmp_path / NOUNS).unlink()
    nouns = {str(entry["asin"]): ["mug", "mug"] for entry in RECORDS}
    path = write_nouns(tmp_path, nouns, TAGGER)
    assert path == tmp_path / "name_nouns_en_made-1.2.3.json"
    assert load_catalogue(tmp_path).nouns_source == "spaCy 3.8.18, en_made 1.2.3"
    table = json.loads(path.read_text())
    assert table == {"_source_of_nouns": "spaCy 3.8.18, en_made 1.2.3", **nouns}


def test_a_failed_write_leaves_the_old_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = write_nouns(tmp_path, {"a": ["old"]}, TAGGER)
    before = path.read_bytes()

    def full(_: int) -> None:
        raise OSError("disk full")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(OSError, match="disk full"):
        write_nouns(tmp_path, {"a": ["new"]}, TAGGER)
    assert list(tmp_path.iterdir()) == [path]
    assert path.read_bytes() == before


def fake_spacy(monkeypatch: pytest.MonkeyPatch, load: object) -> None:
    module = SimpleNamespace(load=load, __version__="3.8.18")
    monkeypatch.setitem(sys.modules, "spacy", module)


def test_the_versions_are_those_of_the_loaded_model(monkeypatch: pytest.MonkeyPatch) -> None:
    asked = []

    def load(name: str, exclude: Iterable[str]) -> object:
        asked.append((name, set(exclude)))
        meta = {"lang": "en", "name": "core_web_sm", "version": "3.8.0"}
        return SimpleNamespace(pipe=pipe, meta=meta)

    fake_spacy(monkeypatch, load)
    tagger = load_tagger()
    assert asked == [("en_core_web_sm", {"ner", "lemmatizer"})]
    assert tagger.source == "spaCy 3.8.18, en_core_web_sm 3.8.0"
    assert tagger.file_name == "name_nouns_en_core_web_sm-3.8.0.json"
    assert tag_nouns({"a": "Mug/NOUN"}, tagger) == {"a": ["mug"]}


def test_a_missing_model_and_missing_spacy_are_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def load(name: str, exclude: Iterable[str]) -> object:
        raise OSError(f"[E050] Can't find model {name!r}.")

    fake_spacy(monkeypatch, load)
    with pytest.raises(ValueError, match=r"`python -m spacy download en_core_web_sm`$"):
        load_tagger()
    monkeypatch.setitem(sys.modules, "spacy", None)
    with pytest.raises(ValueError, match=r"`pip install 'rewardswap\[webshop\]'`$"):
        load_tagger()
