"""Model folders of every habit: from the folder to a rollout, an update and a plain checkpoint."""

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, GenerationConfig

from rewardswap.cli import main
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.learners import make_learners
from rewardswap.methods.grpo import GRPO
from rewardswap.models.adapter import add_adapter, merged_state
from rewardswap.models.batching import collate
from rewardswap.models.loading import LanguageModel, load_language_model, model_folder
from rewardswap.policy_config import PolicyConfig
from rewardswap.rewards.rule import ProgressReward
from rewardswap.settings import read_run
from rewardswap.stage import make_stage
from rewardswap.types import Group
from training import parameters
from walking import TEMPLATE, WORDS, save_walker, walking_trainer

FOLDERS: dict[str, dict[str, Any]] = {
    "no pad token": {},
    "tied embeddings": {"tie_word_embeddings": True},
    "a larger vocabulary": {"vocab_size": len(WORDS) + 24},
    "two end tokens": {"ends": [0, 1]},
}


def trained(folder: Path, checkpoint: Path) -> tuple[LanguageModel, list[Group], torch.Tensor]:
    """The model after an update on its own episodes, these, and its parameters before; saved."""
    found = load_language_model(str(folder))
    algorithm = GRPO().algorithm()
    config = PolicyConfig(learning_rate=0.01)
    policy = make_learners(config, found.model, None, algorithm).policy
    before = parameters(policy).clone()
    trainer = walking_trainer(found, policy=policy, algorithm=algorithm)
    collected = trainer.collect("learn", 4, 8)
    groups = list(collected.groups)
    for group in groups:
        batch = collate([group.with_column("sampled", group.sampled_logprob)])
        gap = policy.score(batch).logprob - batch.column("sampled")
        assert float(gap[batch.action_mask].abs().max()) < 1e-5
    metrics = trainer.update(collected, ProgressReward(), "learn")
    assert metrics["gradient_norm"] > 0
    found.model.save_pretrained(checkpoint, state_dict=merged_state(found.model))
    found.tokenizer.save_pretrained(checkpoint)
    return found, groups, before


@pytest.mark.parametrize("habit", FOLDERS)
def test_a_folder_is_played_trained_saved_and_loaded_again(habit: str, tmp_path: Path) -> None:
    folder = save_walker(tmp_path / "model", **FOLDERS[habit])
    found, _, before = trained(folder, tmp_path / "checkpoint")
    after = torch.cat([p.detach().flatten() for p in found.model.parameters()])
    assert not torch.equal(after, before)
    plain: Any = AutoModelForCausalLM.from_pretrained(tmp_path / "checkpoint", dtype=torch.float32)
    assert torch.equal(torch.cat([p.detach().flatten() for p in plain.parameters()]), after)
    tokenizer: Any = AutoTokenizer.from_pretrained(tmp_path / "checkpoint")
    assert tokenizer.chat_template == TEMPLATE
    assert tokenizer.pad_token is None
    assert plain.config.vocab_size == found.model.config.vocab_size
    tied = plain.get_output_embeddings().weight is plain.get_input_embeddings().weight
    assert tied == (habit == "tied embeddings")
    ends = GenerationConfig.from_pretrained(tmp_path / "checkpoint").eos_token_id
    assert ends == FOLDERS[habit].get("ends", 0)
    assert load_language_model(str(tmp_path / "checkpoint")).end_token_ids == found.end_token_ids


def test_either_end_token_ends_an_action(tmp_path: Path) -> None:
    folder = save_walker(tmp_path / "model", ends=[0, 1])
    found, groups, _ = trained(folder, tmp_path / "checkpoint")
    assert found.end_token_ids == (0, 1)
    turns = [turn for group in groups for t in group.trajectories for turn in t.turns]
    for turn in turns:
        assert turn.truncated == (int(turn.action_ids[-1]) not in (0, 1))
    assert {int(turn.action_ids[-1]) for turn in turns if not turn.truncated} == {0, 1}


