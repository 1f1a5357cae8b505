"""Model folders: damaged files, and files whose reading would run code of theirs."""

import json
import pickle
import shutil
from collections.abc import Callable
from functools import cache
from pathlib import Path
from random import Random
from tempfile import TemporaryDirectory
from typing import Any

from fuzzed_values import as_json, damaged, spoiled, text, value

from rewardswap.models.loading import load_language_model
from rewardswap.plan.shapes import read_blueprint
from rewardswap.rollout.context import ChatContext
from walking import WORLD, save_walker

MARKER = "owned"
"""File that planted code would make in the working folder."""
CODE = f'from pathlib import Path\nPath("{MARKER}").touch()\n'
SHARDS = {"metadata": {}, "weight_map": {"lm_head.weight": "../../elsewhere.safetensors"}}


class Planted:
    """An object whose pickle makes the marker file when it is read."""

    def __reduce__(self) -> tuple[Any, ...]:
        return exec, (CODE,)


@cache
def _files() -> dict[str, bytes]:
    with TemporaryDirectory(dir=".") as name:
        save_walker(Path(name))
        return {path.name: path.read_bytes() for path in Path(name).iterdir()}


def _planted_code(folder: Path, random: Random) -> None:
    """Code beside the model, and configurations that name it."""
    (folder / "evil.py").write_text(CODE + "class Evil:\n    pass\n")
    for name, classes in (
        ("config.json", ("AutoConfig", "AutoModelForCausalLM")),
        ("tokenizer_config.json", ("AutoTokenizer",)),
    ):
        table = json.loads((folder / name).read_bytes())
        table["auto_map"] = {kind: "evil.Evil" for kind in classes}
        if random.random() < 0.5:
            table |= {"model_type": "evil", "architectures": ["Evil"], "tokenizer_class": "Evil"}
        if random.random() < 0.3:
            table["trust_remote_code"] = True
        (folder / name).write_bytes(as_json(table))


def _planted_pickle(folder: Path, random: Random) -> None:
    """Weights as a pickle, beside or in place of the safe ones."""
    name = random.choice(("pytorch_model.bin", "model.pt", "weights.pkl"))
    (folder / name).write_bytes(pickle.dumps(Planted()))
    if random.random() < 0.8:
        (folder / "model.safetensors").unlink()


def _shards(folder: Path, random: Random) -> None:
    """An index that leads out of the folder, or is spoiled."""
    content = SHARDS if random.random() < 0.5 else {"weight_map": value(random)}
    (folder / "model.safetensors.index.json").write_bytes(as_json(content))
    if random.random() < 0.7:
        (folder / "model.safetensors").unlink()


def _template(folder: Path, random: Random) -> None:
    """A chat template that is strange, or reaches for Python's insides."""
    inside = "{{ ''.__class__.__mro__[1].__subclasses__() }}"
    endless = "{% for i in range(10**9) %}x{% endfor %}"
    said = random.choice((inside, endless, "{% if %}", "{{ messages[0].content }}", text(random)))
    (folder / "chat_template.jinja").write_bytes(said.encode("utf-8", "surrogatepass"))


def _adapter(folder: Path, random: Random) -> None:
    (folder / "adapter_config.json").write_bytes(as_json(value(random)))


def _one_file(folder: Path, random: Random) -> None:
    """One file that is gone, damaged or changed inside."""
    path = folder / random.choice(sorted(_files()))
    if random.random() < 0.1:
        path.unlink()
    elif path.suffix == ".json" and random.random() < 0.8:
        path.write_bytes(spoiled(json.loads(path.read_bytes()), random))
    else:
        path.write_bytes(damaged(path.read_bytes(), random))


WAYS: tuple[Callable[[Path, Random], None], ...] = (
    _one_file,
    _one_file,
    _one_file,
    _one_file,
    _planted_code,
    _planted_pickle,
    _shards,
    _template,
    _adapter,
)


def model_folders(random: Random, folder: Path) -> None:
    """A small model's folder, spoiled; if it is taken, its template words an observation."""
    model = folder / "model"
    shutil.rmtree(model, ignore_errors=True)
    model.mkdir()
    for name, content in _files().items():
        (model / name).write_bytes(content)
    random.choice(WAYS)(model, random)
    try:
        if random.random() < 0.2:
            read_blueprint(str(model))
        found = load_language_model(str(model))
        context = ChatContext(found.tokenizer, "", found.end_token_ids)
        environment = WORLD.make()
        context.conversation(environment.reset(WORLD.tasks("train")[0]))
        assert found.action_tokens >= 1 and found.wording in ("full", "short")
    finally:
        assert not (folder / MARKER).exists(), "code of the folder was run"
