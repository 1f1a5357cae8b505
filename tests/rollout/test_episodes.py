"""Whole episodes: stop reasons, failures, order and refilling."""

import itertools
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from chatting import TEMPLATE, DoorRoom, Doors, small_tokenizer
from made import small_llama
from rewardswap.envs.base import Step
from rewardswap.models.batching import rows_of
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.engine import Completion, RolloutEngine, SamplingParams
from rewardswap.rollout.episodes import CUT, EpisodeRequest, Played, play
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.rollout.scripted import ScriptedEngine
from rewardswap.types import Trajectory

TOKENIZER = small_tokenizer()
END = TOKENIZER.eos_token_id
REQUESTS = [EpisodeRequest(task, n) for task in Doors().tasks("all") for n in range(3)]


def words(text: str) -> list[int]:
    ids: list[int] = TOKENIZER.encode(text, add_special_tokens=False)
    return ids


def door(session: str, turn: int) -> list[int]:
    """Opens door 1, then 2, then 3."""
    return [*words(f"open door {turn + 1}"), END]


def run(engine: RolloutEngine, world: Any = None, **changes: Any) -> Played:
    settings: dict[str, Any] = {
        "requests": REQUESTS,
        "sampling": SamplingParams(max_tokens=8),
        "seed": 0,
        "policy_version": 0,
        "turn_limit": 4,
        **changes,
    }
    return play(
        settings.pop("requests"),
        world or Doors(),
        engine,
        settings.pop("context", None) or ChatContext(TOKENIZER, ""),
        **settings,
    )


def key_of(trajectory: Trajectory) -> tuple[str, int, list[list[int]]]:
    return (
        trajectory.task.id,
        trajectory.index,
        [turn.action_ids.tolist() for turn in trajectory.turns],
    )


def test_episodes_end_when_the_environment_says_so() -> None:
    played = run(ScriptedEngine(door, [END]))
    assert [(t.task.id, t.index) for t in played.trajectories] == [
        (r.task.id, r.index) for r in REQUESTS
    ]
    assert [len(t.turns) for t in played.trajectories] == [1, 1, 1, 2, 2, 2, 3, 3, 3]
    assert all(t.success and t.outcome == 1.0 and t.stop == "done" for t in played.trajectories)
    assert played.counters["environment_steps"] == 18
    assert played.counters["generated_tokens"] == 18 * len(door("", 0))
    last = played.trajectories[8]
    assert [turn.action for turn in last.turns] == [f"open door {n}" for n in (1, 2, 3)]
    assert [turn.observation for turn in last.turns] == ["you see door 1 2 3", "lose", "lose"]
    assert last.final_observation == "win"
    assert [turn.reward for turn in last.turns] == pytest.approx([0.25, 0.25, 0.25])


def test_the_turn_cap_is_never_a_success_and_an_illegal_action_counts() -> None:
    played = run(ScriptedEngine(lambda s, t: [*words("look"), END], [END]))
    for trajectory in played.trajectories:
        assert (trajectory.stop, trajectory.outcome, trajectory.success) == ("turn_limit", 0, False)
        assert [turn.valid for turn in trajectory.turns] == [False] * 4
    assert played.counters["turn_limit"] == 9


class HalfRoom(DoorRoom):
    """A room whose every step claims half an outcome and a score."""

    def step(self, action: str) -> Step:
        return replace(super().step(action), outcome=0.5, task_score=0.25)


class Halves(Doors):
    def make(self) -> DoorRoom:
        self.live += 1
        return HalfRoom(self)


def test_an_outcome_counts_only_where_the_environment_ends() -> None:
    played = run(ScriptedEngine(door, [END]), Halves(), turn_limit=2)
    assert [(t.stop, t.outcome, t.task_score) for t in played.trajectories[::3]] == [
        ("done", 0.5, 0.25),
        ("done", 0.5, 0.25),
        ("turn_limit", 0.0, 0.0),
    ]


