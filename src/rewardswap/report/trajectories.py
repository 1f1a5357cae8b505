"""The trajectories of a run as data for the viewer of the page: text stays text."""

import json
from collections.abc import Sequence
from typing import Any

from markupsafe import Markup

from rewardswap.report.episodes import STOPS
from rewardswap.report.records import Json, RunRecord, number
from rewardswap.report.shape import Maybe, misfit
from rewardswap.shown import visible_text

MOST_BYTES = 32_000_000
"""Most bytes of trajectories in one page (ours: a browser opens so much in a second or two). Where
they are more, every second one of the largest file is left out, again and again, and counted."""
TOKEN_NUMBERS = ("behavior", "old", "advantage")
"""What may be known of each action token: log-probs of who sampled it and of the policy before the
update, in nats, and the advantage."""
SPELLED = {ord(c): f"\\u{ord(c):04x}" for c in "<>&\u2028\u2029"}
"""Letters that could end a script or begin a comment in HTML, as JSON spells them otherwise."""


def viewer_data(record: RunRecord, most_bytes: int = MOST_BYTES) -> Markup:
    """The trajectories as JSON that no text in it can break out of.

    `left_out` counts those that would have made the page larger than `most_bytes`.
    """
    parts = {
        when: [_encoded(played, when, place) for place, played in enumerate(episodes)]
        for when, episodes in (
            ("before", record.trajectories_before),
            ("training", record.trajectories_train),
            ("after", record.trajectories_after),
        )
    }
    while sum(map(_size, parts.values())) > most_bytes:
        largest = max(parts, key=lambda when: _size(parts[when]))
        parts[largest] = parts[largest][1::2]
    shown = [text for texts in parts.values() for text in texts]
    left_out = record.trajectories_passed_over + len(record.trajectories) - len(shown)
    return Markup(f'{{"left_out":{left_out},"trajectories":[{",".join(shown)}]}}')


def _size(texts: Sequence[str]) -> int:
    return sum(map(len, texts))


def _encoded(played: Json, when: str, place: int) -> str:
    text = json.dumps(
        shown_trajectory(played, when, place), ensure_ascii=False, separators=(",", ":")
    )
    return text.translate(SPELLED)


def shown_trajectory(played: Json, when: str, place: int) -> Json:
    """One trajectory of a file with nothing in it of another type than the viewer expects."""
    stop = _text(played, "stop")
    rewards = played.get("process_reward")
    return {
        "id": f"{when} {place}",
        "when": when,
        "phase": _text(played, "phase") if when == "training" else when,
        "task": _text(played, "task"),
        "family": _text(played, "family"),
        "index": played["index"],
        "success": played["success"],
        "outcome": number(played.get("outcome")),
        "score": number(played.get("task_score")),
        "stop": visible_text(STOPS.get(stop, stop)),
        "update": number(played.get("update")),
        "version": number(played.get("policy_version")),
        "replayed": played.get("replayed") is True,
        "process": [number(r) for r in rewards] if isinstance(rewards, list) else None,
        "turns": [_turn(turn) for turn in played["turns"]],
        "final": _text(played, "final_observation"),
    }


def _turn(turn: Json) -> Json:
    shown: Json = {
        "observation": _text(turn, "observation"),
        "action": _text(turn, "action"),
        "valid": turn.get("valid") is not False,
        "truncated": turn.get("truncated") is True,
        "reward": number(turn.get("reward")),
    }
    pieces = turn.get("pieces")
    if misfit(pieces, [str]) is None and pieces:
        shown["context"] = _text(turn, "context")
        shown["pieces"] = [visible_text(piece) for piece in pieces]
        shown |= {name: _numbers(turn.get(name), len(pieces)) for name in TOKEN_NUMBERS}
    return shown


def _numbers(values: Any, count: int) -> list[float] | None:
    """A number of each token, none where they are not that many."""
    fits = misfit(values, Maybe([float])) is None and values is not None
    return values if fits and len(values) == count else None


def _text(part: Json, name: str) -> str:
    return visible_text(str(part.get(name, "")))
