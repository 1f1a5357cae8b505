"""The command from outside: what works, and what is refused in one line with exit code 2."""

import json
import shutil
import tarfile
from dataclasses import fields
from pathlib import Path

import pytest
from safetensors.torch import load_file

from commands import refused
from rewardswap.cli import main
from rewardswap.methods import METHODS
from rewardswap.settings import read_run
from unpacking import unpack

ARCHIVE = Path(__file__).parents[2] / "shared" / "alfworld" / "json_2.1.1.tar.xz"
SMALL = [
    "--budget=2",
    "--env.evaluation-tasks=6",
    "--env.generated-games=40",
    "--env.turn-limit=8",
    "--batch.tasks=4",
    "--batch.group-size=4",
    "--swap.explore-steps=1",
    "--swap.learn-steps=2",
    "--swap.alpha=0.25",
    "--reward.dense=progress",
]


def test_unknown_names_say_the_nearest(capsys: pytest.CaptureFixture[str]) -> None:
    assert "did you mean 'train'" in refused(capsys, "trian")
    assert "did you mean 'demo'" in refused(capsys, "train", "demi")
    key = refused(capsys, "train", "demo", "--policy.learnin-rate", "1")
    assert "did you mean '--policy.learning-rate'" in key
    for word, meant in {"--ray-addres=x": "ray-address", "--metod=x": "method"}.items():
        assert f"did you mean '--{meant}'" in refused(capsys, "train", "demo", word)
    assert "did you mean '--turns'" in refused(capsys, "plan", "demo", "--turn=3")
    assert "did you mean 'grpo'" in refused(capsys, "train", "demo", "--method", "grpa")
    assert "train needs a recipe first: demo, " in refused(capsys, "train", "--dry-run")
    assert "plan needs a recipe first: demo, " in refused(capsys, "plan", "--turns", "3")
    line = refused(capsys, "train", "demo", "--policy.learning-rate", "fast")
    assert "policy.learning_rate must be a number" in line


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--method", "grpa"], "unknown method 'grpa'; did you mean 'grpo'?"),
        (["--method=gigpa"], "unknown method 'gigpa'; did you mean 'gigpo'?"),
        (["--method"], "--method needs a name"),
        (["--method="], "--method needs a name"),
        (["--method", "--seed", "3"], "--method needs a name"),
        (["--method", "sapo", "--method.clip-low", ".3"], "method.clip_low does nothing in SAPO"),
        (["--method.clip-low", ".3", "--method=sapo"], "method.clip_low does nothing in SAPO"),
        (["--method", "grpo", "--method.step-weight", "1"], "unknown key '--method.step-weight'"),
        (["--method", "nowhere:Mine"], "'nowhere:Mine' cannot be imported"),
        (["--method", "json:Mine"], "has no attribute 'Mine'"),
        (["--method", ":Mine"], "':Mine' cannot be imported"),
        (["--method", "json:loads"], "not a subclass of rewardswap.methods.base.Method"),
        (["--method", "json:JSONDecoder"], "not a subclass of rewardswap.methods.base.Method"),
        (["--method", "rewardswap.methods.base:Method"], "has no `algorithm` of its own"),
        (["--method", "ppo", "--reward.dense-credit=reward_to_go"], "does nothing in PPO"),
        (["--swap.explorer-critic=fresh"], "does nothing in GRPO: it has no critic"),
    ],
)
def test_methods_that_cannot_be_had(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "run"
    line = refused(capsys, "train", "demo", "--output", str(target), *words)
    assert said in line
    assert "Error parsing" not in line
    assert not target.exists()


def test_a_method_and_settings_that_go_with_it_come_in_any_order(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    # the starting run has reward_to_go, which a critic has no use for: both change at once
    file = tmp_path / "config.toml"
    file.write_text("recipe = 'x'\nmethod = 'gigpo'\n[reward]\ndense_credit = 'reward_to_go'\n")
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").touch()
    words = ["train", str(file), "--output", str(full), "--method", "ppo", *SMALL[1:]]
    assert "does nothing in PPO" in refused(capsys, *words)
    words += [
        "--reward.dense-credit",
        "sum",
        "--method.whiten=False",
        "--method.value-clip",
        "none",
    ]
    assert "is not empty" in refused(capsys, *words)  # as far as it can come without a run


def test_a_method_without_its_decorator_is_refused(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare_method.py").write_text(
        "from rewardswap.methods.grpo import GRPO\n\n\nclass Bare(GRPO):\n    clip_low = 0.3\n"
    )
    monkeypatch.chdir(tmp_path)
    line = refused(capsys, "train", "demo", "--method", "bare_method:Bare")
    assert "lacks @dataclass(frozen=True)" in line


def test_the_list_of_methods_fits_a_screen(capsys: pytest.CaptureFixture[str]) -> None:
    main(["methods"])
    lines = capsys.readouterr().out.splitlines()
    assert max(len(line) for line in lines) < 80
    assert [line for line in lines if line in METHODS] == list(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_card_shows_every_setting_that_its_method_reads(
    name: str, capsys: pytest.CaptureFixture[str]
) -> None:
    main(["methods", name])
    text = capsys.readouterr().out
    assert max(len(line) for line in text.splitlines()) < 80
    for setting in fields(METHODS[name]):
        option = f"--method.{setting.name.replace('_', '-')} "
        assert (option in text) == (setting.name not in METHODS[name].idle)


def test_names_and_keys_that_the_list_of_methods_does_not_know(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert "did you mean 'gigpo'?" in refused(capsys, "methods", "gigp")
    assert "unknown key '--foo'" in refused(capsys, "methods", "--foo")
    assert "unknown key '--foo'" in refused(capsys, "methods", "gigpo", "--foo")
    assert "unknown key '--foo'" in refused(capsys, "recipes", "--foo")
    assert "one method at a time" in refused(capsys, "methods", "gigpo", "ppo")
    assert "one recipe at a time, got demo two" in refused(capsys, "recipes", "demo", "two")
    assert "unknown recipe 'demi'; did you mean 'demo'?" in refused(capsys, "recipes", "demi")


def test_settings_that_do_nothing_are_refused(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["train", "demo", "--loop", "on_policy", "--swap.alpha", "0.5"]
    assert "--swap.alpha does nothing in loop 'on_policy'" in refused(capsys, *words)


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy.betas", "1", "2"], "betas must be in [0, 1)"),
        (["--policy.learning-rate", "inf"], "policy.learning_rate must be a finite number"),
        (["--method.kl-coefficient", "nan"], "method.kl_coefficient must be a finite number"),
        (["--method.clip-low=-1"], "method.clip_low must be above 0"),
        (["--method.average", "tokens"], "method.average must be one of token, turn"),
        (["--method.dual-clip", "x"], "method.dual_clip must be a number or none, got 'x'"),
        (["--method.kl-on-replay", "no"], "method.kl_on_replay must be true or false, got 'no'"),
        (["--policy.betas", "1"], "policy.betas must be 2 numbers, got '1'"),
        (["--policy.learning-rate"], "policy.learning_rate must be a number, got nothing"),
        (["--seed", "1.5"], "seed must be a whole number, got '1.5'"),
        (["--seed", "1", "2"], "words that belong to no key: 2"),
        (["--reward.noise=-1"], "reward.noise must be at least 0, got -1.0"),
        (["--reward.dense-discount", "0.5"], "reward.dense_discount does nothing at dense_credit"),
        (["--swap.alpha=0"], "swap: 3 explore_steps do nothing at alpha = 0"),
        (["--reward.temperatures", "nan"], "finite number"),
        (["--evaluation-temperature", "nan"], "evaluation_temperature must be a finite number"),
        (["--swap.explorer-learning-rate=-1"], "explorer_learning_rate must be above 0"),
        (["--swap.alpha", "0.00001"], "below 1/10000"),
        (["--swap.alpha", "0.75"], "between 0 and 1/2"),
        (["--env.turn-limit", "0"], "turn_limit must be at least 1"),
        (["--policy.minibatches", "9"], "larger than the 8 trajectories"),
        (["--seed=-1"], "seed must be at least 0"),
        (["--policy.action-tokens", "100000"], "set action_tokens lower"),
        (["--policy.top-p", "0.8"], "--policy.top-p is refused in training: a sampler that leaves"),
        (["--top-p", "0.8"], "--top-p is refused in training"),
        (["--policy.min_p=0.1"], "ratio is not 1 on policy; `rewardswap eval` takes it"),
        (["--policy.temperature", "1e-40"], "policy.temperature must be at least 0.001"),
        (["--evaluation-temperature", "1e-40"], "evaluation_temperature must be at least 0.001"),
        (["--reward.temperatures", "1", "1e-40"], "reward.temperatures must be at least 0.001"),
        (["--rollout.slots", "0"], "slots must be at least 1, got 0"),
        (["--rollout.refill", "0"], "refill must be above 0 and at most 1, got 0.0"),
        (["--reward.dense=progress", "--reward.model.epochs=3"], "does nothing in dense reward"),
        (["--swap.explore-steps=0", "--reward.dense=progress"], "does nothing in a loop that"),
    ],
)
def test_numbers_that_make_no_sense(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "run"
    line = refused(capsys, "train", "demo", "--output", str(target), *words)
    assert said in line
    assert "Error parsing" not in line
    assert not target.exists()


def test_broken_model_folders(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    from rewardswap.models.loading import model_folder

    base = ["train", "demo", *SMALL, "--output", str(tmp_path / "run"), "--policy.model"]
    for name, content in (
        ("model.safetensors", b"garbage"),
        ("chat_template.jinja", b"{% for %}"),
        ("config.json", b"{}"),
    ):
        folder = tmp_path / name.split(".")[0]
        shutil.copytree(model_folder("base-agent"), folder)
        (folder / name).write_bytes(content)
        assert str(folder) in refused(capsys, *base, str(folder))
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("words", [["eval"], ["plan", "demo"], ["train", "demo", "--dry-run"]])
def test_stopped_by_hand_is_a_line_of_text(
    words: list[str], capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def stopped(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("rewardswap.env_config.alfworld.Alfworld.world", stopped)
    with pytest.raises(SystemExit) as stop:
        main(words)
    assert (stop.value.code, capsys.readouterr().err) == (130, "rewardswap: stopped by hand\n")


def test_evaluations_refuse_before_they_play(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    assert "temperature must be" in refused(capsys, "eval", "--temperature", "nan")
    assert "top_p must be above 0 and at most 1" in refused(capsys, "eval", "--top-p", "0")
    assert "action_tokens must be at least 1, got 0" in refused(capsys, "eval", "--action-tokens=0")
    assert "no file in a folder" in refused(capsys, "eval", "--output", str(tmp_path))


def test_an_evaluation_takes_a_truncating_sampler(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    file = tmp_path / "greedy.json"
    sizes = ["--env.evaluation-tasks", "3", "--env.turn-limit", "2", "--output", str(file)]
    main(["eval", *sizes, "--top-k", "1", "--rollout.slots", "2"])
    assert "temperature 1, top_k 1" in capsys.readouterr().out
    assert json.loads(file.read_text())["top_k"] == 1


@pytest.mark.parametrize(
    ("words", "key"),
    [(["data", "generate", "webshop"], "output"), (["data", "prepare", "webshop"], "data")],
    ids=lambda word: str(word),
)
def test_a_key_that_must_be_given_is_named(
    capsys: pytest.CaptureFixture[str], words: list[str], key: str
) -> None:
    assert f" --{key} is missing; give it a value" in refused(capsys, *words)


def test_a_small_training_split_repeats_tasks_under_further_indices(tmp_path: Path) -> None:
    words = [word for word in SMALL if not word.startswith("--reward")]
    words += ["--env.generated-games=12", "--env.turn-limit=12", "--reward.trajectories=240"]
    main(["train", "demo", *words, "--output", str(tmp_path / "run")])
    assert (tmp_path / "run" / "prm.json").exists()


def test_sizes_that_alpha_does_not_divide(capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "train", "demo", "--batch.tasks", "12")
    assert "nearest numbers of tasks that alpha divides: 8, 16" in said


def test_folders_that_are_not_there_or_hold_nothing(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    target = tmp_path / "run"
    base = ["train", "demo", "--output", str(target)]
    missing = tmp_path / "nowhere"
    assert str(missing) in refused(capsys, *base, "--policy.model", str(missing))
    said = refused(capsys, *base, "--env.games", str(missing))
    assert str(missing) in said
    assert "alfworld-download" in said
    empty = tmp_path / "empty"
    empty.mkdir()
    assert str(empty) in refused(capsys, *base, "--env.games", str(empty))
    assert "no configuration file" in refused(capsys, "train", "other/config.toml")
    assert not target.exists()


def test_an_unknown_split_names_those_that_exist(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    said = refused(capsys, "train", "demo", *SMALL, "--env.split", "valid_sen")
    assert "held_out" in said
    said = refused(capsys, "train", "demo", *SMALL, "--env.split", "train")
    assert "also trained on" in said


def test_a_model_without_tokenizer_or_chat_template(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    from chatting import small_tokenizer
    from made import small_llama

    bare = tmp_path / "bare"
    small_llama().save_pretrained(bare)
    base = ["train", "demo", *SMALL, "--output", str(tmp_path / "run"), "--policy.model", str(bare)]
    assert "has no tokenizer" in refused(capsys, *base)
    small_tokenizer(None).save_pretrained(bare)
    assert "no chat template" in refused(capsys, *base)
    assert not (tmp_path / "run").exists()


def test_a_run_folder_that_is_full_or_cannot_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    full = tmp_path / "full"
    full.mkdir()
    (full / "notes.txt").write_text("mine")
    assert "is not empty" in refused(capsys, "train", "demo", *SMALL, "--output", str(full))
    assert [path.name for path in full.iterdir()] == ["notes.txt"]
    file = tmp_path / "file"
    file.write_text("a file")
    said = refused(capsys, "train", "demo", *SMALL, "--output", str(file / "run"))
    assert "cannot be written" in said


def test_help_lists_commands_recipes_and_keys(capsys: pytest.CaptureFixture[str]) -> None:
    main([])
    assert "train" in capsys.readouterr().out
    main(["train"])
    assert "demo-grpo" in capsys.readouterr().out
    with pytest.raises(SystemExit) as stop:
        main(["train", "demo", "--help"])
    assert stop.value.code == 0
    assert "--policy.learning-rate" in capsys.readouterr().out
    main(["recipes"])
    assert "alfworld-rspo-grpo-1.5b" in capsys.readouterr().out


def record(folder: Path) -> list[dict[str, object]]:
    lines = (folder / "metrics.jsonl").read_text().splitlines()
    rows = [json.loads(line) for line in lines]
    timed = ("seconds", "rollout_seconds", "update_seconds")
    return [{name: row[name] for name in row if name not in timed} for row in rows]


def test_a_run_leaves_its_whole_record_and_can_be_repeated_from_it(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    first, second = tmp_path / "first", tmp_path / "second"
    main(["train", "demo", *SMALL, "--output", str(first)])
    printed = capsys.readouterr().out.strip().splitlines()
    assert printed[-1] == str(first / "report.html")
    names = {str(path.relative_to(first)) for path in first.rglob("*") if path.is_file()}
    assert names >= {
        "config.toml",
        "environment.json",
        "metrics.jsonl",
        "summary.json",
        "evaluation-before.json",
        "evaluation-after.json",
        "trajectories/before.jsonl",
        "trajectories/after.jsonl",
        "trajectories/train.jsonl",
        "checkpoint/model.safetensors",
        "report.html",
    }
    assert [row["phase"] for row in record(first)] == ["explore", "harvest", "learn", "learn"]
    summary = json.loads((first / "summary.json").read_text())
    assert summary["agent_updates"] == 2
    assert summary["tasks"] == 6
    # phase 1: 3 x 4 episodes, harvest the same, and two updates of the agent
    counted = sum(float(str(row["rollout/environment_steps"])) for row in record(first))
    assert summary["environment_steps"] == counted
    main(["train", str(first / "config.toml"), "--output", str(second)])
    assert record(second) == record(first)
    one, other = (load_file(folder / "checkpoint/model.safetensors") for folder in (first, second))
    assert all((one[name] == other[name]).all() for name in one)
    for name in ("before", "after", "train"):
        file = f"trajectories/{name}.jsonl"
        assert (first / file).read_text() == (second / file).read_text()


@pytest.mark.parametrize("method", ["gigpo", "ppo"])
@pytest.mark.parametrize("loop", ["rspo", "on_policy"])
def test_methods_train_in_both_loops(method: str, loop: str, tmp_path: Path) -> None:
    folder = tmp_path / "run"
    small = SMALL if loop == "rspo" else [*SMALL[:6], "--loop", loop]
    main(["train", "demo", "--method", method, *small, "--output", str(folder)])
    assert (folder / "report.html").stat().st_size > 10_000
    assert json.loads((folder / "summary.json").read_text())["method"] == method
    run = read_run(folder / "config.toml")
    assert (type(run.method), run.loop) == (METHODS[method], loop)
    rows = record(folder)
    assert [row["phase"] for row in rows][-2:] == ["learn", "learn"]
    updated = [row for row in rows if row["phase"] != "harvest"]
    for name in ("value_loss", "explained_variance", "critic_warmup"):
        assert all((name in row) == (method == "ppo") for row in updated)
    explained = (Path(__file__).parents[1] / "docs" / "metrics.md").read_text(encoding="utf-8")
    names = {name for row in rows for name in row if not name.startswith("rollout/")}
    assert [name for name in sorted(names) if f"`{name}`" not in explained] == []


def test_a_method_from_outside_trains_and_comes_back_from_the_record(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    doc = (Path(__file__).parents[1] / "docs" / "add-a-method.md").read_text(encoding="utf-8")
    (tmp_path / "outside_max_rl.py").write_text(doc.split("```python\n")[1].split("```")[0])
    monkeypatch.chdir(tmp_path)
    words = ["--method=outside_max_rl:MaxRL", "--reward.dense-credit=reward_to_go", *SMALL]
    main(["train", "demo", *words, "--method.clip-high=0.3", "--output=first"])
    config = (tmp_path / "first" / "config.toml").read_text()
    assert 'name = "outside_max_rl:MaxRL"' in config
    main(["train", "first/config.toml", "--output=second"])
    again = config.replace('output = "first"', 'output = "second"')
    assert (tmp_path / "second" / "config.toml").read_text() == again
    assert record(tmp_path / "first") == record(tmp_path / "second")


def test_a_budget_in_all_updates_counts_the_explorers(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    words = ["--budget-unit=all_updates", "--output", str(folder)]
    main(["train", "demo", *SMALL, *words])
    assert [row["phase"] for row in record(folder)] == ["explore", "harvest", "learn"]
    assert json.loads((folder / "summary.json").read_text())["all_updates"] == 2


def test_the_checkpoint_plays_as_the_run_left_it(tmp_path: Path) -> None:
    folder = tmp_path / "run"
    main(["train", "demo-grpo", *SMALL[:6], "--output", str(folder)])
    config = (folder / "config.toml").read_text()
    assert "[swap]" not in config
    table = tmp_path / "table.json"
    words = ["--env.evaluation-tasks=6", "--env.generated-games=40", "--env.turn-limit=8"]
    checkpoint = str(folder / "checkpoint")
    main(["eval", "--model", checkpoint, *words, "--output", str(table)])
    assert json.loads(table.read_text()) == json.loads(
        (folder / "evaluation-after.json").read_text()
    )


@pytest.fixture(scope="session")
def official_games(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A few official games of two splits, in the official layout."""
    if not ARCHIVE.exists():
        pytest.skip("the official games are not at ../shared/alfworld")
    folder = tmp_path_factory.mktemp("official")
    taken = {"train": 0, "valid_seen": 0}
    with tarfile.open(ARCHIVE) as archive:
        for member in archive:
            parts = Path(member.name).parts
            if len(parts) < 3 or taken.get(parts[1], 99) >= 12 or not member.isfile():
                continue
            unpack(archive, member, folder)
            taken[parts[1]] += member.name.endswith("game.tw-pddl")
            if min(taken.values()) >= 12:
                break
    return folder / "json_2.1.1"


def test_official_games_are_trained_on_and_evaluated(
    official_games: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    games = ["--env.games", str(official_games), "--env.split", "valid_seen"]
    small = [*SMALL[:1], "--env.evaluation-tasks=6", *SMALL[3:]]
    main(["train", "demo", *small, *games, "--output", str(tmp_path / "run")])
    capsys.readouterr()
    panel = json.loads((tmp_path / "run" / "evaluation-after.json").read_text())["panel"]
    assert (panel["split"], panel["tasks"]) == ("valid_seen", 6)
    main(["eval", *games, "--env.turn-limit=4"])
    assert "valid_seen" in capsys.readouterr().out


OUTSIDE = """
from dataclasses import dataclass
from rewardswap.methods.base import Method
from rewardswap.methods.credit import PerGroup

@dataclass(frozen=True)
class Silent(Method):
    def algorithm(self):
        return None

@dataclass(frozen=True)
class Scalar(Method):
    \"\"\"One number for a whole group.\"\"\"

    strength: float = 2.0
    \"\"\"How strong.\"\"\"

    def algorithm(self):
        return self.compose(PerGroup(lambda returns: returns.mean()))
"""


def test_faults_of_a_method_from_outside_are_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "outside_faults.py").write_text(OUTSIDE)
    (tmp_path / "outside_broken.py").write_text("def f(:\n")
    monkeypatch.chdir(tmp_path)
    said = refused(capsys, "train", "demo", "--method", "outside_broken:X")
    assert "invalid syntax" in said
    assert str(tmp_path) in said
    said = refused(capsys, "train", "demo", "--method", "outside_faults:Silent")
    assert "`algorithm` of method Silent returned None" in said
    main(["methods", "outside_faults:Scalar"])
    assert "--method.strength 2.0" in capsys.readouterr().out
    words = ["--method", "outside_faults:Scalar", *SMALL[:6], "--loop", "on_policy"]
    with pytest.raises(SystemExit) as stop:
        main(["train", "demo", *words, "--output", "run"])
    assert stop.value.code == 1
    assert "one advantage per trajectory" in capsys.readouterr().err


def test_a_budget_that_ends_before_the_first_update_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["--budget=1", "--budget-unit=all_updates", "--output", str(tmp_path / "run")]
    with pytest.raises(SystemExit) as stop:
        main(["train", "demo", *[w for w in SMALL if not w.startswith("--budget")], *words])
    assert stop.value.code == 1
    assert "before the agent's first update" in " ".join(capsys.readouterr().err.split())


def test_a_filter_that_nothing_passes_ends_the_run_with_a_checkpoint(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """One turn wins no game: all outcomes are 0, and dynamic sampling asks at most three times."""
    words = ["--method", "dapo", "--method.collections=3", "--env.turn-limit=1"]
    words += ["--loop=on_policy", "--output", str(tmp_path / "run")]
    loop = ("--swap", "--reward", "--env.turn")
    with pytest.raises(SystemExit) as stop:
        main(["train", "demo", *[w for w in SMALL if not w.startswith(loop)], *words])
    assert stop.value.code == 1
    said = " ".join(capsys.readouterr().err.split())
    assert "none of 12 groups in 3 collections was kept by the method's filter" in said
    assert (tmp_path / "run" / "checkpoint" / "model.safetensors").is_file()


def test_help_in_front_is_help(capsys: pytest.CaptureFixture[str]) -> None:
    main(["view", "--help"])
    behind = capsys.readouterr().out
    main(["help", "view"])
    assert capsys.readouterr().out == behind
    main(["help"])
    assert capsys.readouterr().out.startswith("usage: rewardswap COMMAND")
