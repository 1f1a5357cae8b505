"""The help of every command: one shape, a screen first, then every key with its docstring."""

import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from rewardswap.cli import COMMANDS, main
from rewardswap.completion.settings import Key, command_keys
from rewardswap.described import WIDTH, field_texts, indented, shown
from rewardswap.env_config import ENVIRONMENTS
from rewardswap.help import showing
from rewardswap.help.settings import LEGEND, settings_text, takes
from rewardswap.help.shape import SCREEN_LINES, Help
from rewardswap.help.texts import GROUPS, HELPS
from rewardswap.recipes import RECIPES
from rewardswap.version import VERSION

Keys = Mapping[str, Mapping[str, Key]]
KEY = re.compile(r"^  (--[a-z0-9.-]+) ")


@pytest.fixture(scope="module")
def keys() -> Keys:
    """All keys of each command, whatever method and environment are chosen."""
    return command_keys()


def printed(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    """What the command prints when it ends well."""
    capsys.readouterr()
    try:
        main(words)
    except SystemExit as stop:
        assert not stop.code
    return capsys.readouterr().out


def parts(text: str) -> tuple[list[str], list[str]]:
    """The lines of the first screen, and those of the settings."""
    first, _, rest = text.partition(indented(LEGEND, 2, first=0))
    return first.rstrip("\n").splitlines(), rest.splitlines()


def test_every_command_has_help_and_a_group() -> None:
    named = {name for name in HELPS if " " not in name}
    assert named >= COMMANDS.keys()
    assert sum(map(len, GROUPS.values())) == len(HELPS)
    for name in HELPS:
        assert name.split()[0] in named


@pytest.mark.parametrize("name", [name for name in HELPS if name.split()[0] in COMMANDS])
def test_help_is_a_screen_and_then_every_setting(
    name: str, keys: Keys, capsys: pytest.CaptureFixture[str]
) -> None:
    screen, settings = parts(printed(capsys, *name.split(), "--help"))
    assert len(screen) <= SCREEN_LINES
    assert max(map(len, [*screen, *settings])) < WIDTH
    assert screen[0].endswith(".")
    assert screen[2].startswith(f"usage: rewardswap {name}")
    assert len(HELPS[name].examples) == 3
    shown_keys = [found[1] for line in settings if (found := KEY.match(line))]
    assert len(shown_keys) == len(set(shown_keys))
    assert set(shown_keys) <= keys.get(name, {}).keys()  # what a shell completes is no older
    assert bool(shown_keys) == (name in keys)
    for number, line in enumerate(settings):
        if KEY.match(line):
            about = settings[number + 1 : number + 3]
            assert "[" in "".join([line, *about])  # its default
            assert about[0].startswith("      ")  # its docstring


def test_every_setting_has_a_docstring(keys: Keys) -> None:
    found = [(name, key) for name, own in keys.items() for key in own if not own[key].text]
    assert found == []


@pytest.mark.parametrize("about", HELPS.values(), ids=lambda about: about.command)
def test_examples_name_commands_recipes_and_keys_that_exist(about: Help, keys: Keys) -> None:
    for example, what in about.examples:
        assert what
        words = example.replace('eval "$(rewardswap completion bash)"', "completion bash").split()
        assert words[0] in HELPS, example
        name = max((n for n in HELPS if example.startswith(f"{n} ") or n == example), key=len)
        if words[0] == "train" and not words[1].startswith("--"):
            assert words[1] in RECIPES
        given = {word for word in words if word.startswith("--")} - {"--method", "--env"}
        known = keys.get(name, {}).keys() | {"--resume", "--port", "--markdown"}
        assert given <= known, example


def test_train_names_the_environments(capsys: pytest.CaptureFixture[str]) -> None:
    for name in ("train", "eval"):
        text = " ".join(printed(capsys, name, "--help").split())
        assert f"another environment: {', '.join(ENVIRONMENTS)}" in text


def test_a_recipes_help_has_its_defaults_and_those_of_its_method(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "--budget N  [90]" in printed(capsys, "train", "demo", "--help")
    assert "--budget N  [150]" in printed(capsys, "train", "--help")
    text = printed(capsys, "train", "demo", "--method", "gigpo", "--help")
    assert "--method.step-weight X  [1.0]" in text
    assert "--method.step-weight" not in printed(capsys, "demo", "-h")


def test_the_list_of_commands_is_in_groups(capsys: pytest.CaptureFixture[str]) -> None:
    for words in ([], ["--help"], ["-h"]):
        lines = printed(capsys, *words).splitlines()
        assert [line for line in lines if line in GROUPS] == list(GROUPS)
        listed = [line.split()[0] for line in lines if line.startswith("  ")]
        assert sorted(listed) == sorted(COMMANDS)  # a line for each
        assert max(map(len, lines)) < WIDTH


def test_the_version(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(capsys, "--version") == f"rewardswap {VERSION}\n"


def test_help_does_not_load_torch() -> None:
    code = (
        "import sys; from rewardswap.cli import main; main(['--help']); main(['--version']); "
        "sys.exit('torch' in sys.modules)"
    )
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert ended.returncode == 0, ended.stderr


@dataclass(frozen=True)
class Inner:
    """Of the inside: two words. Raises ValueError for nothing."""

    depth: float = 0.5
    """How deep, in metres."""


@dataclass(frozen=True)
class Outer:
    """Of the outside."""

    name: str
    """What it is called,
    over two lines."""
    sizes: tuple[int, int] = (1, 2)
    """Two sizes."""
    words: tuple[str, ...] = ()
    """Any words."""
    place: Path | None = None
    """A place."""
    on: bool = False
    """Whether it is on."""
    inner: Inner = Inner()


def test_settings_as_text() -> None:
    lines = settings_text(Outer("so")).splitlines()
    assert lines[lines.index("") + 1 :] == [
        "  --name TEXT  [so]",
        "      What it is called, over two lines.",
        "  --sizes N N  [1 2]",
        "      Two sizes.",
        "  --words TEXT ...  [nothing]",
        "      Any words.",
        "  --place PATH | none  [none]",
        "      A place.",
        "  --on true | false  [false]",
        "      Whether it is on.",
        "",
        "--inner.*: Of the inside: two words.",
        "  --inner.depth X  [0.5]",
        "      How deep, in metres.",
    ]
    assert "--name TEXT  [must be given]" in settings_text(Outer)
    assert settings_text() == ""
    assert takes(Path) == "PATH"


def test_values_as_words_and_docstrings_as_lines() -> None:
    assert shown((0.9, None, True)) == "0.9 none true"
    assert field_texts(Outer)["name"] == "What it is called, over two lines."


@pytest.mark.parametrize(("lines", "paged"), [(10, True), (1000, False)])
def test_a_long_text_is_paged_on_a_terminal(
    lines: int, paged: bool, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    seen: list[str] = []
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True, raising=False)
    monkeypatch.setenv("LINES", str(lines))
    monkeypatch.setattr(showing.pydoc, "pager", seen.append)
    showing.show_help("rewardswap report")
    assert bool(seen) == paged
    assert "usage: rewardswap report RUN" in (seen[0] if paged else capsys.readouterr().out)


def test_the_longest_command_is_the_one_that_is_meant() -> None:
    wanted: Sequence[tuple[str, str]] = [
        ("rewardswap prm train DATA", "prm train"),
        ("rewardswap train demo", "train"),
    ]
    for program, name in wanted:
        assert showing.help_of(program).command == name
    with pytest.raises(KeyError, match="no help of 'rewardswap nothing'"):
        showing.help_of("rewardswap nothing")


def test_a_word_behind_help_leaves_the_settings_that_speak_of_it(
    capsys: pytest.CaptureFixture[str],
) -> None:
    everything = printed(capsys, "train", "demo", "--help").splitlines()
    asked = printed(capsys, "train", "demo", "--help", "Replay_Clip").splitlines()
    found = [key[1] for line in asked if (key := KEY.match(line))]
    assert {"--method.replay-clip-low", "--method.replay-clip-high"} <= {*found}
    assert len(found) < 6
    assert {line for line in asked if KEY.match(line)} < {*everything}
    assert printed(capsys, "demo", "--help", "xylophone") == "no setting speaks of 'xylophone'\n"
    assert printed(capsys, "train", "--help", "alpha").startswith("settings: ")
    first = printed(capsys, "view", "--help", "--port", "1")
    assert first == printed(capsys, "view", "--help")
