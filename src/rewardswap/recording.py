"""What a run keeps of trajectories for people to read: their text, and numbers of each token."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool
from torch import Tensor

from rewardswap.checks import at_least
from rewardswap.models.batching import Batch
from rewardswap.models.learner import Metrics
from rewardswap.types import Group, Trajectory

Json = dict[str, Any]
Tokens = dict[str, list[list[float] | None]]
"""Numbers of each action token by name and turn."""

UNFINISHED = "\ufffd"
"""What a tokenizer gives for bytes that are not yet a letter."""


@dataclass(frozen=True)
class RecordConfig:
    """Trajectories of training that trajectories/train.jsonl keeps token by token, for the viewer.

    An action token takes about 45 bytes, text its own length: about 4 kB a trajectory of the small
    agent, 250 kB one of 50 turns of 100 tokens. It changes no number of a run.
    """

    fresh: int = 1
    """Of each update and harvest; whose turn it is goes round through the groups and siblings."""
    replayed: int = 1
    """Of each update with replayed ones, in the same way."""

    def __post_init__(self) -> None:
        at_least(0, fresh=self.fresh, replayed=self.replayed)


@dataclass(frozen=True)
class _Learned:
    """What an update was made from: the groups, their rows, and which rows the loss read."""

    groups: Sequence[Group]
    batch: Batch
    read: Bool[Tensor, "B"]


class Recorder:
    """Chooses trajectories of each update by rule, and writes down what was done with them."""

    def __init__(self, config: RecordConfig, tokenizer: Any, source: str) -> None:
        """`source` is the name of the reward per turn that is shown beside the turns."""
        self.config = config
        self.tokenizer = tokenizer
        self.source = source
        self._learned: _Learned | None = None

    def learned(self, groups: Sequence[Group], batch: Batch, read: Bool[Tensor, "B"]) -> None:
        """Take note of what the update that is under way learns from."""
        self._learned = _Learned(groups, batch, read)

    def records(self, metrics: Metrics, phase: str, groups: Sequence[Group]) -> list[Json]:
        """The chosen trajectories of the update that has just ended, or else of `groups`."""
        learned, self._learned = self._learned, None
        shown = groups if learned is None else learned.groups
        members = [
            (group, n)
            for group in shown
            for n in range(len(group.trajectories))
            if group.selected[n]
        ]
        turn = int(metrics.get("all_updates", 0))
        found = []
        for replayed, count in ((False, self.config.fresh), (True, self.config.replayed)):
            places = [m for m, (group, _) in enumerate(members) if group.replayed == replayed]
            for place in whose_turn(places, turn, count):
                group, n = members[place]
                said = {} if learned is None else _said_of(learned, place)
                record = self._record(group, n, phase, {"behavior": _sampled(group, n), **said})
                found.append({**record, "update": int(metrics["update"]), "replayed": replayed})
        return found

    def _record(self, group: Group, n: int, phase: str, tokens: Tokens) -> Json:
        """One trajectory, with the text of its contexts and all of each action token."""
        trajectory, rewards = group.trajectories[n], group.rewards.get(self.source)
        scores = None if rewards is None else rewards[n, : len(trajectory.turns)].tolist()
        record = trajectory_record(trajectory, phase, scores)
        for k, turn in enumerate(trajectory.turns):
            record["turns"][k] |= {
                "context": self.tokenizer.decode(turn.context_ids.tolist()),
                "pieces": pieces(self.tokenizer, turn.action_ids.tolist()),
                **{name: rounded(values[k]) for name, values in tokens.items()},
            }
        return record


def whose_turn(places: Sequence[int], turn: int, count: int) -> list[int]:
    """`count` of the places, those after the ones of `turn - 1`, counted round; all if fewer."""
    if count >= len(places):
        return list(places)
    return [places[(turn * count + n) % len(places)] for n in range(count)]


def pieces(tokenizer: Any, ids: Sequence[int]) -> list[str]:
    """The text of each token; together they are the text of all.

    A letter that several tokens make stands with the last of them.
    """
    found: list[str] = []
    start = done = 0
    for end in range(1, len(ids) + 1):
        text = tokenizer.decode(ids[start:end])
        if text.endswith(UNFINISHED) and end < len(ids):
            found.append("")
            continue
        found.append(text[len(tokenizer.decode(ids[start:done])) :])
        start, done = done, end
    return found


def rounded(values: Sequence[float] | None) -> list[float] | None:
    """To five decimals, for a file that people read."""
    return None if values is None else [round(value, 5) + 0.0 for value in values]


def _sampled(group: Group, n: int) -> list[list[float] | None]:
    """log-probs of a trajectory's action tokens under the policy that collected it, turn by turn.

    Of a replayed one those that the harvest stored, else those of the engine.
    """
    logprobs = group.columns.get("behavior_logprob", group.sampled_logprob)
    turns = group.trajectories[n].turns
    return [logprobs[n, k, : len(turn.action_ids)].tolist() for k, turn in enumerate(turns)]


def _said_of(learned: _Learned, index: int) -> Tokens:
    """What an update knew of one trajectory; old log-probs are none where no loss read them."""
    batch = learned.batch
    found: Tokens = {"old": [], "advantage": []}
    for row in torch.nonzero(batch.trajectory == index)[:, 0].tolist():
        old, advantage = (batch.column(f)[row] for f in ("old_logprob", "advantage"))
        turns = batch.turn[row]
        for k in sorted({*turns.tolist()} - {-1}):
            found["old"].append(old[turns == k].tolist() if learned.read[row] else None)
            found["advantage"].append(advantage[turns == k].tolist())
    return found


def trajectory_record(
    trajectory: Trajectory, phase: str, process_reward: Sequence[float] | None
) -> Json:
    """A trajectory as a person and a report read it."""
    return {
        "task": trajectory.task.id,
        "family": trajectory.task.family,
        "origin": trajectory.task.origin,
        "index": trajectory.index,
        "outcome": trajectory.outcome,
        "task_score": trajectory.task_score,
        "success": trajectory.success,
        "stop": trajectory.stop,
        "policy_version": trajectory.policy_version,
        "phase": phase,
        "turns": [
            {
                "observation": turn.observation,
                "action": turn.action,
                "valid": turn.valid,
                "truncated": turn.truncated,
                "reward": turn.reward,
                "logprob_sum": float(turn.logprobs.sum()),
                "tokens": len(turn.action_ids),
            }
            for turn in trajectory.turns
        ],
        "final_observation": trajectory.final_observation,
        "process_reward": None if process_reward is None else list(process_reward),
    }
