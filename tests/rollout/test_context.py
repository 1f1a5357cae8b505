"""What stands between two actions, token by token."""

import numpy as np
import pytest

from chatting import STRIPPING, small_tokenizer
from rewardswap.rollout.context import ChatContext

IDS = {word: n for n, word in enumerate(small_tokenizer().convert_ids_to_tokens(range(18)))}


def ids(*words: str) -> list[int]:
    return [IDS[word] for word in words]


def said(*words: str) -> np.ndarray:
    return np.array(ids(*words))


def test_the_first_prompt_is_the_template_with_the_header_of_the_action() -> None:
    conversation = ChatContext(small_tokenizer(), "").conversation("look")
    assert conversation.context_ids.tolist() == ids("<user>", "look", "<end>", "\n", "<assistant>")
    assert not conversation.extends
    system = ChatContext(small_tokenizer(), "win").conversation("look")
    assert system.context_ids.tolist()[:4] == ids("<system>", "win", "<end>", "\n")


def test_the_sampled_end_token_is_not_repeated_and_the_newline_stands_once() -> None:
    conversation = ChatContext(small_tokenizer(), "").conversation("look")
    conversation.reply(said("open", "<end>"), "open", "lose")
    assert conversation.extends
    expected = ids("\n", "<user>", "lose", "<end>", "\n", "<assistant>")
    assert conversation.context_ids.tolist() == expected
    assert conversation.token_count == 5 + 2 + 6


def test_a_cut_action_gets_its_end_token_in_the_context() -> None:
    conversation = ChatContext(small_tokenizer(), "").conversation("look")
    conversation.reply(said("open", "door"), "open door", "lose")
    assert conversation.context_ids.tolist()[:3] == ids("<end>", "\n", "<user>")


def test_a_second_end_token_ends_an_action_too() -> None:
    context = ChatContext(small_tokenizer(), "", end_token_ids=ids("<stop>"))
    conversation = context.conversation("look")
    conversation.reply(said("open", "<stop>"), "open", "lose")
    assert conversation.context_ids.tolist()[:2] == ids("\n", "<user>")
    assert context.action_text(said("open", "door", "<stop>")) == "open door"


def test_rows_of_tokens_equal_the_rendered_chat() -> None:
    context = ChatContext(small_tokenizer(), "")
    conversation = context.conversation("look")
    row = [*conversation.context_ids, *said("open", "<end>")]
    conversation.reply(said("open", "<end>"), "open", "lose")
    row += [*conversation.context_ids]
    chat = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "open"},
        {"role": "user", "content": "lose"},
    ]
    assert row == context.tokens(context.render(chat)).tolist()


def test_a_template_that_strips_thinking_starts_a_whole_prompt_at_every_turn() -> None:
    context = ChatContext(small_tokenizer(STRIPPING), "")
    assert not context.extends
    conversation = context.conversation("look")
    conversation.reply(said("open", "<end>"), "open", "lose")
    assert not conversation.extends
    assert conversation.context_ids.tolist()[:2] == ids("<user>", "look")
    assert conversation.token_count == len(conversation.context_ids)


def test_without_a_chat_template_the_way_out_is_named() -> None:
    with pytest.raises(ValueError, match=r"no chat template.*chat_template\.jinja"):
        ChatContext(small_tokenizer(None), "")
