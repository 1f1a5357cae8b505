"""The supervised stage: packing, schedule, and a resume that changes no bit."""

from dataclasses import replace

import pytest
import torch

from rewardswap.checkpoints.files import Checkpoints
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
