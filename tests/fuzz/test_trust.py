"""Whom the library trusts: no code of files, no names that lead elsewhere, no secrets recorded."""

import json
import pickle
from dataclasses import replace
from pathlib import Path

import pytest
from fuzzed_models import CODE, MARKER, Planted

from commands import refused
from rewardswap.checks import folder_name
from rewardswap.models.loading import load_language_model
from rewardswap.options import LONGEST_LINE, one_line
from rewardswap.plan.shapes import read_blueprint
from rewardswap.recipes import RECIPES
from rewardswap.redaction import without_secrets
from rewardswap.rollout.connection import Connection
from rewardswap.run_folder import RunFolder
from rewardswap.settings import read_run, write_run
from walking import save_walker

SOURCE = Path(__file__).parents[2] / "src" / "rewardswap"
STRANGE_NAMES = (
    "../../x",
    "..",
    ".",
    "/tmp/x",
    "a/b",
    "a\\b",
    "a\0b",
    "x" * 300,
    "con",
    "nul.txt",
    "com1",
    "a.",
    "-a",
    "A",
    "a b",
    "\x1b[31m",
    "é",
)


@pytest.mark.parametrize("name", STRANGE_NAMES, ids=ascii)
def test_names_that_become_folders_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match="cannot name a folder everywhere"):
        folder_name("recipe", name)
    with pytest.raises(ValueError, match="recipe"):
        replace(RECIPES["demo"](), recipe=name)


def test_the_names_that_ship_are_taken() -> None:
    for name in RECIPES:
        folder_name("recipe", name)
    folder_name("arm", "x" * 100)


def test_a_run_file_cannot_name_another_folder(tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    write_run(RECIPES["demo"](), tmp_path / "config.toml")
    text = (tmp_path / "config.toml").read_text().replace('"demo"', '"../../x"')
    (tmp_path / "config.toml").write_text(text)
    assert "recipe '../../x' cannot name a folder" in refused(capsys, "train", "config.toml")
    assert "'../../x'" in refused(capsys, "train", "demo", "--recipe", "../../x")
    assert [path.name for path in tmp_path.iterdir()] == ["config.toml"]


@pytest.mark.parametrize("word", ["a\0b", "\udcff", "\ud800"])
def test_words_that_are_no_text_are_refused(word: str, capsys) -> None:
    said = refused(capsys, "train", "demo", "--output", word)
    assert "holds NUL or bytes that are no UTF-8" in said


def test_text_that_is_none_is_refused_in_a_file(tmp_path) -> None:
    write_run(RECIPES["demo"](), tmp_path / "config.toml")
    text = (tmp_path / "config.toml").read_text().replace('output = "none"', 'output = "a\\u0000b"')
    (tmp_path / "config.toml").write_text(text)
    with pytest.raises(ValueError, match=r"output .* holds NUL"):
        read_run(tmp_path / "config.toml")


@pytest.mark.parametrize(
    "words",
    [
        ("train", "x" * 300 + ".toml"),
        ("report", "x" * 300, "--output", "y"),
        ("prm", "eval", "x" * 300, "--reward", "progress"),
        ("experiment", "x" * 300 + ".toml"),
    ],
    ids=lambda words: words[0],
)
def test_paths_that_the_system_refuses_are_one_line(words, tmp_path, monkeypatch, capsys) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(SystemExit) as stop:
        from rewardswap.cli import main

        main(words)
    assert stop.value.code in (1, 2)
    said = capsys.readouterr().err
    assert said.startswith("rewardswap: ") and said.count("\n") == 1
    assert "too long" in said.lower()


def test_an_error_is_never_longer_than_a_screen() -> None:
    assert one_line("x" * LONGEST_LINE) == "x" * LONGEST_LINE
    said = one_line("a" + "x" * 10**6 + "z")
    assert len(said) < LONGEST_LINE + 50
    assert said.startswith("ax") and said.endswith("xz")
    assert "[... 999002 characters ...]" in said


@pytest.fixture
def model(tmp_path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return save_walker(tmp_path / "model")


@pytest.mark.parametrize("name", ["pytorch_model.bin", "model.pt", "weights.pkl", "x.ckpt"])
def test_pickled_weights_are_refused_with_the_way_out(name: str, model: Path) -> None:
    (model / "model.safetensors").unlink()
    (model / name).write_bytes(pickle.dumps(Planted()))
    with pytest.raises(ValueError, match=f"{name} is a pickle.*; convert it to safetensors"):
        load_language_model(str(model))
    assert not Path(MARKER).exists()


def test_a_pickle_beside_other_tensors_is_not_read(model: Path) -> None:
    (model / "model.safetensors").rename(model / "other.safetensors")
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Planted()))
    with pytest.raises(ValueError, match=r"no file named model\.safetensors"):
        load_language_model(str(model))
    assert not Path(MARKER).exists()


def test_a_pickle_beside_safe_weights_is_not_read(model: Path) -> None:
    (model / "pytorch_model.bin").write_bytes(pickle.dumps(Planted()))
    assert load_language_model(str(model)).action_tokens
    assert not Path(MARKER).exists()