def test_a_full_context_ends_the_episode() -> None:
    # first prompt 10 tokens, then 4 of action and 6 of context a turn; 8 must be free behind 30
    engine = ScriptedEngine(lambda s, t: door(s, 8), [END], context_limit=37)
    played = run(engine)
    assert {t.stop for t in played.trajectories} == {"context_full"}
    assert {len(t.turns) for t in played.trajectories} == {2}
    assert played.counters["context_full"] == 9
    with pytest.raises(ValueError, match="first prompt of task 'door-1'"):
        run(ScriptedEngine(door, [END], context_limit=10))


def test_a_cut_action_may_end_the_episode_unsent() -> None:
    engine = ScriptedEngine(lambda s, t: words("open door 3 1 2"), [END])
    said = SamplingParams(max_tokens=5)
    played = run(engine, sampling=said, requests=REQUESTS[-2:], cut_actions="end")
    for trajectory in played.trajectories:
        assert (trajectory.stop, trajectory.success, trajectory.outcome) == (
            "token_limit",
            False,
            0,
        )
        (turn,) = trajectory.turns
        assert (turn.truncated, turn.valid, turn.reward) == (True, False, 0)
        assert trajectory.final_observation == CUT
    counted = ("token_limit", "unsent_actions", "environment_steps", "truncated_turns")
    assert [played.counters[name] for name in counted] == [2, 2, 0, 2]
    # what ends in time is sent as always
    assert run(ScriptedEngine(door, [END]), cut_actions="end").counters["token_limit"] == 0


def test_an_episode_out_of_time_ends_behind_its_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    ticks = itertools.count()  # one second for each time that somebody looks at the clock
    monkeypatch.setattr(time, "monotonic", lambda: float(next(ticks)))
    request = REQUESTS[-1:]  # won in its third turn
    for seconds, turns, stop in ((1.0, 1, "time_limit"), (2.0, 2, "time_limit"), (3.0, 3, "done")):
        (trajectory,) = (
            played := run(ScriptedEngine(door, [END]), requests=request, episode_seconds=seconds)
        ).trajectories
        assert (len(trajectory.turns), trajectory.stop) == (turns, stop)
        assert trajectory.success == (stop == "done")
        assert played.counters["time_limit"] == (stop == "time_limit")


def test_a_cut_action_is_marked_and_its_end_token_stands_in_the_context() -> None:
    engine = ScriptedEngine(lambda s, t: words("open door 3 1 2"), [END])
    played = run(engine, sampling=SamplingParams(max_tokens=5), requests=REQUESTS[-1:])
    (trajectory,) = played.trajectories
    assert trajectory.turns[0].truncated
    assert played.counters["truncated_turns"] == len(trajectory.turns)
    assert trajectory.final_context_ids[0] == END


@pytest.mark.parametrize("slots", [None, 1])
@pytest.mark.parametrize("where", ["reset", "step"])
def test_an_environment_that_raises_costs_its_own_episodes_only(
    where: str, slots: int | None
) -> None:
    """With one slot nothing is live behind a failure, and the rest still wait to be played."""
    world = Doors({"door-2": where})
    played = run(ScriptedEngine(door, [END]), world, slots=slots)
    assert [t.task.id for t in played.trajectories] == ["door-1"] * 3 + ["door-3"] * 3
    assert [(f.task.id, f.index, f.owner) for f in played.failures] == [
        ("door-2", n, "environment") for n in range(3)
    ]
    assert "RuntimeError: the" in played.failures[0].cause
    assert played.counters["failed_episodes"] == 3
    assert world.live == 0


def test_an_environment_that_breaks_in_closing_too_costs_no_more() -> None:
    played = run(ScriptedEngine(door, [END]), Doors({"door-2": "step, close"}))
    assert len(played.trajectories) == 6
    assert "RuntimeError: the door jammed; in close: RuntimeError: the" in played.failures[0].cause


def test_every_environment_is_closed() -> None:
    world = Doors()
    run(ScriptedEngine(door, [END]), world, slots=2)
    assert world.live == 0


