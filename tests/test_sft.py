"""The supervised stage: packing, schedule, and a resume that changes no bit."""

import errno
import os
from dataclasses import replace

import pytest
import torch

from commands import refused
from rewardswap import whole
from rewardswap.checkpoints.files import Checkpoints
from rewardswap.lock import locked
from rewardswap.models.small_agent import build_model, build_tokenizer
from rewardswap.sft import BaseAgentConfig, train_base_agent
from rewardswap.sft.alfworld import AlfworldLessons
from rewardswap.sft.rows import Episode, pack
from rewardswap.sft.training import next_token_loss, schedule


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer()


@pytest.fixture
def tiny(tmp_path):
    return BaseAgentConfig(
        tmp_path / "agent",
        steps=4,
        episodes_per_step=2,
        warmup_steps=2,
        evaluation_tasks=0,
        checkpoint_every=2,
    )


def weights_of(folder):
    return (folder / "model.safetensors").read_bytes()


def test_a_resume_gives_the_same_bits(tiny, tmp_path):
    whole = replace(tiny, output=tmp_path / "whole")
    train_base_agent(whole)

    class StoppedError(Exception):
        pass

    def stop(numbers):
        if numbers["step"] == 3:
            raise StoppedError

    with pytest.raises(StoppedError):
        train_base_agent(tiny, stop)
    assert Checkpoints(tiny.checkpoint, keep=1).numbers() == [2]
    train_base_agent(tiny)
    assert weights_of(tiny.output) == weights_of(whole.output)


def test_another_seed_gives_other_weights(tiny, tmp_path):
    other = replace(tiny, output=tmp_path / "other", seed=1)
    train_base_agent(tiny)
    train_base_agent(other)
    assert weights_of(tiny.output) != weights_of(other.output)


def test_a_checkpoint_of_other_settings_is_refused(tiny):
    train_base_agent(tiny)
    with pytest.raises(ValueError, match="made with learning_rate"):
        train_base_agent(replace(tiny, learning_rate=0.1))


@pytest.mark.parametrize("name", ["manifest.json", "state.json", "tensors.safetensors"])
def test_a_damaged_checkpoint_is_refused(tiny, name):
    """And stays: what is in it may be worth mending."""
    train_base_agent(tiny)
    (file,) = tiny.checkpoint.glob(f"*/{name}")
    file.write_bytes(file.read_bytes()[:-2])
    with pytest.raises(
        ValueError, match=r"none of the 1 checkpoints in .*agent.checkpoint is whole"
    ):
        train_base_agent(tiny)
    assert file.exists()


def spoilt(part):
    """Ways to spoil a part of a state, each with what is said of it."""
    ways = {
        "settings": (5, "no attribute 'get'"),
        "tokens": (None, "tokens is None"),
        "success": ("x", "success is 'x'"),
        "model": ({}, "Missing key"),
        "optimizers": ([], "it has 0 optimizers"),
    }
    return {part: ways[part][0]}, ways[part][1]


@pytest.mark.parametrize("part", ["settings", "tokens", "success", "model", "optimizers"])
def test_a_checkpoint_with_strange_content_is_refused_and_named(tiny, part):
    """Its sums are right: somebody wrote it so."""
    train_base_agent(tiny)
    checkpoints = Checkpoints(tiny.checkpoint, keep=9)
    changed, said = spoilt(part)
    checkpoints.write(5, {**checkpoints.newest().state, **changed})
    with pytest.raises(ValueError, match=rf"00000005 does not fit this training \(.*{said}"):
        train_base_agent(tiny)
    assert checkpoints.numbers() == [4, 5]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (lambda kept: kept["param_groups"][0].update(weight_decay=0.5), "has other settings"),
        (lambda kept: kept["state"].clear(), "knows 0 of"),
        (lambda kept: kept["state"][0].clear(), r"keeps \[\] of weight 0"),
        (lambda kept: kept["state"][0].update(momentum_buffer=1.0), "is no tensor of"),
        (lambda kept: kept["state"][0].update(momentum_buffer=torch.ones(1)), "is no tensor of"),
    ],
)
def test_an_optimizer_that_would_go_on_otherwise_is_refused(tiny, spoil, said):
    train_base_agent(tiny)
    checkpoints = Checkpoints(tiny.checkpoint, keep=9)
    state = checkpoints.newest().state
    spoil(state["optimizers"][0])
    checkpoints.write(5, state)
    with pytest.raises(ValueError, match=rf"00000005 does not fit this training \(.*{said}"):
        train_base_agent(tiny)


def test_a_refusal_leaves_the_checkpoints_as_they_are(tiny):
    """Newer damaged ones go only when the training goes on, which says which they were."""
    train_base_agent(tiny)
    checkpoints = Checkpoints(tiny.checkpoint, keep=9)
    checkpoints.write(5, checkpoints.newest().state)
    (tiny.checkpoint / "00000005" / "state.json").write_text("")
    with pytest.raises(ValueError, match="made with learning_rate"):
        train_base_agent(replace(tiny, learning_rate=0.1))
    assert checkpoints.numbers() == [4, 5]
    said = []
    train_base_agent(tiny, warn=said.append)
    assert checkpoints.numbers() == [4]
    (words,) = said
    assert words.startswith("passed over a checkpoint: ")
    assert "00000005/state.json is cut or damaged" in words