def test_a_tokenizer_that_cannot_be_used_is_refused(model: Path) -> None:
    table = json.loads((model / "tokenizer_config.json").read_text())
    table["model_max_length"] = {"none": 1}
    (model / "tokenizer_config.json").write_text(json.dumps(table))
    with pytest.raises(ValueError, match="model cannot be loaded"):
        load_language_model(str(model))


def planted(model: Path, **also: object) -> None:
    (model / "evil.py").write_text(CODE + "class Evil:\n    pass\n")
    table = json.loads((model / "config.json").read_text())
    table["auto_map"] = {"AutoConfig": "evil.Evil", "AutoModelForCausalLM": "evil.Evil"}
    (model / "config.json").write_text(json.dumps({**table, **also}))


@pytest.mark.parametrize("read", [load_language_model, read_blueprint])
def test_code_of_a_model_folder_is_never_run(read, model: Path, monkeypatch) -> None:
    asked: list[str] = []

    def answer(prompt: str = "") -> str:
        asked.append(prompt)
        return "y"

    monkeypatch.setattr("builtins.input", answer)
    planted(model)  # a kind that transformers has itself: its own class is taken
    read(str(model))
    planted(model, model_type="evil", trust_remote_code=True)
    with pytest.raises(ValueError, match=r"needs code of its own .* never run; give a model"):
        read(str(model))
    assert not Path(MARKER).exists()
    assert not asked, "a person was asked whether the code may run"


def test_no_reader_of_a_folder_may_run_its_code() -> None:
    """Every `from_pretrained` of a whole folder is told so; generation configs have no code."""
    for path in SOURCE.rglob("*.py"):
        for line in path.read_text().splitlines():
            if "Auto" in line and "from_pretrained(" in line and "**place" not in line:
                inside = line.rstrip()[-1] == "("
                assert inside or "**TRUSTED" in line, f"{path.name}: {line}"
            assert "trust_remote_code=True" not in line, path


def test_nothing_listens_and_nothing_is_unpickled() -> None:
    words = ("import pickle", "torch.load(", "numpy.load(", "np.load(", "import socketserver")
    words += ("http.server", ".listen(", "import marshal", "import shelve", "shell=True")
    for path in SOURCE.rglob("*.py"):
        text = path.read_text()
        if path.name in ("worker.py", "workers.py"):  # a world, from this process to its own child
            text = text.replace("import pickle", "")
        if path == SOURCE / "inspection" / "check.py":  # whether a world could be sent: never read
            assert "pickle.load" not in text and "Unpickler" not in text
            text = text.replace("import pickle", "")
        if path == SOURCE / "view" / "server.py":  # on loopback, behind a token: tests/view
            assert '"127.0.0.1"' in text
            text = text.replace("http.server", "")
        assert not [word for word in words if word in text], path


def test_secrets_of_the_environment_are_not_recorded() -> None:
    environment = {"REWARDSWAP_SERVER_KEY": "s3cr3t-value", "HF_TOKEN": "abc", "HOME": "/home/me"}
    words = ["rewardswap", "train", "demo", "--rollout.url", "http://me:pw@host/?x", "s3cr3t-value"]
    said = without_secrets(words, environment)
    assert said == "rewardswap train demo --rollout.url http://***@host/?x ***"


@pytest.mark.parametrize(
    ("word", "hidden"),
    [
        ("http://h/?api_key=abc&x=1", "http://h/?***&x=1"),
        ("--token=abcdef", "--***"),
        ("hf_" + "a" * 30, "***"),
        ("sk-proj-" + "b" * 30, "***"),
        ("--policy.action-tokens=12", "--policy.action-tokens=12"),
        ("--batch.tasks=8", "--batch.tasks=8"),
    ],
)
def test_what_is_shaped_as_a_secret_is_not_recorded(word: str, hidden: str) -> None:
    assert without_secrets([word], {}) == hidden


def test_a_run_folder_holds_no_secret(tmp_path, monkeypatch) -> None:
    monkeypatch.setenv("SOME_API_KEY", "very-secret-0123")
    monkeypatch.setattr("sys.argv", ["rewardswap", "train", "x/very-secret-0123", "http://a:b@c/"])
    folder = RunFolder(tmp_path / "run")
    folder.write_environment()
    folder.close()
    for path in (tmp_path / "run").rglob("*.*"):
        assert b"very-secret-0123" not in path.read_bytes(), path
        assert b"a:b@" not in path.read_bytes(), path


@pytest.mark.parametrize("url", ["http://me:pw@127.0.0.1:1", "http://127.0.0.1:1/?token=abc"])
def test_a_server_address_that_would_be_recorded_holds_no_secret(url: str) -> None:
    with pytest.raises(ValueError, match="holds credentials or a query") as refusal:
        Connection(url, timeout=1.0, retries=0, at_once=1)
    assert "pw" not in str(refusal.value) and "abc" not in str(refusal.value)
