"""`rewardswap data`: what it writes, and its errors of one line with exit code 2."""

import json
import sys
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace

import pytest

from rewardswap.cli import main
from rewardswap.envs.webshop import load_catalogue
from rewardswap.envs.webshop.synthetic import synthetic_catalogue


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The one line that the command says when it exits with code 2."""
    with pytest.raises(SystemExit) as stop:
        main(["data", *words])
    captured = capsys.readouterr()
    assert stop.value.code == 2
    assert captured.out == "" and captured.err.count("\n") == 1, captured.err
    return captured.err.removeprefix("rewardswap: ").removesuffix("\n")


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    """A generated shop's folder."""
    folder = tmp_path / "shop"
    main(["data", "generate", "webshop", "--output", str(folder), "--products=60", "--seed=4"])
    return folder


@pytest.fixture
def model(monkeypatch: pytest.MonkeyPatch) -> None:
    """A stand-in for spaCy whose only nouns are the last words of names."""

    def pipe(texts: object) -> object:
        for text in texts:
            *others, last = text.split()
            tokens = [SimpleNamespace(text=word, pos_="ADJ") for word in others]
            yield [*tokens, SimpleNamespace(text=last, pos_="NOUN")]

    meta = {"lang": "en", "name": "made", "version": "1.0"}
    nlp = SimpleNamespace(pipe=pipe, meta=meta)
    module = SimpleNamespace(load=lambda name, exclude: nlp, __version__="3.8")
    monkeypatch.setitem(sys.modules, "spacy", module)


def test_a_generated_shop_is_read_like_an_official_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shop = tmp_path / "shop"
    main(["data", "generate", "webshop", f"--output={shop}", "--products=60", "--seed=4"])
    assert capsys.readouterr().out == f"{shop}: 60 products, seed 4\n"
    read, made = load_catalogue(shop, seed=4), synthetic_catalogue(4, 60)
    assert read.goals == made.goals
    assert (read.prices, read.nouns_source) == (made.prices, made.nouns_source)
    goal = read.goals[0]
    product = read.products[goal["asin"]]
    options = goal["goal_options"]
    assert read.reward(product, goal, read.prices[product.asin], options) == 1.0


@pytest.mark.usefixtures("model")
def test_nouns_are_written_into_the_folder(shop: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert refused(capsys, "prepare", "webshop", "--data", str(shop)) == (
        f"{shop}: has nouns in name_nouns.json already; remove that file first"
    )
    (shop / "name_nouns.json").unlink()
    for _ in range(2):  # its own table it makes anew
        main(["data", "prepare", "webshop", "--data", str(shop)])
        path = shop / "name_nouns_en_made-1.0.json"
        said = f"{path}: nouns of 60 names, found by spaCy 3.8, en_made 1.0\n"
        assert capsys.readouterr().out == said
    catalogue = load_catalogue(shop)
    assert catalogue.nouns_source == "spaCy 3.8, en_made 1.0"
    table = json.loads(path.read_text())
    for asin, product in catalogue.products.items():
        assert table[asin] == [product.name.split()[-1].lower()]


@pytest.mark.usefixtures("model")
def test_a_folder_that_cannot_be_written_to_is_said(
    shop: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (shop / "name_nouns.json").unlink()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    said = refused(capsys, "prepare", "webshop", "--data", str(shop))
    assert said == f"{shop} cannot be written to (No space left on device)"
    assert not list(shop.glob("name_nouns*"))


@pytest.mark.skipif(find_spec("spacy") is not None, reason="spaCy is installed")
def test_without_spacy_the_way_to_get_it_is_said(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "prepare", "webshop", "--data", str(shop))
    assert said.endswith("get it with `pip install 'rewardswap[webshop]'`")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["prep"], "unknown data command 'prep'; did you mean 'prepare'?"),
        (["prepare"], "needs the name of an environment: webshop"),
        (["generate", "webshp"], "unknown environment 'webshp'; did you mean 'webshop'?"),
        (["prepare", "webshop"], "--data is missing; give it a value"),
        (["prepare", "webshop", "--data", "nowhere"], "nowhere: is no folder"),
        (
            ["prepare", "webshop", "--data=.", "--size=tiny"],
            "size must be one of auto, small, full",
        ),
        (["prepare", "webshop", "--dta=."], "unknown key '--dta'; did you mean '--data'?"),
        (["generate", "webshop", "--output=new", "--products=0"], "products is 0, expected 1 to"),
        (["generate", "webshop", "--output=new", "--products=x"], "must be a whole number"),
        (["generate", "webshop", "--output=/dev/null/x"], "/dev/null/x"),
    ],
)
def test_mistakes(
    words: list[str],
    said: str,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.chdir(tmp_path)
    assert said in refused(capsys, *words)


def test_a_folder_that_has_files_is_not_generated_into(
    shop: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "no empty folder" in refused(capsys, "generate", "webshop", "--output", str(shop))


def test_help(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--help"]):
        main(["data", *words])
        lines = capsys.readouterr().out.splitlines()
        assert "usage: rewardswap data prepare webshop --data FOLDER" in lines
        assert max(map(len, lines)) < 80
    with pytest.raises(SystemExit) as stop:
        main(["data", "prepare", "webshop", "--help"])
    assert stop.value.code == 0
    assert "--size auto | small | full  [auto]" in capsys.readouterr().out
