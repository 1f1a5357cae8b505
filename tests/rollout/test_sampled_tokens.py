"""What was sampled is what is trained, also where its text has other tokens."""

import numpy as np
import pytest

from chatting import TEMPLATE, Doors, letter_tokenizer
from rewardswap.models.batching import rows_of
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import SamplingParams
from rewardswap.rollout.episodes import EpisodeRequest, play
from rewardswap.rollout.scripted import ScriptedEngine


def spelled(text: str) -> list[int]:
    """The text letter by letter: a way to say it that no tokenizer with longer tokens takes."""
    ids: list[int] = letter_tokenizer().encode(text, add_special_tokens=False)
    return ids


@pytest.mark.parametrize("messages", ["messages", "messages[-2:]"], ids=["extends", "starts anew"])
def test_sampled_tokens_are_never_tokenised_again(messages: str) -> None:
    template = TEMPLATE.replace("messages", messages)
    tokenizer = letter_tokenizer(template=template, merges=[("d", "o")])
    said = [spelled(f"open door {number}<end>") for number in (1, 2, 3)]
    engine = ScriptedEngine(lambda session, turn: said[turn], [tokenizer.eos_token_id])
    done = play(
        [EpisodeRequest(Doors().tasks("all")[2], 0)],
        Doors(),
        engine,
        ChatContext(tokenizer, ""),
        sampling=SamplingParams(max_tokens=30),
        seed=0,
        policy_version=0,
        turn_limit=4,
    )
    (trajectory,) = done.trajectories
    assert trajectory.success
    for turn, ids in zip(trajectory.turns, said, strict=True):
        assert turn.action_ids.tolist() == ids
        again = tokenizer.encode(tokenizer.decode(ids), add_special_tokens=False)
        assert again != ids and tokenizer.convert_tokens_to_ids("do") in again
    rows = rows_of(trajectory, 0)
    trained = [
        row.tokens[start : start + len(said[turn])].tolist()
        for row in rows
        for turn, start in row.spans
    ]
    assert trained == said
    (read,) = engine.read.values()
    if messages == "messages":
        (row,) = rows
        pairs = zip(read, said, strict=True)
        whole = np.concatenate([np.concatenate([context, ids]) for context, ids in pairs])
        assert row.tokens.tolist() == whole.tolist()
