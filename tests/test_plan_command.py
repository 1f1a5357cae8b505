"""`rewardswap plan` from outside."""

import re
from pathlib import Path

import pytest

from commands import refused
from rewardswap.cli import main
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.plan.lengths import wander
from rewardswap.plan.settings import PlanSettings, split_words
from walking import TEMPLATE, save_walker

FEW = ["--env.generated-games=12", "--env.evaluation-tasks=10"]
LARGE = ["plan", "alfworld-rspo-grpo-1.5b", *FEW]


def planned(capsys: pytest.CaptureFixture[str], *words: str) -> str:
    main(words)
    return " ".join(capsys.readouterr().out.split())


def test_the_demo_fits_and_its_lengths_are_measured(capsys: pytest.CaptureFixture[str]) -> None:
    said = planned(capsys, "plan", "demo", *FEW, "--host-memory", "4", "--success", "0.18")
    assert "base-agent (folder): 957,824 weights, 4 layers, head its own" in said
    assert "measured with the model's tokenizer" in said
    assert "its cap of 12 turns" in said
    assert "live at once: 56 in training, 10 in evaluation, 256 in process reward" in said
    assert "of 4.0 GiB" in said
    assert "0.18 │ 79.6% │ 6.4" in said  # 1 - .18^8 - .82^8 of 8 groups
    assert "it fits" in said


def test_vllm_takes_its_share_while_it_is_awake(capsys: pytest.CaptureFixture[str]) -> None:
    half = ["--rollout.engine", "vllm", "--rollout.memory-share", "0.5", "--host-memory", "4"]
    said = planned(capsys, "plan", "demo", *FEW, *half)
    assert "vLLM, rollout.memory_share │ 2.0 GiB │ 2.0 GiB │ 2.0 GiB" in said
    asleep = planned(capsys, "plan", "demo", *FEW, *half, "--rollout.sleeps", "true")
    assert "vLLM, rollout.memory_share │ 2.0 GiB │ - │ 2.0 GiB" in asleep
    elsewhere = planned(capsys, "plan", "demo", *FEW, "--rollout.engine", "server")
    assert "vLLM," not in elsewhere
    assert "KV cache" in planned(capsys, "plan", "demo", *FEW)
    assert all("KV cache" not in text for text in (said, asleep, elsewhere))


def test_a_published_shape_needs_no_folder(capsys: pytest.CaptureFixture[str]) -> None:
    said = planned(capsys, *LARGE, "--device-memory", "24")
    assert "(published shape): 1,543,714,304 weights" in said
    assert "assumed: 4 characters a token" in said
    assert "it does not fit" in said
    knobs = [
        "--policy.gradient-checkpointing",
        "--policy.tokens-per-microbatch",
        "--policy.precision",
        "--policy.optimizer",
        "--policy.lora-rank",
        "--rollout.slots",
        "--env.turn-limit",
        "--batch.tasks",
    ]
    places = [said.index(knob) for knob in knobs]
    assert places == sorted(places)
    assert "agent's copy │ 17.3 GiB" in said  # 12 bytes of 1,543,714,304 on the host


def test_given_means_take_the_place_of_measured_ones(capsys: pytest.CaptureFixture[str]) -> None:
    words = ["plan", "demo-grpo", *FEW, "--turns", "5", "--tokens-per-action", "9"]
    said = planned(capsys, *words)
    assert "5 (given) for the work" in said
    assert "9 an action (given)" in said
    assert "environment steps │ 320 │ 320" in said  # 8 x 8 episodes of 5 turns
    assert "action tokens │ 2,880 │ 2,880" in said


def test_check_is_an_exit_code(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as stop:
        main([*LARGE, "--device-memory", "24", "--check"])
    assert stop.value.code == 1
    main([*LARGE, "--device-memory", "2000", "--host-memory", "2000", "--check"])
    assert "it fits" in capsys.readouterr().out
    assert "give --device-memory" in refused(capsys, *LARGE, "--check")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--policy.model", "nowhere"], "'nowhere' is no folder with a config.json and no known"),
        (["--devices", "0"], "devices must be at least 1, got 0"),
        (["--success", "1.5"], "success must be in [0, 1], got 1.5"),
        (["--device-memory", "-3"], "device_memory must be above 0, got -3.0"),
        (["--policy.chat-template", "nowhere"], "chat_template nowhere cannot be read"),
        (["--turns", "0"], "turns must be at least 1, got 0"),
        (["--device-memori", "3"], "unknown key '--device-memori'"),
        (["--env.train-split", "nowhere"], "nowhere"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(
    words: list[str], said: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert said in refused(capsys, "plan", "demo", *FEW, *words)


def test_a_broken_config_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "config.json").write_text("{")
    line = refused(capsys, "plan", "demo", *FEW, "--policy.model", str(tmp_path))
    assert f"the configuration in {tmp_path} cannot be read" in line


def test_a_plan_reads_the_runs_own_template_and_ends(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As the run does: the folder's template may be none, its end token the second one."""
    words = ["plan", "demo-grpo", *FEW, "--policy.model", str(save_walker(tmp_path, ends=[1]))]
    before = planned(capsys, *words)
    longer = tmp_path / "longer.jinja"
    longer.write_text(
        TEMPLATE.replace("<user> ", "<user> here here <stop> ").replace(" <end>", " <stop>")
    )
    after = planned(capsys, *words, "--policy.chat-template", str(longer))
    (first,), (other,) = (
        re.findall(r"(\d+) in the first prompt", said) for said in (before, after)
    )
    assert int(other) == int(first) + 3
    line = refused(capsys, *words, "--policy.chat-template", str(tmp_path / "nowhere"))
    assert "nowhere cannot be read" in line


def test_help_names_every_option(capsys: pytest.CaptureFixture[str]) -> None:
    main(["plan"])
    printed = capsys.readouterr().out
    for name in PlanSettings.__dataclass_fields__:
        assert f"--{name.replace('_', '-')}" in printed


def test_words_are_split_by_whose_they_are() -> None:
    words = ["demo", "--seed", "3", "--check", "--devices", "2", "--budget=4", "--success=.5"]
    mine, others = split_words(PlanSettings, words)
    assert mine == ["--check", "true", "--devices", "2", "--success=.5"]
    assert others == ["demo", "--seed", "3", "--budget=4"]
    assert split_words(PlanSettings, ["demo", "--check", "false"]) == (
        ["--check", "false"],
        ["demo"],
    )


def test_wandering_lasts_as_long_as_the_cap_and_repeats() -> None:
    world = Alfworld(generated_games=5, evaluation_tasks=5).world("full")
    tasks = world.tasks("train")
    played = wander(world, tasks, 12, seed=1)
    assert [len(episode) for episode in played] == [12] * 5
    assert played == wander(world, tasks, 12, seed=1)
    assert all(action in seen.admissible for episode in played for seen, action in episode)
    with pytest.raises(ValueError, match="has no task"):
        wander(world, [], 12, seed=1)
