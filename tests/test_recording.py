"""What a run keeps of trajectories: whose turn it is, the text of tokens, what an update knew."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from made import made_group, small_policy
from rewardswap.annotation import annotated
from rewardswap.cli import main
from rewardswap.configuration import Run
from rewardswap.methods.grpo import GRPO
from rewardswap.recording import RecordConfig, Recorder, pieces, whose_turn
from rewardswap.rewards.checked import label
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.run_state import settings_sha256
from rewardswap.types import Group


class Numbers:
    """A tokenizer whose text is the ids."""

    def decode(self, ids: list[int]) -> str:
        return "".join(f"<{token}>" for token in ids)


class Bytes:
    """A tokenizer whose tokens are bytes."""

    def decode(self, ids: list[int]) -> str:
        return bytes(ids).decode("utf-8", errors="replace")


def test_turns_go_round_through_all_places() -> None:
    places = [10, 11, 12, 13, 14]
    # 2 of 5: 0 1 | 2 3 | 4 0 | 1 2
    assert [whose_turn(places, turn, 2) for turn in range(4)] == [
        [10, 11], [12, 13], [14, 10], [11, 12],
    ]  # fmt: skip
    assert whose_turn(places, 7, 0) == []
    assert whose_turn(places, 7, 9) == places
    assert whose_turn([], 7, 1) == []


def test_a_letter_of_two_tokens_stands_with_the_last() -> None:
    assert pieces(Bytes(), list("né!".encode())) == ["n", "", "é", "!"]
    assert pieces(Bytes(), list(b"n\xc3")) == ["n", "\ufffd"]
    assert pieces(Numbers(), []) == []


@given(st.text())
def test_pieces_are_the_whole_text(text: str) -> None:
    ids = list(text.encode("utf-8", errors="ignore"))
    found = pieces(Bytes(), ids)
    assert len(found) == len(ids)
    assert "".join(found) == Bytes().decode(ids)


def learned(recorder: Recorder, groups: list[Group]) -> tuple[Any, Any]:
    batch, read, _ = annotated(groups, GRPO().algorithm(), small_policy(), None, None)
    recorder.learned(groups, batch, read)
    return batch, read


def update_of_fresh_and_replayed() -> list[Group]:
    fresh, other = (label(made_group(name), OutcomeReward()) for name in "ab")
    other = label(label(other, ProgressReward()), OutcomeReward())
    other = other.with_column("behavior_logprob", other.sampled_logprob - 0.25 * other.token_mask)
    return [fresh, replace(other, replayed=True, selected=(False, True))]


def test_an_update_leaves_what_it_knew_of_each_token() -> None:
    recorder = Recorder(RecordConfig(fresh=1, replayed=1), Numbers(), "progress")
    groups = update_of_fresh_and_replayed()
    batch, _ = learned(recorder, groups)
    fresh, replayed = recorder.records({"all_updates": 1.0, "update": 7.0}, "learn", [])
    for record, group, row in ((fresh, groups[0], 1), (replayed, groups[1], 2)):
        played = group.trajectories[1]
        (turn,) = record["turns"]  # the second sibling has one turn of four and one tokens
        (told,) = played.turns
        assert (record["task"], record["index"], record["update"]) == (played.task.id, 1, 7)
        assert record["replayed"] is group.replayed and record["phase"] == "learn"
        assert turn["context"] == Numbers().decode(told.context_ids.tolist())
        assert turn["pieces"] == [f"<{told.action_ids[0]}>"]
        shift = 0.25 if group.replayed else 0.0
        assert turn["behavior"] == pytest.approx([told.logprobs[0] - shift], abs=1e-5)
        old = batch.column("old_logprob")[row][batch.action_mask[row]]
        assert turn["old"] == pytest.approx(old.tolist(), abs=1e-5)
        assert turn["advantage"] == [0.70711]  # outcomes 0 and 1: (1 - 1/2) / sqrt(1/2)
    assert fresh["process_reward"] is None
    assert replayed["process_reward"] == pytest.approx([0.1])  # the world's own reward of turn 0


def test_log_probs_that_no_loss_read_are_none_and_not_zero() -> None:
    recorder = Recorder(RecordConfig(), Numbers(), "outcome")
    equal, mixed = (
        label(made_group(name, outcomes), OutcomeReward())
        for name, outcomes in (("a", (1.0, 1.0)), ("b", (0.0, 1.0)))
    )
    learned(recorder, [equal, mixed])
    (record,) = recorder.records({"all_updates": 0.0, "update": 1.0}, "learn", [])
    assert record["task"] == "a"
    assert [turn["old"] for turn in record["turns"]] == [None, None]
    assert [turn["advantage"] for turn in record["turns"]] == [[0.0, 0.0], [0.0, 0.0, 0.0]]


def test_a_harvest_leaves_the_log_probs_of_who_collected_it() -> None:
    recorder = Recorder(RecordConfig(), Numbers(), "outcome")
    group = label(made_group(), OutcomeReward())
    stored = group.with_column("behavior_logprob", group.sampled_logprob - group.token_mask * 1.0)
    (record,) = recorder.records({"update": 0.0}, "harvest", [stored])
    assert not record["replayed"] and "old" not in record["turns"][0]
    told = group.trajectories[0].turns[0]
    assert record["turns"][0]["behavior"] == pytest.approx((told.logprobs - 1).tolist(), abs=1e-5)


def test_an_update_is_not_told_of_twice() -> None:
    recorder = Recorder(RecordConfig(), Numbers(), "outcome")
    learned(recorder, update_of_fresh_and_replayed())
    recorder.records({"all_updates": 1.0, "update": 1.0}, "learn", [])
    (record,) = recorder.records(
        {"update": 1.0}, "harvest", [label(made_group("c"), OutcomeReward())]
    )
    assert record["task"] == "c"


def test_a_trajectory_in_several_rows_has_all_its_turns() -> None:
    recorder = Recorder(RecordConfig(fresh=9), Numbers(), "outcome")
    group = label(made_group(), OutcomeReward())
    apart = tuple(
        replace(t, turns=tuple(replace(u, extends=False) for u in t.turns))
        for t in group.trajectories
    )
    batch, _ = learned(recorder, [replace(group, trajectories=apart)])
    records = recorder.records({"update": 1.0}, "learn", [])
    assert len(batch) == 3
    for record, trajectory in zip(records, apart, strict=True):
        for turn, told in zip(record["turns"], trajectory.turns, strict=True):
            assert [len(turn[n]) for n in ("pieces", "behavior", "old", "advantage")] == [
                len(told.action_ids)
            ] * 4


@pytest.mark.parametrize("name", ["fresh", "replayed"])
def test_fewer_than_none_are_refused(name: str) -> None:
    with pytest.raises(ValueError, match=f"{name} must be at least 0, got -1"):
        RecordConfig(**{name: -1})


def test_a_run_goes_on_whatever_it_is_to_keep() -> None:
    assert settings_sha256(Run("demo")) == settings_sha256(Run("demo", record=RecordConfig(5, 0)))


def test_what_is_kept_changes_no_number(tmp_path: Path) -> None:
    small = "--budget 2 --env.evaluation-tasks 2 --env.generated-games 40 --env.turn-limit 4 "
    small += "--batch.tasks 4 --batch.group-size 4 --swap.explore-steps 1 --swap.learn-steps 2 "
    small += "--swap.alpha 0.25 --reward.dense progress"
    found = []
    for kept in (0, 3):
        folder = tmp_path / str(kept)
        words = ["--record.fresh", str(kept), "--record.replayed", str(kept)]
        main(["train", "demo", *small.split(), *words, "--output", str(folder)])
        rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
        found.append([{n: v for n, v in row.items() if "seconds" not in n} for row in rows])
        lines = (folder / "trajectories/train.jsonl").read_text().splitlines()
        # explore, harvest and two updates; alpha 1/4 of 16 are 4 replayed ones
        assert len(lines) == 4 * kept + 2 * kept
    assert found[0] == found[1]
    assert torch.isfinite(torch.tensor(found[0][-1]["loss"]))
