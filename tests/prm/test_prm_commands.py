"""`rewardswap prm`: collect, train, eval from outside."""

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from commands import refused
from rewardswap.cli import main
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.models.loading import load_language_model, model_folder
from rewardswap.prm.collection import collect_for_reward
from rewardswap.prm.lines import line_of
from rewardswap.prm.loading import seen_tasks
from rewardswap.prm.store import read_collection, task_hashes
from rewardswap.rewards.config import ProcessRewardConfig
from rewardswap.rewards.features import frozen_copy
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.stage import make_stage
from rewardswap.task_stream import derived_seed

WORLD = ["--env.generated-games=40", "--env.evaluation-tasks=6"]
SMALL = [*WORLD, "--trajectories=48", "--temperatures", "0.7", "1.0"]


def collected(folder: Path, *words: str) -> Path:
    main(["prm", "collect", "--output", str(folder), *SMALL, *words])
    return folder


@pytest.fixture(scope="module")
def data(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """12 tasks, 4 rollouts each, by the small agent at two temperatures."""
    return collected(tmp_path_factory.mktemp("prm") / "data")


@pytest.fixture(scope="module")
def model(data: Path) -> Path:
    """The paper's process reward model of these."""
    folder = data.parent / "model"
    main(["prm", "train", str(data), "--output", str(folder)])
    return folder


def said(capsys: pytest.CaptureFixture[str]) -> str:
    return " ".join(capsys.readouterr().out.split())


def copy_of(folder: Path, target: Path) -> Path:
    return Path(shutil.copytree(folder, target))


def rewrite(path: Path, **changes: Any) -> None:
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_a_collection_is_what_a_run_collects_to_the_bit(data: Path) -> None:
    env = Alfworld(generated_games=40, evaluation_tasks=6)
    stage = make_stage(env, None, device="cpu", temperature=1.0, action_tokens=None)
    expected = collect_for_reward(
        stage.play,
        stage.world.tasks("train"),
        seed=derived_seed(0, "reward"),
        trajectories=48,
        group_size=4,
        temperatures=(0.7, 1.0),
    )
    found = read_collection(data)
    assert [line_of(t, 0) for t in found.trajectories] == [line_of(t, 0) for t in expected]
    assert found.shares == (0,) * 24 + (1,) * 24
    evaluated = {task.id for task in stage.world.tasks("held_out")}
    assert evaluated.isdisjoint(t.task.id for t in found.trajectories)


def test_the_manifest_counts_what_is_there(data: Path) -> None:
    found = read_collection(data)
    manifest, wins = found.manifest, sum(t.success for t in found.trajectories)
    counts = manifest["counts"]
    assert (counts["trajectories"], counts["successes"], counts["tasks"]) == (48, wins, 12)
    assert sum(row["trajectories"] for row in counts["families"].values()) == 48
    assert sum(row["successes"] for row in manifest["shares"]) == wins
    assert [row["temperature"] for row in manifest["shares"]] == [0.7, 1.0]
    assert counts["left_out"] == {"trajectories": 0, "successes": 0}
    assert manifest["policies"][0]["model"] == "base-agent"
    assert manifest["split"]["name"] == "train" and manifest["panel"]["split"] == "held_out"
    assert "least_share" not in manifest


def test_the_same_seed_gives_the_same_bits_and_another_seed_others(
    data: Path, tmp_path: Path
) -> None:
    again = collected(tmp_path / "again")
    assert (again / "trajectories.jsonl").read_bytes() == (data / "trajectories.jsonl").read_bytes()
    one, two = (json.loads((folder / "manifest.json").read_text()) for folder in (data, again))
    assert {**one, "commit": None} == {**two, "commit": None}
    other = collected(tmp_path / "other", "--seed=1")
    assert (other / "trajectories.jsonl").read_bytes() != (data / "trajectories.jsonl").read_bytes()


def test_several_policies_play_equal_shares(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    second = copy_of(model_folder("base-agent"), tmp_path / "second")
    words = ["--policies", "base-agent", str(second), "--trajectories=16", "--env.turn-limit=2"]
    found = read_collection(collected(tmp_path / "data", *words))
    assert found.shares == (0,) * 4 + (1,) * 4 + (2,) * 4 + (3,) * 4
    assert [row["policy"] for row in found.manifest["shares"]] == [0, 0, 1, 1]
    first, other = found.manifest["policies"]
    assert other["model"] == str(second) and first["weights_sha256"] == other["weights_sha256"]
    assert f"{second} at temperature 1: 4 rollouts kept" in capsys.readouterr().out.replace(
        "\n", ""
    )


def test_policies_of_other_tokens_are_collected_apart(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    other = copy_of(model_folder("base-agent"), tmp_path / "other")
    text = (other / "tokenizer.json").read_text()
    tokenizer = json.loads(text)
    words = sorted(tokenizer["model"]["vocab"], key=tokenizer["model"]["vocab"].get)
    one, two = words[-1], words[-2]
    vocabulary = tokenizer["model"]["vocab"]
    vocabulary[one], vocabulary[two] = vocabulary[two], vocabulary[one]
    (other / "tokenizer.json").write_text(json.dumps(tokenizer))
    output = tmp_path / "data"
    line = refused(
        capsys,
        *["prm", "collect", "--output", str(output), *SMALL, "--env.turn-limit=1"],
        *["--trajectories=16", "--policies", "base-agent", str(other)],
    )
    assert "'base-agent' and" in line and "have another tokenizer_sha256" in line
    assert not output.exists()


def test_balance_that_cannot_be_had_is_said(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # in one turn nothing is won
    words = ["--trajectories=16", "--env.turn-limit=1", "--balance=outcome", "--most-played=32"]
    manifest = read_collection(collected(tmp_path / "data", *words)).manifest
    assert manifest["counts"]["left_out"] == {"trajectories": 16, "successes": 0}
    assert manifest["least_share"] == 0.25 and manifest["most_played"] == 32
    text = said(capsys)
    assert "16 rollouts of 4 tasks kept, 0 successes; 16 played and left out" in text
    assert text.count("warning: 0 of 8 are of the rarer kind at temperature") == 2


def test_a_model_is_what_the_library_fits(data: Path, model: Path) -> None:
    trajectories = read_collection(data).trajectories
    agent = load_language_model("base-agent")
    made = ProcessRewardModel(frozen_copy(agent.model), ProcessRewardConfig())
    quality = made.fit(trajectories)
    assert json.loads((model / "quality.json").read_text()) == json.loads(
        json.dumps(quality.as_dict())
    )
    loaded = ProcessRewardModel.from_pretrained(model, frozen_copy(agent.model))
    for one, other in zip(loaded.rewards(trajectories), made.rewards(trajectories), strict=True):
        assert one.equal(other)
    parts = made.collected.parts.items()
    assert seen_tasks(model) == frozenset(
        task_hashes([task for task, part in parts if part != "held_out"])
    )


def test_a_preset_is_where_settings_start(data: Path, tmp_path: Path) -> None:
    words = ["--preset", "after_observation", "--model.epochs", "1"]
    main(["prm", "train", str(data), "--output", str(tmp_path / "model"), *words])
    config = json.loads((tmp_path / "model" / "process_reward.json").read_text())["config"]
    assert (config["features"], config["layers"], config["epochs"]) == (
        "after_observation",
        "all",
        1,
    )


def test_tasks_that_were_trained_on_are_left_out(
    data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    target = tmp_path / "eval.json"
    main(["prm", "eval", str(model), str(data), "--json", str(target)])
    found, fitted = (json.loads(p.read_text()) for p in (target, model / "quality.json"))
    # 12 tasks: 20 % are 2 held out, and on these it was judged when it was fitted
    assert "trained on 10 of these 12 tasks; their 40 rollouts are left out" in said(capsys)
    assert (found["tasks_trained_on"], found["rollouts_left_out"]) == (10, 40)
    same = ("auc_total", "turns", "families", "calibration", "brier", "held_out_trajectories")
    assert {name: found[name] for name in same} == {name: fitted[name] for name in same}
    assert {p["change"] for p in found["probes"]["probes"]} >= {"shuffled", "padded"}


def test_a_model_that_saw_every_task_is_refused(
    data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = copy_of(model, tmp_path / "model")
    every = task_hashes([t.task.id for t in read_collection(data).trajectories])
    rewrite(copied / "tasks.json", validation=every)
    assert "trained on all 12 tasks" in refused(capsys, "prm", "eval", str(copied), str(data))


def test_a_model_of_a_run_says_that_its_tasks_are_not_known(
    data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = copy_of(model, tmp_path / "model")
    for name in ("tasks.json", "origin.json", "quality.json"):
        (copied / name).unlink()
    main(["prm", "eval", str(copied), str(data)])
    assert "It is not recorded which tasks the model was trained on" in said(capsys)


def test_states_are_kept_and_change_nothing(
    data: Path, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cache = ["--cache", str(tmp_path / "cache")]
    for name in ("one", "two"):
        main(["prm", "train", str(data), "--output", str(tmp_path / name), *cache])
    text = said(capsys)
    assert "0 forward passes read from" in text and ", 0 computed" in text
    for name in ("one", "two"):
        for file in ("quality.json", "process_reward.safetensors", "tasks.json"):
            assert (tmp_path / name / file).read_bytes() == (model / file).read_bytes()


def test_another_backbone_reads_text(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    backbone = copy_of(model_folder("base-agent"), tmp_path / "backbone")
    words = ["--model.backbone", str(backbone), "--model.epochs=1"]
    train = ["prm", "train", str(data), "--output", str(tmp_path / "model"), *words]
    assert "policy does nothing with backbone" in refused(capsys, *train, "--policy=base-agent")
    main(train)
    main(["prm", "eval", str(tmp_path / "model"), str(data)])
    assert "trained on 10 of these 12 tasks" in said(capsys)


def test_rules_and_functions_are_judged_beside_models(
    data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prm_rewards.py").write_text(
        "def hurry(trajectory):\n    return [-1.0] * len(trajectory.turns)\n"
        "def short(trajectory):\n    return [1.0]\n"
        "def broken(trajectory):\n    raise KeyError('no such state')\n"
    )
    found = {}
    for name in ("progress", "turn_counter", "prm_rewards:hurry"):
        main(["prm", "eval", str(data), "--reward", name, "--json", "eval.json"])
        found[name] = json.loads((tmp_path / "eval.json").read_text())
    hurry, counter = found["prm_rewards:hurry"], found["turn_counter"]
    assert hurry["auc_total"] == counter["auc_total"] == counter["auc_length_only"]
    assert "turn counter" in hurry["warning"] and "turn counter" in said(capsys)
    assert found["progress"]["auc_total"] > counter["auc_total"]
    assert found["progress"]["tasks_trained_on"] == 0
    evaluate = ["prm", "eval", str(data), "--reward"]
    assert "one number per turn" in refused(capsys, *evaluate, "prm_rewards:short")
    assert "raised KeyError: 'no such state'" in refused(capsys, *evaluate, "prm_rewards:broken")


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["colect"], "unknown prm command 'colect'; did you mean 'collect'?"),
        (["collect"], "--output is missing"),
        (["collect", "--output", "D", "--polices", "x"], "did you mean '--policies'?"),
        (["collect", "--output", "D", "--trajectories", "50"], "multiple of 12 .* such as 48"),
        (["collect", "--output", "D", "--trajectories", "4"], "such as 12, got 4"),
        (["collect", "--output", "D", "--temperatures", "0"], "temperatures must be at least"),
        (["collect", "--output", "D", "--temperatures", "1", "1"], "names one twice"),
        (["collect", "--output", "D", "--least-share", ".3"], "does nothing at balance none"),
        (["collect", "--output", "D", "--most-played", "999"], "does nothing at balance none"),
        (
            ["collect", "--output", "D", "--balance", "outcome", "--least-share", ".6"],
            "at most 0.5, got 0.6",
        ),
        (
            ["collect", "--output", "D", "--balance", "outcome", "--most-played", "9"],
            "most_played must be at least 768, got 9",
        ),
        (["collect", "--output", "D", "--env.train-split", "x"], "which plays --split"),
        (["collect", "--output", "D", "--split", "held_out", *WORLD], "one that is evaluated"),
        (["collect", "--output", "D", "--split", "tain", *WORLD], "tain"),
        (["collect", "--output", "D", "--policies", "nowhere"], "nowhere does not exist"),
        (["collect", "--output", "D", "--top-p", ".9"], "is refused in training"),
        (["collect", "--output", "FULL"], "FULL is not empty"),
        (["collect", "--output", "FULL/file/below"], "takes no folder"),
        (["train"], "needs the folder of one collection first"),
        (["train", "D", "E", "--output", "M"], "needs the folder of one collection first"),
        (["train", "D"], "--output is missing"),
        (["train", "D", "--output", "M"], "there is no folder D"),
        (["train", "FULL", "--output", "M"], "there is no manifest.json in FULL"),
        (["train", "D", "--output", "FULL"], "FULL is not empty"),
        (["train", "D", "--output", "M", "--preset", "paper"], "preset must be one of action, "),
        (["train", "D", "--output", "M", "--model.epoch", "3"], "did you mean '--model.epochs'"),
        (["train", "D", "--output", "M", "--model.epochs", "0"], "model.epochs is 0"),
        (["train", "D", "--output", "M", "--model.head", "sigmoid"], "pays for length"),
        (["train", "D", "--output", "M", "--cache", "FULL/file"], "cannot be made"),
        (["eval"], "needs MODEL DATA, or DATA and --reward NAME, got nothing"),
        (["eval", "D"], "needs MODEL DATA, or DATA and --reward NAME, got D"),
        (["eval", "M", "D"], "there is no folder D"),
        (["eval", "M", "D", "--reward", "progress"], "needs DATA alone, got M D --reward"),
        (["eval", "D", "--reward", "progress", "--policy", "x"], "--policy does nothing beside"),
        (["eval", "M", "D", "--json", "FULL"], "is no file in a folder that exists"),
    ],
)
def test_mistakes_are_one_line(
    words: list[str],
    line: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "FULL").mkdir()
    (tmp_path / "FULL" / "file").touch()
    found = refused(capsys, "prm", *words)
    for part in line.split(" .* "):
        assert part in found, found
    assert sorted(path.name for path in tmp_path.iterdir()) == ["FULL"]


@pytest.mark.parametrize(
    ("words", "line"),
    [
        (["eval", "NOWHERE", "DATA"], "NOWHERE"),
        (["eval", "DATA", "DATA"], "process_reward.json"),
        (["eval", "MODEL", "DATA", "--policy", "shop-agent"], "has another tokenizer"),
        (["eval", "DATA", "--reward", "learned"], "give its folder as MODEL"),
        (["eval", "DATA", "--reward", "progres"], "did you mean 'progress'?"),
        (["eval", "DATA", "--reward", "nowhere:f"], "'nowhere:f' cannot be imported"),
        (["train", "DATA", "--output", "M", "--policy", "shop-agent"], "has another tokenizer"),
    ],
)
def test_mistakes_about_data_are_one_line(
    words: list[str],
    line: str,
    data: Path,
    model: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    places = {"DATA": data, "MODEL": model, "NOWHERE": tmp_path / "NOWHERE", "M": tmp_path / "M"}
    assert line in refused(capsys, "prm", *(str(places.get(word, word)) for word in words))
    assert not list(tmp_path.iterdir())


def test_data_of_one_kind_only_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = collected(tmp_path / "data", "--trajectories=16", "--env.turn-limit=1")
    line = refused(capsys, "prm", "train", str(data), "--output", str(tmp_path / "model"))
    assert "have outcome 0" in line and not (tmp_path / "model").exists()


def test_a_policy_that_has_changed_since_is_not_taken_for_itself(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    copied = copy_of(data, tmp_path / "data")
    policies = json.loads((copied / "manifest.json").read_text())["policies"]
    rewrite(copied / "manifest.json", policies=[{**policies[0], "weights_sha256": "0"}])
    train = ["prm", "train", str(copied), "--output", str(tmp_path / "model")]
    assert "has other weights than when it collected" in refused(capsys, *train)
    main([*train, "--policy", "base-agent", "--model.epochs=1"])


@pytest.mark.parametrize("words", [[], ["collect"], ["train"], ["eval"]])
def test_help_fits(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    if words:
        with pytest.raises(SystemExit) as stop:
            main(["prm", *words, "--help"])
        assert not stop.value.code
    else:
        main(["prm"])
    text = capsys.readouterr().out
    assert "usage: rewardswap prm" in text
    assert max(map(len, text.splitlines())) <= 80
