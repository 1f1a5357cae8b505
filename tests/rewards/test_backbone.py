from dataclasses import replace

import numpy as np
import pytest
import torch
from transformers import AutoTokenizer

from chatting import STRIPPING, letter_tokenizer, small_tokenizer
from rewardswap.envs.base import Observation
from rewardswap.models.batching import rows_of
from rewardswap.models.loading import load_language_model, model_folder
from rewardswap.rewards.backbone import make_backbone
from rewardswap.rewards.config import PRESETS
from rewardswap.rewards.features import fingerprint, frozen_copy
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.rewards.rereading import reread
from rewardswap.rollout.context import ChatContext
from rewardswap.types import Task, Trajectory, Turn
from templates import FAMILIES
from walking import save_walker

ACTIONS = ("look", "open door 1", "open door 2")
OBSERVATIONS = ("you see door 1 2 3", "lose", "you see door", "win")


def played(tokenizer, *, cut: int | None = None, second_end: str | None = None) -> Trajectory:
    """A chat as a rollout tells it; the action of turn `cut` lacks its end token.

    Actions end by `second_end` if there is one, else by the tokenizer's own end token.
    """
    end = tokenizer.convert_tokens_to_ids(second_end or tokenizer.eos_token)
    context = ChatContext(tokenizer, "", [end])
    conversation = context.conversation(seen(OBSERVATIONS[0]))
    turns = []
    for k, action in enumerate(ACTIONS):
        ids = tokenizer.encode(action, add_special_tokens=False)
        ids = np.array(ids if k == cut else [*ids, end], dtype=np.int64)
        before = conversation.context_ids, conversation.extends
        conversation.reply(ids, action, seen(OBSERVATIONS[k + 1]))
        turns.append(
            Turn(
                observation=OBSERVATIONS[k],
                context_ids=before[0],
                extends=before[1],
                action_ids=ids,
                logprobs=np.full(len(ids), -0.5, dtype=np.float32),
                action=action,
                valid=True,
                truncated=False,
                reward=0.0,
                state_key=str(k),
            )
        )
    return Trajectory(
        task=Task("door-2", "doors"),
        index=0,
        turns=tuple(turns),
        final_observation=OBSERVATIONS[-1],
        final_context_ids=context.following(turns[-1].action_ids, OBSERVATIONS[-1]),
        outcome=1.0,
        success=True,
        stop="done",
        policy_version=0,
        task_score=1.0,
    )


def seen(text: str) -> Observation:
    return Observation(text, (), "state", 0.0)


def same(first: Trajectory, second: Trajectory) -> bool:
    pairs = zip(first.turns, second.turns, strict=True)
    return all(
        np.array_equal(a.context_ids, b.context_ids)
        and np.array_equal(a.action_ids, b.action_ids)
        and a.extends == b.extends
        for a, b in pairs
    ) and np.array_equal(first.final_context_ids, second.final_context_ids)


def test_text_read_anew_by_the_same_tokenizer_is_what_was_played() -> None:
    told = played(small_tokenizer())
    again = reread(told, small_tokenizer())
    assert same(again, told)
    assert all((turn.logprobs == 0).all() for turn in again.turns)
    assert (again.outcome, again.task, again.stop) == (told.outcome, told.task, told.stop)


@pytest.mark.parametrize("name", FAMILIES)
def test_families_of_templates_are_read_as_they_are_played(name: str) -> None:
    family = FAMILIES[name]
    tokenizer = family.tokenizer()
    told = played(tokenizer, second_end=family.second_end if name == "Gemma" else None)
    again = reread(told, tokenizer)
    rows = [[row.tokens.tolist() for row in rows_of(t, 0)] for t in (told, again)]
    assert rows[0] == rows[1]


def test_the_small_agents_tokens_come_back() -> None:
    folder = model_folder("base-agent")
    tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
    told = played(tokenizer)
    assert same(reread(told, tokenizer), told)


def test_other_tokens_say_the_same_text() -> None:
    letters = letter_tokenizer()
    again = reread(played(small_tokenizer()), letters)
    (row,) = rows_of(again, 0)
    chat = "".join(
        f"<user>{said}<end>\n<assistant>{action}<end>\n"
        for said, action in zip(OBSERVATIONS, ACTIONS, strict=False)
    )
    assert letters.decode(row.tokens) + "\n" == chat
    # an action is read at its end token, an observation at the header behind it
    for k, start in row.spans:
        action = again.turns[k].action_ids
        assert letters.decode(action) == ACTIONS[k] + "<end>"
        assert row.tokens[start - 1] == letters.convert_tokens_to_ids("<assistant>")
    assert letters.decode(again.final_context_ids) == "\n<user>win<end>\n<assistant>"