def test_tokens_beyond_the_tokenizer_are_trained_as_sampled_and_said(tmp_path: Path) -> None:
    folder = save_walker(tmp_path / "model", vocab_size=len(WORDS) + 24)
    found, groups, before = trained(folder, tmp_path / "checkpoint")
    turns = [turn for group in groups for t in group.trajectories for turn in t.turns]
    beyond = [turn for turn in turns if (turn.action_ids >= len(WORDS)).any()]
    assert len(beyond) > 100
    for turn in beyond:
        known = [int(i) for i in turn.action_ids if i < len(WORDS)]
        assert turn.action == found.tokenizer.decode(known, skip_special_tokens=True)
    batch = collate(groups)
    assert np.isin(range(len(WORDS), len(WORDS) + 24), batch.tokens[batch.action_mask]).all()
    head = found.model.get_output_embeddings().weight
    moved = (head.detach().flatten() != before[-head.numel() :]).reshape(head.shape).any(dim=1)
    assert moved[len(WORDS) :].all()
    assert found.remarks == (
        "24 of the model's 40 tokens are none of its tokenizer's: sampled, they are trained as "
        "they are, and add no text to an action.",
    )


def test_the_remark_is_one_of_the_panel_and_only_where_it_holds(tmp_path: Path) -> None:
    folder = tmp_path / "wide"
    shutil.copytree(model_folder("base-agent"), folder)
    model: Any = AutoModelForCausalLM.from_pretrained(folder)
    model.resize_token_embeddings(412, mean_resizing=False)
    model.save_pretrained(folder)
    env = Alfworld(generated_games=20, evaluation_tasks=5)
    said = {}
    for name in ("base-agent", str(folder)):
        stage = make_stage(env, name, device="cpu", temperature=1.0, action_tokens=None)
        said[name] = [remark for remark in stage.panel.remarks if "tokenizer" in remark]
    assert said["base-agent"] == []
    assert said[str(folder)][0].startswith("3 of the model's 412 tokens")


def without_template(folder: Path) -> Path:
    """The small agent's folder without its chat template."""
    shutil.copytree(model_folder("base-agent"), folder)
    (folder / "chat_template.jinja").unlink()
    return folder


SMALL = [
    "--loop=on_policy",
    "--budget=1",
    "--env.evaluation-tasks=2",
    "--env.generated-games=20",
    "--env.turn-limit=3",
    "--batch.tasks=1",
    "--batch.group-size=2",
    "--policy.minibatches=1",
]


