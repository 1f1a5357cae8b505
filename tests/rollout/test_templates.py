"""Templates of several families: what a row holds, token by token, and who starts a new one."""

import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chatting import Doors
from rewardswap.models.batching import rows_of
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.episodes import EpisodeRequest, Played, play
from rewardswap.rollout.formats import ACT
from rewardswap.rollout.prompting import make_context
from rewardswap.rollout.scripted import ScriptedEngine
from templates import FAMILIES, PLAIN, QWEN_2_5, Family, heard, table

PAGE = Path(__file__).parents[2] / "docs" / "rollouts.md"
SAID = [f"open door {number}" for number in (1, 2, 3)]
THOUGHT = [f"<think>perhaps {said[-1]}</think>\n\n{said}" for said in SAID]
CALLS = [
    f'<tool_call>{{"name": "act", "arguments": {{"action": "{said}"}}}}</tool_call>'
    for said in SAID
]


@pytest.fixture(params=FAMILIES)
def family(request: pytest.FixtureRequest) -> Family:
    return FAMILIES[request.param]


class Instructed(Doors):
    instructions = "Find the door."


def episode(context: ChatContext, said: Sequence[str], end: str) -> tuple[Played, ScriptedEngine]:
    """The third door, opened last."""
    tokenizer = context.template.tokenizer

    def say(session: str, turn: int) -> list[int]:
        return tokenizer.encode(said[turn] + end, add_special_tokens=False)  # type: ignore[no-any-return]

    engine = ScriptedEngine(say, list(context.end_token_ids), context_limit=9000)
    done = play(
        [EpisodeRequest(Doors().tasks("all")[2], 0)],
        Doors(),
        engine,
        context,
        sampling=SamplingParams(max_tokens=200),
        seed=0,
        policy_version=0,
        turn_limit=len(said),
    )
    return done, engine


def texts(context: ChatContext, rows: Sequence[Any]) -> list[str]:
    return [str(context.template.tokenizer.decode(row.tokens)) for row in rows]


def test_the_page_tells_which_templates_extend() -> None:
    assert table() in PAGE.read_text(encoding="utf-8"), "run tests/templates.py"


def test_the_page_names_tests_that_exist() -> None:
    named = re.findall(r"`(tests/\S+\.py)::(\w+)`", PAGE.read_text(encoding="utf-8"))
    assert len(named) > 10
    for path, test in named:
        assert f"def {test}(" in (PAGE.parents[1] / path).read_text(encoding="utf-8"), test


def test_a_row_is_the_rendered_chat_to_the_token(family: Family) -> None:
    context = family.context()
    end = family.second_end if family is FAMILIES["Gemma"] else family.end
    done, engine = episode(context, SAID, end)
    (trajectory,) = done.trajectories
    (row,) = rows_of(trajectory, 0)
    assert trajectory.success and done.counters["rewritten_history"] == 0
    chat = [{"role": "user", "content": "you see door 1 2 3"}]
    for said in SAID[:2]:
        chat += context.exchange(said, "lose")
    rendered = context.template.render(chat)
    (text,) = texts(context, [row])
    # the space that Mistral's template writes in front of an action was not sampled here
    assert text == (rendered + SAID[2] + end).replace("[/INST] ", "[/INST]")
    (read,) = engine.read.values()
    assert row.tokens.tolist() == [
        int(token)
        for context_ids, turn in zip(read, trajectory.turns, strict=True)
        for token in (*context_ids, *turn.action_ids)
    ]


@pytest.mark.parametrize("name", ["Qwen2.5", "Qwen3", "Llama 3", "Gemma"])
def test_either_end_token_ends_an_action_and_stands_once(name: str) -> None:
    family = FAMILIES[name]
    context = family.context()
    rows = {}
    for end in (family.end, family.second_end):
        done, _ = episode(context, SAID, end)
        (trajectory,) = done.trajectories
        assert not any(turn.truncated for turn in trajectory.turns)
        (row,) = rows_of(trajectory, 0)
        (rows[end],) = texts(context, [row])
        for said in SAID:
            assert rows[end].count(said + end) == 1
        assert f"{family.end}{family.second_end}" not in rows[end]
        assert f"{family.second_end}{family.end}" not in rows[end]
    same = rows[family.second_end]
    for said in SAID:
        same = same.replace(said + family.second_end, said + family.end)
    assert same == rows[family.end], "nothing but the sampled token is different"


def test_a_template_that_strips_thinking_starts_a_row_and_the_setting_keeps_it() -> None:
    qwen = FAMILIES["Qwen3"]
    done, _ = episode(context := qwen.context(), THOUGHT, "<end>")
    assert done.counters["rewritten_history"] == 2
    rows = texts(context, rows_of(done.trajectories[0], 0))
    assert [row.count("<think>") for row in rows] == [1, 1, 1]
    assert rows[2].count("open door") == 3
    done, _ = episode(context := qwen.context(thinking="kept"), THOUGHT, "<end>")
    assert done.counters["rewritten_history"] == 0
    (row,) = texts(context, rows_of(done.trajectories[0], 0))
    assert row.count("<think>perhaps") == 3
    assert [turn.action for turn in done.trajectories[0].turns] == SAID


def test_thinking_is_stripped_where_that_is_asked_for() -> None:
    context = FAMILIES["Qwen2.5"].context(thinking="stripped")
    done, _ = episode(context, THOUGHT, "<end>")
    assert done.counters["rewritten_history"] == 2
    last = texts(context, rows_of(done.trajectories[0], 0))[-1]
    assert last.count("<think>") == 1
    assert f"<im>assistant\n{SAID[0]}<end>" in last
    assert last.endswith(f"<im>assistant\n{THOUGHT[2]}<end>")
    done, _ = episode(context, SAID, "<end>")
    assert done.counters["rewritten_history"] == 0, "there was nothing to strip"


