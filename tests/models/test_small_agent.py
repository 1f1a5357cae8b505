"""The small agent's tokenizer and the folder that ships with the package."""

import re

import pytest
import torch
from transformers import AutoModelForCausalLM, AutoTokenizer

from rewardswap.envs.alfworld.generator import RoomSize, generate_game
from rewardswap.envs.alfworld.world import GameWorld
from rewardswap.models.loading import model_folder
from rewardswap.models.small_agent import build_model, build_tokenizer, entity_kinds
from rewardswap.sft.alfworld import AlfworldLessons

FOLDER = model_folder("base-agent")


@pytest.fixture(scope="module")
def tokenizer():
    return build_tokenizer()


def test_an_entity_with_its_number_is_one_token(tokenizer):
    tokens = tokenizer.tokenize("take mug 1 from cabinet 2")
    assert tokens == ["take", "mug 1", "from", "cabinet 2"]


def test_numbers_beyond_the_joint_tokens_are_a_word_and_a_number(tokenizer):
    assert tokenizer.tokenize("open drawer 27") == ["open", "drawer", "27"]
    assert tokenizer.tokenize("go to fridge 12") == ["go", "to", "fridge", "12"]


def test_a_name_that_only_ends_like_an_entity_is_not_split(tokenizer):
    assert tokenizer.tokenize("xmug 1") == [tokenizer.unk_token, "1"]


def test_every_kind_with_every_official_number_comes_back(tokenizer):
    for kind in entity_kinds():
        for number in range(1, 28):
            ids = tokenizer(f"{kind} {number}")["input_ids"]
            assert tokenizer.unk_token_id not in ids
            assert tokenizer.decode(ids) == f"{kind} {number}"


@pytest.mark.parametrize("size", [RoomSize(), RoomSize((12, 16), (20, 30), 8)])
def test_every_admissible_action_and_observation_comes_back(tokenizer, size):
    for seed in range(12):
        game = generate_game(seed, size)
        world = GameWorld({"only": [game]}, style="short", turn_limit=50)
        environment = world.make()
        observation = environment.reset(world.tasks("only")[0])
        for command in game.walkthrough:
            for text in (observation.text, *observation.admissible):
                ids = tokenizer(text)["input_ids"]
                assert tokenizer.unk_token_id not in ids, text
                assert tokenizer.decode(ids) == re.sub(r"\s+", " ", text).strip()
            observation = environment.step(command).observation


def test_a_demonstration_marks_the_action_and_its_end(tokenizer):
    episode = AlfworldLessons().record(1, tokenizer)
    tokens = tokenizer.convert_ids_to_tokens(episode.ids)
    for before, token, mine in zip(["", *tokens], tokens, episode.by_agent, strict=False):
        if token == "<act>":
            assert not mine
        if before == "<act>" or token == "<end>":
            assert mine
        if before == "<end>":
            assert not mine


def test_the_template_ends_a_turn_once_and_asks_for_the_next(tokenizer):
    chat = [
        {"role": "user", "content": "you see shelf 1"},
        {"role": "assistant", "content": "go to shelf 1"},
        {"role": "user", "content": "nothing happens ."},
    ]
    text = tokenizer.apply_chat_template(chat, tokenize=False, add_generation_prompt=True)
    expected = "you see shelf 1 <act> go to shelf 1 <end> nothing happens . <act>"
    assert tokenizer.decode(tokenizer(text)["input_ids"]) == expected


def test_same_seed_same_weights_and_the_global_stream_is_left_alone(tokenizer):
    torch.manual_seed(4)
    expected = torch.rand(1)
    torch.manual_seed(4)
    first, second = build_model(tokenizer, 1), build_model(tokenizer, 1)
    assert torch.equal(torch.rand(1), expected)
    pairs = zip(first.parameters(), second.parameters(), strict=True)
    assert all(torch.equal(a, b) for a, b in pairs)


def test_the_shipped_folder_loads_with_plain_transformers():
    shipped = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    model = AutoModelForCausalLM.from_pretrained(FOLDER, local_files_only=True)
    ids = shipped("you see shelf 1 . task : put a mug in shelf . <act>", return_tensors="pt")
    with torch.inference_mode():
        logits = model(input_ids=ids["input_ids"]).logits
    assert logits.shape[-1] == len(shipped)
    assert shipped.decode(logits[0, -1].argmax()) in ("go", "open")


def test_the_shipped_tokenizer_is_the_one_that_is_built(tokenizer):
    shipped = AutoTokenizer.from_pretrained(FOLDER, local_files_only=True)
    assert shipped.get_vocab() == tokenizer.get_vocab()
    assert shipped.chat_template == tokenizer.chat_template
    text = "move mug 1 to shelf 17 <end> nothing happens . <act>"
    assert shipped(text)["input_ids"] == tokenizer(text)["input_ids"]


def test_the_shipped_folder_is_small():
    assert sum(path.stat().st_size for path in FOLDER.rglob("*")) <= 6_000_000


def test_the_shipped_folder_says_which_wording_it_reads():
    model = AutoModelForCausalLM.from_pretrained(FOLDER, local_files_only=True)
    assert model.config.observation_wording == "short"
