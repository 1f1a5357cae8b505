"""A prompt of its own for every turn: what is read, sent, counted and kept as rows."""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from chatting import Doors, letter_tokenizer
from rewardswap.envs.alfworld.world import GameWorld
from rewardswap.envs.base import Observation, World
from rewardswap.envs.verl_agent import VERL_AGENT
from rewardswap.envs.webshop import ShopWorld
from rewardswap.models.batching import rows_of
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.episodes import COUNTERS, EpisodeRequest, Played, play
from rewardswap.rollout.formats import Reading
from rewardswap.rollout.prompting import CHAT, Context, make_context
from rewardswap.rollout.scripted import ScriptedEngine
from rewardswap.rollout.window import WindowContext

sys.path.insert(0, str(Path(__file__).parents[1] / "envs"))

from small_rooms import kitchen
from stocked_shop import MUG, stocked_catalogue

TOKENIZER = letter_tokenizer()
END = TOKENIZER.eos_token_id


def tokens(text: str) -> np.ndarray:
    return np.array(TOKENIZER.encode(text, add_special_tokens=False), dtype=np.int64)


def text_of(ids: Sequence[int] | np.ndarray) -> str:
    text: str = TOKENIZER.decode(ids)
    return text


def heard(text: str) -> Observation:
    return Observation(text, ("open", "close"), "", 0.0)


class Telling:
    """A style that writes down what it was given."""

    most_characters: int | None = None

    def prompt(
        self, first: str, history: Sequence[tuple[str, str]], taken: int, now: Observation
    ) -> str:
        pairs = "".join(f"({observation}: {action})" for observation, action in history)
        return f"{first} {taken} {pairs} {now.text} {','.join(now.admissible)}"

    def action(self, said: str) -> tuple[str, bool]:
        return said.upper(), said == "open"


class Brief(Telling):
    """... and that bears prompts of 40 characters."""

    most_characters = 40


def told(context: WindowContext, turns: int) -> list[str]:
    """The prompts of an episode in which the agent says 0, 1, ... and hears a, b, ..."""
    conversation = context.conversation(heard("start"))
    texts = [text_of(conversation.context_ids)]
    for turn in range(turns):
        conversation.reply(conversation.context_ids, str(turn), heard("abcdef"[turn]))
        assert not conversation.extends
        assert conversation.token_count == len(conversation.context_ids)
        texts.append(text_of(conversation.context_ids))
    assert all(text.startswith("<user>start ") for text in texts)
    assert all(text.endswith(" open,close<end>\n<assistant>") for text in texts)
    return [text.split(" ", 1)[1].split(" open")[0] for text in texts]


def test_a_prompt_tells_the_latest_turns_alone() -> None:
    assert told(WindowContext(TOKENIZER, Telling()), 4) == [
        "0  start",
        "1 (start: 0) a",
        "2 (start: 0)(a: 1) b",
        "3 (a: 1)(b: 2) c",
        "4 (b: 2)(c: 3) d",
    ]


def test_the_window_is_a_setting() -> None:
    assert told(WindowContext(TOKENIZER, Telling(), window=0), 2) == ["0  start", "1  a", "2  b"]
    assert told(WindowContext(TOKENIZER, Telling(), window=3), 3)[3] == "3 (start: 0)(a: 1)(b: 2) c"
    with pytest.raises(ValueError, match="window is -1"):
        WindowContext(TOKENIZER, Telling(), window=-1)


def test_a_prompt_that_is_too_long_is_told_without_history_and_counted() -> None:
    context = WindowContext(TOKENIZER, Brief())
    said = tokens("open")
    conversation = context.conversation(heard("start"))
    conversation.reply(said, "0123456789", heard("a"))
    assert text_of(conversation.context_ids)[6:46] == "start 1 (start: 0123456789) a open,close"
    assert conversation.counted == ()
    conversation = context.conversation(heard("start"))
    conversation.reply(said, "one letter too long"[:11], heard("a"))
    assert text_of(conversation.context_ids).startswith("<user>start 1  a open")
    assert conversation.counted == ("dropped_history",)
    conversation.reply(said, "2", heard("b"))
    assert conversation.counted == ("dropped_history",)
    conversation.reply(said, "3", heard("c"))  # the long turn is out of the window
    assert text_of(conversation.context_ids).startswith("<user>start 3 (a: 2)(b: 3) c open")
    assert conversation.counted == ()