def test_thinking_that_is_forbidden_is_switched_off_and_not_in_form() -> None:
    context = FAMILIES["Qwen3"].context(thinking="forbidden")
    done, _ = episode(context, [*SAID[:2], THOUGHT[2]], "<end>")
    (trajectory,) = done.trajectories
    rows = texts(context, rows_of(trajectory, 0))
    assert all("<im>assistant\n<think>\n\n</think>\n\nopen" in row for row in rows[:2])
    assert [turn.valid for turn in trajectory.turns] == [True, True, False]
    assert [turn.action for turn in trajectory.turns] == SAID
    assert done.counters["ill_formed_actions"] == 1
    # the header's empty thinking is not in the history
    assert done.counters["rewritten_history"] == 2
    assert rows[1].count("</think>") == 1


def test_keeping_thinking_in_a_template_that_keeps_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match=r"thinking 'kept' needs a chat template.*take 'template'"):
        FAMILIES["Mistral"].context("You are in a house.", thinking="kept")


def test_without_a_system_role_the_text_stands_in_the_first_message() -> None:
    gemma = FAMILIES["Gemma"]
    context = make_context(gemma.tokenizer(), Instructed(), end_token_ids=[3])
    (first,) = texts(context, [type("Row", (), {"tokens": opening(context)})])
    assert first == "<bos><start>user\nFind the door.\n\nlook<eot>\n<start>model\n"
    assert context.remarks == (
        "The chat template has no system role: the instructions are in the first message.",
    )
    assert gemma.context().remarks == ()
    qwen = FAMILIES["Qwen2.5"]
    assert qwen.context("Find the door.").remarks == ()
    silent = Family(QWEN_2_5.replace("messages[0].content if", "'x' if"), qwen.specials, "<end>")
    assert not silent.context("Find the door.").system_apart, "it leaves the message out"


def opening(context: Any) -> np.ndarray:
    ids: np.ndarray = context.conversation(heard("look")).context_ids
    return ids


def test_a_template_that_rewrites_all_history_says_so() -> None:
    mistral = FAMILIES["Mistral"]
    assert mistral.context().remarks == ()
    assert mistral.context("Find the door.").remarks == (
        "The chat template rewrites its history: every turn is a row of its own.",
    )


def test_a_default_system_turn_is_what_the_engine_reads_and_the_row_holds() -> None:
    context = FAMILIES["Qwen2.5"].context()
    done, _ = episode(context, SAID, "<end>")
    (row,) = texts(context, rows_of(done.trajectories[0], 0))
    assert row.startswith("<im>system\nYou are a helper.<end>\n<im>user\nyou see")
    assert row.count("You are a helper.") == 1


def test_tools_are_told_by_the_template_where_it_can_else_in_the_systems_text(
    family: Family,
) -> None:
    context = family.context("Find the door.", action_format="tools")
    told = str(context.template.tokenizer.decode(opening(context)))
    assert told.count(ACT["function"]["description"]) == 1
    assert told.count("Find the door.") <= 1
    silent = [FAMILIES[name] for name in ("SmolLM2", "Gemma", "Mistral")]
    assert context.template.tells_tools == (family not in silent)
    assert ("Write a call in this form" in told) != context.template.tells_tools


def test_an_episode_of_tool_calls_is_won(family: Family) -> None:
    context = family.context(action_format="tools")
    end = family.second_end if family is FAMILIES["Gemma"] else family.end
    done, _ = episode(context, CALLS, end)
    (trajectory,) = done.trajectories
    assert trajectory.success
    assert [turn.action for turn in trajectory.turns] == SAID
    assert done.counters["unsent_actions"] == done.counters["ill_formed_actions"] == 0


def test_what_cannot_be_sent_spends_a_turn_and_steps_nothing() -> None:
    context = FAMILIES["Llama 3"].context(action_format="tools")
    said = [PLAIN, CALLS[0].replace("act", "buy", 1), CALLS[1] * 2, CALLS[0], CALLS[2]]
    done, _ = episode(context, said, "<eot>")
    (trajectory,) = done.trajectories
    assert trajectory.success and len(trajectory.turns) == 5
    assert done.counters["environment_steps"] == 2
    assert done.counters["unsent_actions"] == done.counters["ill_formed_actions"] == 3
    assert [turn.valid for turn in trajectory.turns] == [False, False, False, True, True]
    assert [turn.state_key for turn in trajectory.turns] == ["0", "0", "0", "0", "1"]
    assert [turn.reward for turn in trajectory.turns] == [0, 0, 0, 0.25, 0.25]
    assert [turn.action for turn in trajectory.turns] == [*said[:3], SAID[0], SAID[2]]
    told = [turn.observation for turn in trajectory.turns[1:4]]
    assert told == [
        "Nothing was done: the tool call is not valid JSON.",
        'Nothing was done: there is no tool "buy", only "act".',
        "Nothing was done: one tool call is needed, there are 2.",
    ]
    (row,) = texts(context, rows_of(trajectory, 0))
    assert all(text in row for text in told), "the agent reads why"


def test_an_agent_that_never_acts_ends_at_the_turn_cap() -> None:
    context = FAMILIES["Gemma"].context(action_format="tags")
    done, _ = episode(context, [PLAIN] * 4, "<eot>")
    (trajectory,) = done.trajectories
    assert (trajectory.stop, trajectory.outcome, len(trajectory.turns)) == ("turn_limit", 0.0, 4)
    assert (done.counters["environment_steps"], done.counters["unsent_actions"]) == (0, 4)
    assert trajectory.final_observation.startswith("Nothing was done: one <action>")
