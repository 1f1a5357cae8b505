"""An episode of a model, seen turn by turn: it is played as in training and evaluation."""

from collections.abc import Iterable, Mapping, Sequence

from rewardswap.envs.base import Observation, Step, World
from rewardswap.play.board import REFUSED, Board, Ending
from rewardswap.rollout.engine import Completion, Request, RolloutEngine, SamplingParams, Weights
from rewardswap.rollout.environments import LocalEnvironments
from rewardswap.rollout.episodes import EpisodeRequest, play
from rewardswap.rollout.host import Broken
from rewardswap.rollout.prompting import Context
from rewardswap.stage import Stage
from rewardswap.task import Task

ENDS = {
    "done": "",
    "turn_limit": "the turn cap",
    "token_limit": "the token cap of an action",
    "context_full": "the end of the model's context",
    "time_limit": "the time limit",
}
"""What ended an episode, by its stop reason."""


def play_model(stage: Stage, task: Task, seed: int, board: Board) -> Ending:
    """Play a task with the stage's model; raises ValueError where the environment breaks."""
    played = play(
        [EpisodeRequest(task, 0)],
        stage.world,
        _SeenEngine(stage.engine, stage.context, board),
        stage.context,
        sampling=stage.sampling,
        seed=seed,
        policy_version=0,
        turn_limit=board.limit,
        environments=_SeenEnvironments(stage.world, board),
    )
    if played.failures:
        raise ValueError(f"the environment broke: {played.failures[0].cause}")
    (trajectory,) = played.trajectories
    return Ending(
        trajectory.success,
        trajectory.outcome,
        trajectory.task_score if stage.env.scored else None,
        len(trajectory.turns),
        sum(not turn.valid for turn in trajectory.turns),
        ENDS[trajectory.stop],
    )


class _SeenEngine:
    """An engine whose actions are printed with their log-probs."""

    def __init__(self, engine: RolloutEngine, context: Context, board: Board) -> None:
        self._engine, self._context, self._board = engine, context, board
        self._turn = 0

    @property
    def context_limit(self) -> int:
        return self._engine.context_limit

    def submit(self, requests: Sequence[Request], sampling: SamplingParams) -> None:
        self._engine.submit(requests, sampling)

    def wait(self) -> list[Completion]:
        completions = self._engine.wait()
        for completion in completions:
            reading = self._context.read(completion.ids)
            self._board.acted(self._turn, reading.action, _weighed(completion))
            if reading.error:
                self._board.say(reading.error)
            self._turn += 1
        return completions

    def release(self, sessions: Iterable[str]) -> None:
        self._engine.release(sessions)

    def update_weights(self, weights: Weights) -> None:
        self._engine.update_weights(weights)

    def close(self) -> None:
        self._engine.close()


class _SeenEnvironments(LocalEnvironments):
    """Environments whose answers are printed."""

    def __init__(self, world: World, board: Board) -> None:
        super().__init__(world)
        self._board = board

    def reset(self, tasks: Mapping[int, Task]) -> dict[int, Observation | Broken]:
        found = super().reset(tasks)
        for answer in found.values():
            if isinstance(answer, Observation):
                self._board.say(answer.text)
        return found

    def step(self, actions: Mapping[int, str]) -> dict[int, Step | Broken]:
        found = super().step(actions)
        for answer in found.values():
            if isinstance(answer, Step):
                self._board.say(answer.observation.text)
                if not answer.valid:
                    self._board.say(REFUSED)
        return found


def _weighed(said: Completion) -> str:
    """The log-prob of an action, summed over its tokens, in nats."""
    count = len(said.ids)
    cut = ", cut at the token cap" if said.truncated else ""
    tokens = f"{count} token{'s' if count > 1 else ''}"
    return f"log-prob {float(said.logprobs.sum()):.2f}, {tokens}{cut}"