def test_a_first_prompt_has_no_history_to_drop() -> None:
    conversation = WindowContext(TOKENIZER, Brief()).conversation(heard("x" * 60))
    assert conversation.counted == ()


def test_what_is_read_has_its_outer_space_but_no_special_token() -> None:
    context = WindowContext(TOKENIZER, Telling())
    ids = tokens(" open \n<end>")
    assert context.read(ids) == Reading(" OPEN \n", False)
    assert context.read(tokens("open<end>")) == Reading("OPEN", True)


def test_the_last_observation_is_told_as_in_a_chat() -> None:
    ids = tokens("open<end>")
    chat, window = ChatContext(TOKENIZER, ""), WindowContext(TOKENIZER, Telling())
    assert text_of(window.following(ids, "won")) == "\n<user>won<end>\n<assistant>"
    assert window.following(ids, "won").tolist() == chat.following(ids, "won").tolist()


def test_a_style_is_chosen_by_name() -> None:
    world = GameWorld({"train": [kitchen()]})
    chat = make_context(TOKENIZER, world)
    assert isinstance(chat, ChatContext) and isinstance(chat, Context)
    assert chat.system == world.instructions
    window = make_context(TOKENIZER, world, VERL_AGENT, window=3)
    assert isinstance(window, WindowContext) and isinstance(window, Context)
    assert (window.style, window.window) == (world.prompt_styles[VERL_AGENT], 3)


@pytest.mark.parametrize("world", [Doors(), GameWorld({}, "short")])
def test_a_style_that_a_world_has_not_is_named(world: World) -> None:
    message = r"no prompt style 'verl_agent' as it is worded; it has \['chat'\]"
    with pytest.raises(ValueError, match=message):
        make_context(TOKENIZER, world, VERL_AGENT)


@pytest.mark.parametrize("style", [CHAT, VERL_AGENT])
def test_end_tokens_are_passed_on(style: str) -> None:
    user = TOKENIZER.convert_tokens_to_ids("<user>")
    context = make_context(TOKENIZER, GameWorld({"train": [kitchen()]}), style, [user])
    ids = tokens("look<user>")
    assert context.read(ids).action == "look"
    assert text_of(context.following(ids, "x")) == "\n<user>x<end>\n<assistant>"


HOUSE = ["go to shelf 1", "take mug 2 from countertop 1", "move mug 2 to shelf 1"]
SHOP = ["search[blue mug]", f"click[{MUG}]", "click[dark blue]", "click[small]", "click[buy now]"]


def house() -> World:
    return GameWorld({"train": [kitchen()]})


def shop() -> World:
    return ShopWorld(stocked_catalogue())


def played(world: World, style: str, said: Sequence[str], **settings: Any) -> Played:
    """One episode of the first task whose goal is a small dark blue mug on a shelf, or so."""
    engine = ScriptedEngine(
        lambda session, turn: tokens(f"{said[turn]}<end>").tolist(),
        [END],
        context_limit=50_000,
    )
    environment = world.make()
    task = next(
        task
        for task in world.tasks("train")
        if "dark blue, and size: small" in (first := environment.reset(task).text)
        or "put some mug" in first
    )
    done = play(
        [EpisodeRequest(task, 0)],
        world,
        engine,
        make_context(TOKENIZER, world, style, window=settings.pop("window", 2)),
        sampling=SamplingParams(max_tokens=300),
        seed=0,
        policy_version=0,
        turn_limit=len(said),
    )
    assert set(done.counters) == set(COUNTERS)
    return done