def test_what_is_the_users_stays(tiny):
    """Beside the agent, among its checkpoints, and in its folder."""
    kept = [
        tiny.output.with_name("agent.writing") / "notes.txt",
        tiny.checkpoint / "20261130" / "thesis.tex",
        tiny.output / "README.md",
    ]
    for path in kept:
        path.parent.mkdir(parents=True)
        path.write_text("mine")
    train_base_agent(replace(tiny, resume=False))
    assert [path.read_text() for path in kept] == ["mine"] * 3
    files = [path for path in tiny.output.iterdir() if path.is_file()]
    assert len({path.stat().st_mode for path in files}) == 1
    assert not [path for path in tiny.output.parent.rglob(".*") if path.name != ".lock"]


def test_one_process_trains_an_agent(tiny, capsys):
    with locked(tiny.checkpoint, "{}"):
        said = refused(capsys, "sft", "--output", str(tiny.output))
    assert f"is in use by the training of process {os.getpid()}; wait" in said


def test_an_output_that_cannot_be_is_refused_before_training(tiny, capsys):
    tiny.output.write_text("mine")
    said = refused(capsys, "sft", "--output", str(tiny.output))
    assert f"{tiny.output} is a file; give another --output" in said
    assert tiny.output.read_text() == "mine"
    below = tiny.output / "agent"
    assert "takes no folder" in refused(capsys, "sft", "--output", str(below))


@pytest.mark.parametrize("steps", ["2", "1"])
def test_a_full_disk_is_one_line(tiny, capsys, monkeypatch, steps):
    """At a checkpoint, and at the end: the older files stay as they are."""

    def full(path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(whole, "_sync", full)
    words = ["--steps", steps, "--checkpoint-every", "2", "--episodes-per-step", "2"]
    words += ["--evaluation-tasks", "0", "--output", str(tiny.output)]
    said = refused(capsys, "sft", *words, code=1)
    assert "cannot be written" in said
    assert "No space left on device" in said
    assert not tiny.output.exists()
    assert [path.name for path in tiny.checkpoint.iterdir()] == [".lock"]


def test_without_resume_it_begins_again(tiny):
    """From the first step, and its checkpoints take the place of those that lay there."""
    train_base_agent(tiny)
    seen = []
    train_base_agent(replace(tiny, steps=2, resume=False), lambda numbers: seen.append(numbers))
    assert len(seen) == 2
    assert Checkpoints(tiny.checkpoint, keep=1).numbers() == [2]


def test_training_stops_at_the_wanted_success(tiny):
    config = replace(
        tiny, evaluate_every=1, evaluation_tasks=2, stop_at=1e-9, env=AlfworldLessons(turn_limit=2)
    )
    numbers = train_base_agent(replace(config, steps=2))
    assert numbers["step"] in (1, 2)
    assert 0.0 <= numbers["success"] <= 1.0


@pytest.mark.parametrize("wrong", [{"steps": 0}, {"stop_at": 0.0}, {"stop_at": 1.5}])
def test_senseless_settings_are_refused(tiny, wrong):
    with pytest.raises(ValueError, match=next(iter(wrong))):
        replace(tiny, **wrong)


def test_packing_changes_no_loss(tokenizer):
    """Two episodes side by side weigh and score as in rows of their own."""
    model = build_model(tokenizer, 0).double()
    episodes = [AlfworldLessons().record(seed, tokenizer) for seed in (1, 2)]
    pad = tokenizer.pad_token_id
    together = pack(episodes, 512, 0.5, pad)
    longest = max(len(episode.ids) for episode in episodes)
    apart = pack(episodes, longest, 0.5, pad)
    assert (len(together.ids), len(apart.ids)) == (1, 2)
    torch.testing.assert_close(next_token_loss(model, together), next_token_loss(model, apart))


def test_packing_by_hand():
    """Rows of 4: the episode of 3 fills one; those of 2 and 2 share the other."""
    short = Episode([5, 6], [False, True], True)
    rows = pack([short, Episode([7, 8, 9], [False, True, False], True), short], 4, 0.5, 0)
    assert rows.ids.tolist() == [[7, 8, 9, 0], [5, 6, 5, 6]]
    assert rows.positions.tolist() == [[0, 1, 2, 0], [0, 1, 0, 1]]
    assert rows.weights.tolist() == [[0.0, 1.0, 0.5, 0.0], [0.0, 1.0, 0.0, 1.0]]


def test_rows_are_as_long_as_the_longest_episode():
    rows = pack([Episode([1, 2, 3], [True] * 3, True)], 2, 0.5, 0)
    assert rows.ids.tolist() == [[1, 2, 3]]


def test_the_schedule_warms_up_and_ends_at_zero():
    assert schedule(0, 50, 700) == pytest.approx(1 / 50)
    assert schedule(49, 50, 700) == pytest.approx(1.0)
    assert schedule(375, 50, 700) == pytest.approx(0.5)  # half of 650 steps of cosine
    assert schedule(700, 50, 700) == pytest.approx(0.0)


def test_noise_makes_demonstrations_longer(tokenizer):
    calm, noisy = AlfworldLessons(0.0, 0.0, 0.0), AlfworldLessons(0.6, 1.0, 0.0)

    def mean_length(lessons):
        episodes = [lessons.record(seed, tokenizer) for seed in range(20)]
        return sum(len(episode.ids) for episode in episodes) / 20

    assert mean_length(noisy) > mean_length(calm) + 15
