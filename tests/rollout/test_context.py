"""What stands between two actions, token by token."""

import numpy as np
import pytest

from chatting import STRIPPING, TEMPLATE, small_tokenizer
from rewardswap.envs.base import Observation
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.formats import Reading

IDS = {word: n for n, word in enumerate(small_tokenizer().convert_ids_to_tokens(range(19)))}


def ids(*words: str) -> list[int]:
    return [IDS[word] for word in words]


def heard(text: str) -> Observation:
    return Observation(text, (), "", 0.0)


def said(*words: str) -> np.ndarray:
    return np.array(ids(*words))


def test_the_first_prompt_is_the_template_with_the_header_of_the_action() -> None:
    conversation = ChatContext(small_tokenizer(), "").conversation(heard("look"))
    assert conversation.context_ids.tolist() == ids("<user>", "look", "<end>", "\n", "<assistant>")
    assert not conversation.extends
    system = ChatContext(small_tokenizer(), "win").conversation(heard("look"))
    assert system.context_ids.tolist()[:4] == ids("<system>", "win", "<end>", "\n")


def test_the_sampled_end_token_is_not_repeated_and_the_newline_stands_once() -> None:
    conversation = ChatContext(small_tokenizer(), "").conversation(heard("look"))
    conversation.reply(said("open", "<end>"), "open", heard("lose"))
    assert conversation.extends
    expected = ids("\n", "<user>", "lose", "<end>", "\n", "<assistant>")
    assert conversation.context_ids.tolist() == expected
    assert conversation.token_count == 5 + 2 + 6


def test_a_cut_action_gets_its_end_token_in_the_context() -> None:
    conversation = ChatContext(small_tokenizer(), "").conversation(heard("look"))
    conversation.reply(said("open", "door"), "open door", heard("lose"))
    assert conversation.context_ids.tolist()[:3] == ids("<end>", "\n", "<user>")


def test_a_second_end_token_ends_an_action_too() -> None:
    context = ChatContext(small_tokenizer(), "", end_token_ids=ids("<stop>"))
    conversation = context.conversation(heard("look"))
    conversation.reply(said("open", "<stop>"), "open", heard("lose"))
    assert conversation.context_ids.tolist()[:2] == ids("\n", "<user>")
    assert context.read(said("open", "door", "<stop>")) == Reading("open door", True)


def test_rows_of_tokens_equal_the_rendered_chat() -> None:
    context = ChatContext(small_tokenizer(), "")
    conversation = context.conversation(heard("look"))
    row = [*conversation.context_ids, *said("open", "<end>")]
    conversation.reply(said("open", "<end>"), "open", heard("lose"))
    row += [*conversation.context_ids]
    chat = [
        {"role": "user", "content": "look"},
        {"role": "assistant", "content": "open"},
        {"role": "user", "content": "lose"},
    ]
    assert row == context.template.tokens(context.template.render(chat)).tolist()


def test_a_template_that_strips_thinking_starts_anew_only_after_thinking() -> None:
    context = ChatContext(small_tokenizer(STRIPPING), "")
    assert context.may_extend and not context.always_extends
    conversation = context.conversation(heard("look"))
    conversation.reply(said("open", "<end>"), "open", heard("lose"))
    assert conversation.extends
    assert conversation.context_ids.tolist()[:2] == ids("\n", "<user>")
    conversation.reply(said("see", "</think>", "door", "<end>"), "see </think> door", heard("lose"))
    assert not conversation.extends
    # three messages of the user and two of the assistant, without what was thought
    first, second = ids("<user>", "look", "<end>", "\n"), ids("<user>", "lose", "<end>", "\n")
    open_, door = (ids("<assistant>", word, "<end>", "\n") for word in ("open", "door"))
    whole = [*first, *open_, *second, *door, *second, *ids("<assistant>")]
    assert conversation.context_ids.tolist() == whole
    assert conversation.token_count == len(whole)
    conversation.reply(said("open", "<end>"), "open", heard("win"))
    assert conversation.extends
    assert conversation.token_count == len(whole) + 2 + 6


def test_a_template_that_forgets_the_beginning_never_extends() -> None:
    context = ChatContext(small_tokenizer(TEMPLATE.replace("messages", "messages[-2:]")), "")
    assert not context.may_extend
    conversation = context.conversation(heard("look"))
    conversation.reply(said("open", "<end>"), "open", heard("lose"))
    assert not conversation.extends
    assert conversation.context_ids.tolist()[:2] == ids("<assistant>", "open")
    assert conversation.token_count == len(conversation.context_ids)


def test_a_template_without_end_tokens_adds_none() -> None:
    context = ChatContext(small_tokenizer(TEMPLATE.replace("<end>", "")), "", ids("\n"))
    assert context.following(said("open"), "lose").tolist()[:2] == ids("\n", "<user>")
    bare = ChatContext(small_tokenizer(TEMPLATE.replace("<end>\n", " ")), "")
    assert bare.following(said("open"), "lose").tolist() == ids("<user>", "lose", "<assistant>")


def test_what_follows_the_last_action_is_told_with_a_header_that_nothing_follows() -> None:
    context = ChatContext(small_tokenizer(), "")
    expected = ids("\n", "<user>", "win", "<end>", "\n", "<assistant>")
    assert context.following(said("open", "<end>"), "win").tolist() == expected
    assert context.following(said("open"), "win").tolist() == [*ids("<end>"), *expected]


def test_action_text_has_no_special_token_and_no_outer_space() -> None:
    context = ChatContext(small_tokenizer(), "")
    assert context.read(said("open", "<user>", "door", "<end>")) == Reading("open door", True)
    assert context.read(said("<end>")) == Reading("", True)


@pytest.mark.parametrize("broken", ["{{ 1 / 0 }}", "{{ 'x' + 1 }}", "{{ x.y.z }}", "{% if %}"])
def test_a_template_that_raises_is_refused(broken: str) -> None:
    with pytest.raises(ValueError, match=r"the chat template of .* cannot be used: "):
        ChatContext(small_tokenizer(TEMPLATE + broken), "rules")


def test_without_a_chat_template_the_way_out_is_named() -> None:
    with pytest.raises(ValueError, match=r"no chat template.*chat_template\.jinja"):
        ChatContext(small_tokenizer(None), "")


def test_a_template_without_the_assistant_is_refused() -> None:
    deaf = TEMPLATE.replace("in messages", "in messages if m.role == 'user'")
    with pytest.raises(ValueError, match="leaves out what the assistant said"):
        ChatContext(small_tokenizer(deaf), "")


def test_a_template_whose_end_would_never_stop_an_action_is_refused() -> None:
    with pytest.raises(ValueError, match=r"'<stop>', which is no end token.*add 1 to eos_token_id"):
        ChatContext(small_tokenizer(TEMPLATE.replace("<end>", "<stop>")), "")