def test_slots_and_order_of_requests_change_no_episode() -> None:
    def played(**changes: Any) -> list[Any]:
        engine = HuggingFaceEngine(small_llama(), [END])
        return sorted(key_of(t) for t in run(engine, **changes).trajectories)

    everything = played()
    assert played(slots=2) == everything
    assert played(slots=5, requests=REQUESTS[::-1]) == everything
    assert played(seed=1) != everything
    assert played(policy_version=1) != everything


@pytest.mark.parametrize("at_once", [1, 2, 5])
@pytest.mark.parametrize("slots", [None, 3])
def test_the_order_in_which_actions_end_changes_nothing(at_once: int, slots: int | None) -> None:
    expected = run(ScriptedEngine(door, [END]))
    played = run(ScriptedEngine(door, [END], at_once=at_once), slots=slots)
    assert [key_of(t) for t in played.trajectories] == [key_of(t) for t in expected.trajectories]
    assert played.counters == expected.counters


def test_an_episode_goes_on_while_others_wait_for_their_action() -> None:
    """With one action at a time, the last that was asked for: an episode ends before another
    has begun to act."""
    engine, steps = ScriptedEngine(door, [END], at_once=1), list[str]()
    complete = engine.wait

    def noted() -> list[Completion]:
        found = complete()
        steps.extend(c.session for c in found)
        return found

    engine.wait = noted  # type: ignore[method-assign]
    run(engine)
    first = [session for n, session in enumerate(steps) if session not in steps[:n]]
    assert steps == sorted(steps, key=first.index)
    assert len(first) == len(REQUESTS) < len(steps)


def test_rows_are_what_the_engine_read_and_sampled() -> None:
    engine = ScriptedEngine(door, [END])
    (trajectory,) = run(engine, requests=REQUESTS[-1:]).trajectories
    (row,) = rows_of(trajectory, 0)
    (read,) = engine.read.values()
    expected: list[int] = []
    for turn, context in enumerate(read):
        expected += [*context.tolist(), *door("", turn)]
    assert row.tokens.tolist() == expected


def test_a_template_that_forgets_starts_a_row_at_every_turn() -> None:
    engine = ScriptedEngine(door, [END])
    context = ChatContext(small_tokenizer(TEMPLATE.replace("messages", "messages[-2:]")), "")
    played = run(engine, context=context, requests=REQUESTS[-1:])
    (trajectory,) = played.trajectories
    assert [turn.extends for turn in trajectory.turns] == [False] * 3
    assert played.counters["rewritten_history"] == 2
    assert [len(row.spans) for row in rows_of(trajectory, 0)] == [1, 1, 1]
    # the last observation is told behind the last action, not as a prompt of its own
    said = [*TOKENIZER.encode("\n<user>win<end>\n<assistant>", add_special_tokens=False)]
    assert trajectory.final_context_ids.tolist() == said


def test_everything_is_given_back_when_the_engine_breaks() -> None:
    world = Doors()

    def breaks(session: str, turn: int) -> list[int]:
        if turn == 1:
            raise OSError("out of memory")
        return door(session, turn)

    engine = ScriptedEngine(breaks, [END])
    with pytest.raises(OSError, match="out of memory"):
        run(engine, world)
    assert (world.live, engine.turns) == (0, {})


def test_sessions_are_released_and_never_met_again() -> None:
    engine = ScriptedEngine(door, [END])
    run(engine, requests=REQUESTS[:2])
    first = set(engine.read)
    run(engine, requests=REQUESTS[:2])
    assert len(first) == 2
    assert len(set(engine.read)) == 4
    assert engine.turns == {}


@pytest.mark.parametrize("limits", [{"turn_limit": 0}, {"slots": 0}, {"episode_seconds": 0.0}])
def test_limits_below_one_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=f"{next(iter(limits))} must be"):
        run(ScriptedEngine(door, [END]), **limits)


def test_two_requests_for_the_same_episode_are_refused() -> None:
    with pytest.raises(ValueError, match="same episode"):
        run(ScriptedEngine(door, [END]), requests=[REQUESTS[0], replace(REQUESTS[0])])


def test_no_requests() -> None:
    empty: Sequence[EpisodeRequest] = []
    played = run(ScriptedEngine(door, [END]), requests=empty)
    assert (played.trajectories, played.failures) == ([], [])