def test_a_cut_action_is_told_with_its_end() -> None:
    assert same(
        reread(played(small_tokenizer(), cut=1), small_tokenizer()), played(small_tokenizer())
    )


def test_rewritten_history_starts_a_row() -> None:
    stripping = letter_tokenizer(template=STRIPPING)
    told = played(small_tokenizer())
    thought = replace(told.turns[1], action="hm</think>look")
    told = replace(told, turns=(told.turns[0], thought, told.turns[2]))
    again = reread(told, stripping)
    assert [turn.extends for turn in again.turns] == [False, True, False]
    first, second = rows_of(again, 0)
    assert "hm</think>look" in stripping.decode(first.tokens)
    assert "hm" not in stripping.decode(second.tokens)
    assert "look" in stripping.decode(second.tokens)


def test_an_end_that_was_not_read_stays_unread() -> None:
    told = replace(played(small_tokenizer()), final_context_ids=np.array([], dtype=np.int64))
    assert len(reread(told, letter_tokenizer()).final_context_ids) == 0


def test_what_cannot_be_told_names_the_task() -> None:
    told = played(small_tokenizer())
    silent = replace(told, turns=(replace(told.turns[0], action=""), *told.turns[1:]))
    open_end = letter_tokenizer(template="{% for m in messages %}{{ m.content }}|{% endfor %}")
    with pytest.raises(ValueError, match=r"turn 0 of task 'door-2', episode 0 says ''"):
        reread(silent, open_end)
    failing = letter_tokenizer(template="{{ raise_exception('no chat') }}")
    with pytest.raises(ValueError, match=r"fails at turn 0 of task 'door-2'.*no chat"):
        reread(told, failing)


@pytest.fixture
def walker(tmp_path):
    """A model folder with another tokenizer than the made-up episodes'."""
    return save_walker(tmp_path / "walker", max_position_embeddings=128)


def test_another_backbone_reads_text(backbone, revealing, walker, tmp_path) -> None:
    config = replace(PRESETS["after_observation"], backbone=str(walker), epochs=2)
    model = ProcessRewardModel(backbone, config)
    loaded = load_language_model(str(walker))
    assert model.fingerprint == fingerprint(frozen_copy(loaded.model))
    quality = model.fit(revealing)
    assert quality.held_out_trajectories == 64
    features = model.features(revealing[:1]).values
    chat = []
    texts = [turn.observation for turn in revealing[0].turns]
    for text, turn in zip(texts[:2], revealing[0].turns, strict=False):
        chat += [{"role": "user", "content": text}, {"role": "assistant", "content": turn.action}]
    chat.append({"role": "user", "content": texts[2]})
    prompt = loaded.tokenizer.apply_chat_template(
        chat, add_generation_prompt=True, return_dict=True, return_tensors="pt"
    )["input_ids"]
    with torch.no_grad():
        states = loaded.model(prompt, output_hidden_states=True).hidden_states
    expected = torch.cat([layer[0, -1] for layer in states])
    torch.testing.assert_close(features[1], expected, atol=1e-5, rtol=0)
    model.save_pretrained(tmp_path / "prm")
    again = ProcessRewardModel.from_pretrained(tmp_path / "prm", backbone)
    assert torch.equal(again.rewards(revealing[:1])[0], model.rewards(revealing[:1])[0])


def test_the_policys_own_trunk_reads_the_sampled_tokens(backbone, revealing) -> None:
    reader = make_backbone("policy", backbone)
    assert reader.tokenizer is None
    assert reader.readable(revealing) is revealing


def test_a_backbone_that_cannot_read_is_refused(backbone, revealing, walker, tmp_path) -> None:
    mute = save_walker(tmp_path / "mute", template=None)
    with pytest.raises(
        ValueError, match=r"no chat template.*chat_template\.jinja.*backbone policy"
    ):
        make_backbone(str(mute), backbone)
    with pytest.raises(ValueError, match=r"`backbone` is '/nowhere'.*does not exist"):
        make_backbone("/nowhere", backbone)
    (mute / "tokenizer.json").write_text("no")
    with pytest.raises(ValueError, match=r"`backbone` is .*cannot be loaded"):
        make_backbone(str(mute), backbone)
    short = save_walker(tmp_path / "short", max_position_embeddings=20)
    with pytest.raises(ValueError, match=r"task 'task-0', episode 0 has \d+ tokens .* holds 20"):
        make_backbone(str(short), backbone).readable(revealing)