def test_without_a_chat_template_the_flag_is_named(
    capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    folder = str(without_template(tmp_path / "bare"))
    for words in (["train", "demo-grpo", "--policy.model", folder], ["eval", "--model", folder]):
        with pytest.raises(SystemExit):
            main(words)
        said = capsys.readouterr().err
        assert "has no chat template" in said
        assert "--policy.chat-template (eval: --chat-template)" in said


def test_a_given_chat_template_is_used_and_goes_into_the_checkpoint(tmp_path: Path) -> None:
    folder, run = without_template(tmp_path / "bare"), tmp_path / "run"
    template = model_folder("base-agent") / "chat_template.jinja"
    given = ["--policy.model", str(folder), "--policy.chat-template", str(template)]
    main(["train", "demo-grpo", *SMALL, *given, "--output", str(run)])
    assert (run / "checkpoint" / "chat_template.jinja").read_text() == template.read_text()
    assert read_run(run / "config.toml").policy.chat_template == template
    words = ["--env.evaluation-tasks=2", "--env.generated-games=20", "--env.turn-limit=3"]
    main(["eval", "--model", str(folder), "--chat-template", str(template), *words])
    main(["eval", "--model", str(run / "checkpoint"), *words])


def test_a_given_chat_template_takes_the_place_of_the_folders(tmp_path: Path) -> None:
    folder = save_walker(tmp_path / "model")
    other = tmp_path / "other.jinja"
    other.write_text(TEMPLATE.replace("<user>", "here"))
    found = load_language_model(str(folder), chat_template=other)
    assert found.tokenizer.chat_template == other.read_text()
    (tmp_path / "empty.jinja").write_text(" \n")
    for name, reason in (("nowhere", "cannot be read"), ("empty", "is empty")):
        with pytest.raises(ValueError, match=rf"chat_template .*{name}\.jinja {reason}"):
            load_language_model(str(folder), chat_template=tmp_path / f"{name}.jinja")


@pytest.mark.parametrize("whole", [False, True])
def test_a_folder_with_an_adapter_is_refused_with_the_way_out(whole: bool, tmp_path: Path) -> None:
    """Fault 24: its reference would be the model without what was trained."""
    folder = save_walker(tmp_path / "model")
    (folder / "adapter_config.json").write_text("{}")
    if not whole:
        (folder / "config.json").unlink()
    with pytest.raises(ValueError, match=r"holds an adapter; merge it .*merge_and_unload"):
        load_language_model(str(folder))


def test_an_adapter_on_a_trained_checkpoint_starts_at_a_divergence_of_zero(tmp_path: Path) -> None:
    """Fault 24: the reference is the merged model, adapter and all, not the one before."""
    pytest.importorskip("peft", reason="the extra `lora` is not installed")
    folder = save_walker(tmp_path / "model")
    found = load_language_model(str(folder))
    add_adapter(found.model, 4, 8.0, ())
    algorithm = GRPO(kl_coefficient=0.1).algorithm()
    config = PolicyConfig(learning_rate=0.05, lora_rank=4)

    def divergences(model: LanguageModel) -> list[float]:
        learners = make_learners(config, model.model, None, algorithm)
        trainer = walking_trainer(
            model, policy=learners.policy, reference=learners.reference, algorithm=algorithm
        )
        said = []
        for _ in range(2):
            collected = trainer.collect("learn", 4, 8)
            said.append(trainer.update(collected, ProgressReward(), "learn")["kl_reference"])
        return said

    first = divergences(found)
    assert first[0] == 0 and first[1] > 1e-3
    found.model.save_pretrained(tmp_path / "second", state_dict=merged_state(found.model))
    found.tokenizer.save_pretrained(tmp_path / "second")
    again = load_language_model(str(tmp_path / "second"))
    add_adapter(again.model, 4, 8.0, ())
    second = divergences(again)
    assert second[0] == 0 and second[1] > 1e-3


def test_a_folder_that_lacks_weights_is_refused(tmp_path: Path) -> None:
    """They would be drawn at random, and trained from there."""
    folder = save_walker(tmp_path / "model")
    config = folder / "config.json"
    layers = json.loads(config.read_text())["num_hidden_layers"]
    config.write_text(json.dumps({**json.loads(config.read_text()), "num_hidden_layers": 9}))
    lacking = rf"weight 'model\.layers\.{layers}\.input_layernorm\.weight' is missing, and 62 more"
    with pytest.raises(ValueError, match=lacking):
        load_language_model(str(folder))


def test_a_tokenizer_with_more_tokens_than_the_model_is_refused(tmp_path: Path) -> None:
    folder = save_walker(tmp_path / "model", vocab_size=len(WORDS) - 1)
    with pytest.raises(ValueError, match=r"token 15 \('6'\) .* beyond the model's 15; resize"):
        load_language_model(str(folder))


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("generation_config.json", "[1]"),
        ("config.json", '{"model_type": "llama", "hidden_size": 16, "num_attention_heads": 7}'),
        ("tokenizer.json", "{}"),
    ],
)
def test_broken_files_are_a_line_of_text(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = save_walker(tmp_path / "model")
    (folder / name).write_text(text)
    for words in (["plan", "demo", "--policy.model"], ["eval", "--model"]):
        with pytest.raises(SystemExit) as stop:
            main([*words, str(folder), "--env.generated-games=20", "--env.evaluation-tasks=5"])
        assert stop.value.code == 2
        assert f"in {folder} cannot be read" in (said := capsys.readouterr().err) or (
            f"model folder {folder} cannot be loaded" in said
        )
