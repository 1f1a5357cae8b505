"""A small model made on the spot: it knows the words, says commands, and nothing of when."""

import pytest
import torch

from rewardswap.envs.base import Observation
from rewardswap.models.small_model import small_model, word_tokenizer
from rewardswap.rollout.context import ChatContext
from training import parameters

COMMANDS = ["go north", "go south", "take", "drop the lamp"]


def said(seed: int, told: str) -> list[str]:
    """What a model says to some words, drawn 200 times at temperature 1."""
    made = small_model(["a lamp is here , go !"], COMMANDS, seed)
    opening = ChatContext(made.tokenizer, "").conversation(Observation(told, (), "", 0.0))
    ids = torch.from_numpy(opening.context_ids)
    torch.manual_seed(0)
    drawn = made.model.generate(
        ids.repeat(200, 1), attention_mask=torch.ones(200, len(ids)), do_sample=True
    )
    found = made.tokenizer.batch_decode(drawn[:, len(ids) :], skip_special_tokens=True)
    return list(found)


def test_it_says_each_command_about_as_often_whatever_it_reads() -> None:
    for told in ("a lamp is here", "go , lamp !"):
        found = said(0, told)
        counts = [found.count(command) for command in COMMANDS]
        # each is drawn in 0.25 of the lessons; what is no command stays rare
        assert min(counts) > 10 and sum(counts) > 150, counts


def test_the_seed_decides_every_bit_and_no_stream_is_moved() -> None:
    before = torch.get_rng_state()
    one, same, other = (small_model([], COMMANDS, seed) for seed in (1, 1, 2))
    assert torch.equal(torch.get_rng_state(), before)
    assert torch.equal(parameters(one), parameters(same))
    assert not torch.equal(parameters(one), parameters(other))
    assert one.action_tokens == 4 and one.end_token_ids == (1,)


def test_stops_behind_a_word_are_words_of_their_own() -> None:
    tokenizer = word_tokenizer(["You see 3.5 keys, a door!! don't go-on."])
    words = tokenizer.convert_ids_to_tokens(tokenizer.encode("keys, 3.5 door!! don't go-on. moon"))
    assert words == ["keys", ",", "3.5", "door", "!!", "don't", "go-on", ".", "<unk>"]


def test_what_it_cannot_say_is_refused() -> None:
    with pytest.raises(ValueError, match="needs at least one command that it may say"):
        small_model(["a"], [])
    for command in ("go  north", "stop.", "", " go"):
        with pytest.raises(ValueError, match="when its words are put together; have commands of"):
            small_model(["a"], ["go", command])
    with pytest.raises(ValueError, match=r"there are 5000\d words, at most 50000 are taken"):
        small_model([" ".join(map(str, range(50_001)))], ["go"])