def thought(action: str) -> str:
    return f"<think>Hm.</think> <action>{action}</action>"


@pytest.mark.parametrize("style", [CHAT, VERL_AGENT])
@pytest.mark.parametrize(("make", "actions"), [(house, HOUSE), (shop, SHOP)])
def test_both_worlds_are_won_in_both_styles(make: Any, actions: list[str], style: str) -> None:
    said = actions if style == CHAT else [thought(action) for action in actions]
    done = played(make(), style, said)
    (trajectory,) = done.trajectories
    assert trajectory.success and trajectory.outcome == trajectory.task_score == 1.0
    sent = actions if style == CHAT else [action.lower() for action in actions]
    assert [turn.action for turn in trajectory.turns] == sent
    assert all(turn.valid for turn in trajectory.turns)
    assert done.counters["ill_formed_actions"] == 0
    assert done.counters["rewritten_history"] == done.counters["dropped_history"] == 0
    extends = [turn.extends for turn in trajectory.turns]
    assert extends == [style == CHAT and place > 0 for place in range(len(actions))]
    rows = rows_of(trajectory, 0)
    assert len(rows) == (1 if style == CHAT else len(actions))


def test_every_prompt_is_a_row_that_tells_the_latest_turns() -> None:
    done = played(shop(), VERL_AGENT, [thought(action) for action in SHOP])
    (trajectory,) = done.trajectories
    for place, (row, turn) in enumerate(zip(rows_of(trajectory, 0), trajectory.turns, strict=True)):
        text = text_of(row.tokens)
        assert text == f"{text_of(turn.context_ids)}{thought(SHOP[place])}<end>"
        assert text.count("<user>") == text.count("<assistant>") == 1
        numbers = [n for n in range(9) if f"[Observation {n}: '" in text]
        assert numbers == list(range(max(1, place - 1), place + 1))
        assert text.count("Find me easy clean mugs") == 1
    assert "Action 4: 'click[small]']\nThis is step 5.\n" in text
    assert trajectory.turns[2].observation.startswith("Instruction: [SEP] Find me easy")


def test_what_is_not_in_form_is_sent_and_counted_and_not_valid() -> None:
    said = [
        "<action>search[blue mug]</action>",  # did not think
        "well, x" + SHOP[1],  # no tags: the last 20 characters
        thought("click[\u5927]"),
        thought("click[nothing]"),  # in form, but not on the page
        thought("click[red]"),
    ]
    done = played(shop(), VERL_AGENT, said)
    (trajectory,) = done.trajectories
    sent = ["search[blue mug]", "ll, xclick[b000000001]"[-20:], "click[\u5927]"]
    assert [turn.action for turn in trajectory.turns] == [*sent, "click[nothing]", "click[red]"]
    assert [turn.valid for turn in trajectory.turns] == [False] * 5
    assert done.counters["ill_formed_actions"] == 3
    assert done.counters["environment_steps"] == 5
    # the first was carried out all the same
    assert "Page 1 (Total results: 11)" in trajectory.turns[1].observation


def test_a_page_too_long_for_two_is_told_alone() -> None:
    catalogue = stocked_catalogue()
    product = catalogue.products[MUG]
    object.__setattr__(product, "description", "long " * 1300)  # two of them pass 13,000 letters
    actions = [*SHOP[:2], "click[description]", "click[< prev]", "click[description]"]
    said = [thought(action) for action in (*actions, "click[< prev]", "click[dark blue]")]
    done = played(ShopWorld(catalogue), VERL_AGENT, said)
    (trajectory,) = done.trajectories
    told = ["[Observation" in text_of(turn.context_ids) for turn in trajectory.turns]
    assert told == [False, True, True, True, True, False, True]
    assert done.counters["dropped_history"] == 1
    assert all(len(turn.context_ids) < 13_100 for turn in trajectory.turns)
