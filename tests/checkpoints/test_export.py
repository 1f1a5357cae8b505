"""`rewardswap export`: the agent of a run that has not ended, the policy that a stop writes."""

import shutil
import signal
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from safetensors.torch import load_file

from commands import refused
from killed import Kill, elsewhere, execute
from rewardswap.checkpoints.config import CheckpointConfig
from rewardswap.cli import main
from rewardswap.configuration import Run
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.models.loading import load_language_model, model_folder
from rewardswap.models.policy import Policy
from rewardswap.recipes import demo
from rewardswap.rewards.sources import RewardConfig
from rewardswap.settings import write_run

RUN = replace(
    demo(),
    env=Alfworld(turn_limit=4, generated_games=40, evaluation_tasks=4),
    batch=Batch(tasks=4, group_size=4),
    swap=RewardSwap(1, 2, 1 / 4),
    reward=RewardConfig(dense="progress"),
    checkpoint=CheckpointConfig(every=1),
    budget=4,
)
LORA = replace(
    RUN, policy=replace(RUN.policy, lora_rank=2, precision="bfloat16", learning_rate=0.01)
)


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run that was killed in phase 1, behind the explorer's update."""
    folder = tmp_path_factory.mktemp("killed") / "run"
    assert execute(elsewhere(RUN, folder), kill=Kill("harvest")) == -9
    return folder


def same_weights(one: Path, other: Path) -> bool:
    name = "model.safetensors"
    found, wanted = load_file(one / name), load_file(other / name)
    return found.keys() == wanted.keys() and all(
        value.dtype == wanted[key].dtype and bool((value == wanted[key]).all())
        for key, value in found.items()
    )


def test_in_phase_one_it_is_the_agent_and_not_the_explorer(
    killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The first explorer's agent is the start policy still."""
    main(["export", str(killed), "--output", str(tmp_path / "policy")])
    assert capsys.readouterr().out == (
        f"The agent of checkpoint 2, after 0 updates: {tmp_path / 'policy'}\n"
    )
    assert same_weights(tmp_path / "policy", model_folder("base-agent"))
    assert load_language_model(str(tmp_path / "policy")).tokenizer.chat_template


@pytest.mark.parametrize("run", [RUN, LORA], ids=["weights", "adapter"])
def test_it_is_the_policy_that_a_run_writes_where_it_stops(
    run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if run is LORA:
        pytest.importorskip("peft", reason="the extra `lora` is not installed")
    folder = tmp_path / "run"
    write_run(run, tmp_path / "run.toml")
    step, steps = Policy.step, [0]

    def interrupting(self: Policy, *args: Any, **more: Any) -> Any:
        steps[0] += 1
        if steps[0] == 4:
            signal.raise_signal(signal.SIGINT)
        return step(self, *args, **more)

    monkeypatch.setattr(Policy, "step", interrupting)
    with pytest.raises(SystemExit):
        main(["train", str(tmp_path / "run.toml"), "--output", str(folder)])
    main(["export", str(folder), "--output", str(tmp_path / "policy")])
    assert same_weights(tmp_path / "policy", folder / "checkpoint")
    assert not same_weights(tmp_path / "policy", model_folder("base-agent"))


def test_what_cannot_be_exported_is_refused(
    killed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    to = ["--output", str(tmp_path / "policy")]
    assert "export needs one run folder, got none" in refused(capsys, "export", *to)
    assert "no config.toml in it" in refused(capsys, "export", str(tmp_path), *to)
    said = refused(capsys, "export", str(killed), "--output", str(killed))
    assert f"{killed} is not empty; give another --output" in said
    folder = tmp_path / "run"
    shutil.copytree(killed, folder)
    config = folder / "config.toml"
    text = config.read_text()
    config.write_text(text.replace('lora_rank = "none"', "lora_rank = 2"))
    said = refused(capsys, "export", str(folder), *to, code=1)
    assert "checkpoint 2 does not fit this run" in said
    changed = load_language_model("base-agent")
    changed.model.get_input_embeddings().weight.data[0] += 1
    changed.save_pretrained(tmp_path / "changed")
    config.write_text(text.replace('"base-agent"', f'"{tmp_path / "changed"}"'))
    said = refused(capsys, "export", str(folder), *to)
    assert f"the model {tmp_path / 'changed'} is not what the run in" in said
    config.write_text(text)
    for checkpoint in (folder / "checkpoints").iterdir():
        (checkpoint / "state.json").write_text("{}")
    said = refused(capsys, "export", str(folder), *to)
    assert "none of the 2 checkpoints" in said
    shutil.rmtree(folder / "checkpoints")
    assert "the run has not come to one" in refused(capsys, "export", str(folder), *to)
    shutil.copytree(model_folder("base-agent"), folder / "checkpoint")
    said = refused(capsys, "export", str(folder), *to)
    assert f"the run's policy is in {folder / 'checkpoint'}" in said
    assert not (tmp_path / "policy").exists()
