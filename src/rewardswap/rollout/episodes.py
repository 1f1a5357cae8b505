"""Playing many episodes at once, turn by turn, the same whatever finishes first."""

import itertools
import time
from collections import Counter, deque
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace

from rewardswap.envs.base import Environment, Observation, Step, World
from rewardswap.rollout.engine import Completion, Request, RolloutEngine, SamplingParams, random_key
from rewardswap.rollout.formats import Reading
from rewardswap.rollout.limits import CutActions, Limits
from rewardswap.rollout.prompting import Context, Conversation
from rewardswap.types import EpisodeFailure, StopReason, Task, Trajectory, Turn

_plays = itertools.count()

CUT = "The action was cut off at the token cap and not sent."
"""What stands in place of an observation behind such an action."""

COUNTERS = (
    "environment_steps",
    "generated_tokens",
    "prompt_tokens",
    "truncated_turns",
    "context_full",
    "turn_limit",
    "token_limit",
    "time_limit",
    "rewritten_history",
    "dropped_history",
    "ill_formed_actions",
    "unsent_actions",
    "failed_episodes",
)


@dataclass(frozen=True, slots=True)
class EpisodeRequest:
    """One episode to play."""

    task: Task
    index: int
    """Number among the episodes of its task under one seed and policy version."""


@dataclass(frozen=True)
class Played:
    """What came of the requests, in their order."""

    trajectories: list[Trajectory]
    failures: list[EpisodeFailure]
    counters: Mapping[str, float]
    """How often each of `COUNTERS` happened."""
    truncating: bool = False
    """Whether the sampler left tokens out: then the log-probs are not the policy's."""


@dataclass
class _Episode:
    """An episode while it lives."""

    number: int
    request: EpisodeRequest
    session: str
    environment: Environment
    observation: Observation
    conversation: Conversation
    started: float
    turns: list[Turn] = field(default_factory=list)


def play(
    requests: Sequence[EpisodeRequest],
    world: World,
    engine: RolloutEngine,
    context: Context,
    *,
    sampling: SamplingParams,
    seed: int,
    policy_version: int,
    turn_limit: int,
    slots: int | None = None,
    cut_actions: CutActions = "sent",
    episode_seconds: float | None = None,
) -> Played:
    """Play every request; at most `slots` live at once (none: all), refilled in order.

    An action is sent as soon as it has ended, and the next one is asked for at once. Every sampled
    token belongs to (seed, policy version, task, index, turn), so neither slots nor the order of
    requests or of ends change a trajectory, beyond rounding in the engine. An environment that
    raises in reset or step costs its own episode only. An episode ends with `context_full` where
    the next prompt leaves no room for a whole action. A turn is valid
    where the environment admitted the action and what was said has the context's form; what has
    not is counted as ill-formed. Where the context finds no action to send, the turn is spent, the
    environment is not stepped, and the agent is told why.

    Raises ValueError for two requests of the same episode, a limit below one, or a first prompt
    that does not fit the context.
    """
    if len(set(requests)) != len(requests):
        raise ValueError("two requests name the same episode; give them different indices")
    if slots is not None and slots < 1:
        raise ValueError(f"slots must be at least 1, got {slots}")
    limits = Limits(turn_limit, cut_actions, episode_seconds)
    party = _Party(world, engine, context, sampling, (seed, policy_version), limits)
    waiting = deque(enumerate(requests))
    limit = len(requests) if slots is None else slots
    ready: list[_Episode] = []
    try:
        while True:
            while waiting and len(party.live) < limit:
                ready += party.start(*waiting.popleft())
            if not party.live:
                break
            party.ask(ready)
            ready = party.hear()
    finally:
        party.leave()
    ordered = [party.done[number] for number in sorted(party.done)]
    failures = [party.failed[number] for number in sorted(party.failed)]
    party.counters["failed_episodes"] = len(failures)
    counters = {name: float(n) for name, n in party.counters.items()}
    return Played(ordered, failures, counters, sampling.truncates)


class _Party:
    """The live episodes' common ground: world, engine, counters, and what is finished."""

    def __init__(
        self,
        world: World,
        engine: RolloutEngine,
        context: Context,
        sampling: SamplingParams,
        stream: tuple[int, int],
        limits: Limits,
    ) -> None:
        self.world, self.engine, self.context = world, engine, context
        self.sampling, self.stream, self.limits = sampling, stream, limits
        self.play_number = next(_plays)
        self.live: dict[str, _Episode] = {}
        self.idle: list[Environment] = []
        self.done: dict[int, Trajectory] = {}
        self.failed: dict[int, EpisodeFailure] = {}
        self.counters: Counter[str] = Counter(dict.fromkeys(COUNTERS, 0))

    def start(self, number: int, request: EpisodeRequest) -> list[_Episode]:
        """A live episode, or none if its environment fails in reset."""
        started = time.monotonic()
        environment = self.idle.pop() if self.idle else self.world.make()
        try:
            observation = environment.reset(request.task)
        except Exception as error:  # whatever an environment raises costs its episode
            self._fail(number, request, environment, error)
            return []
        conversation = self.context.conversation(observation)
        if not self._fits(conversation):
            self.idle.append(environment)
            raise ValueError(
                f"the first prompt of task {request.task.id!r} has {conversation.token_count} "
                f"tokens; with an action it does not fit the context of "
                f"{self.engine.context_limit} tokens; take fewer action "
                "tokens or a model with a longer context"
            )
        session = f"{self.play_number}-{number}"
        episode = _Episode(
            number, request, session, environment, observation, conversation, started
        )
        self.live[session] = episode
        return [episode]

    def ask(self, episodes: Sequence[_Episode]) -> None:
        """Ask for the next action of each."""
        self.engine.submit([self._request(episode) for episode in episodes], self.sampling)

    def hear(self) -> list[_Episode]:
        """Send the actions that have ended; their episodes that go on."""
        going_on: list[_Episode] = []
        for completion in self.engine.wait():
            episode = self.live[completion.session]
            if self._act(episode, completion):
                going_on.append(episode)
            else:
                del self.live[completion.session]
                self.engine.release([completion.session])
        return going_on

    def leave(self) -> None:
        """Give everything back, also when something raised."""
        with ExitStack() as closing:
            for environment in (*self.idle, *(e.environment for e in self.live.values())):
                closing.callback(environment.close)
            self.engine.release(list(self.live))

    def _request(self, episode: _Episode) -> Request:
        seed, version = self.stream
        request, conversation = episode.request, episode.conversation
        key = random_key(seed, version, request.task.id, request.index, len(episode.turns))
        self.counters["prompt_tokens"] += len(conversation.context_ids)
        self.counters.update(conversation.counted)
        return Request(episode.session, conversation.context_ids, conversation.extends, key)

    def _act(self, episode: _Episode, completion: Completion) -> bool:
        """Send the action; whether the episode goes on."""
        reading = self.context.read(completion.ids)
        self.counters["generated_tokens"] += len(completion.ids)
        self.counters["truncated_turns"] += completion.truncated
        try:
            step = self._step(episode, reading, completion)
        except Exception as error:  # whatever an environment raises costs its episode
            self._fail(episode.number, episode.request, episode.environment, error)
            return False
        self.counters["ill_formed_actions"] += not reading.well_formed
        valid = step.valid and reading.well_formed
        episode.turns.append(_turn_of(episode, completion, reading.action, step, valid))
        episode.observation = step.observation
        stop = self._stop(episode, step)
        if stop is not None:
            if stop != "done":
                self.counters[stop] += 1
            self._finish(episode, step, stop)
        return stop is None

    def _step(self, episode: _Episode, reading: Reading, completion: Completion) -> Step:
        """What the action led to; where none can be sent, the world stays and says why."""
        cut = completion.truncated and self.limits.cut_actions == "end"
        if reading.error or cut:
            self.counters["unsent_actions"] += 1
            told = replace(episode.observation, text=reading.error or CUT)
            return Step(told, valid=False, terminated=False, success=False, outcome=0.0)
        step = episode.environment.step(reading.action)
        self.counters["environment_steps"] += 1
        return step

    def _stop(self, episode: _Episode, step: Step) -> StopReason | None:
        if step.terminated:
            return "done"
        last, limits = episode.turns[-1], self.limits
        if last.truncated and limits.cut_actions == "end":
            return "token_limit"
        if len(episode.turns) >= limits.turns:
            return "turn_limit"
        if limits.seconds is not None and time.monotonic() - episode.started >= limits.seconds:
            return "time_limit"
        episode.conversation.reply(last.action_ids, last.action, step.observation)
        if not self._fits(episode.conversation):
            return "context_full"
        return None

    def _fits(self, conversation: Conversation) -> bool:
        """Whether a whole action still fits behind the prompt."""
        return conversation.token_count + self.sampling.max_tokens <= self.engine.context_limit

    def _finish(self, episode: _Episode, step: Step, stop: StopReason) -> None:
        self.idle.append(episode.environment)
        said, heard = episode.turns[-1].action_ids, step.observation.text
        outcome = step.outcome if stop == "done" else 0.0
        score = outcome if step.task_score is None else step.task_score
        self.done[episode.number] = Trajectory(
            task=episode.request.task,
            index=episode.request.index,
            turns=tuple(episode.turns),
            final_observation=heard,
            final_context_ids=self.context.following(said, heard),
            outcome=outcome,
            success=step.success and stop == "done",
            stop=stop,
            policy_version=self.stream[1],
            task_score=score if stop == "done" else 0.0,
        )

    def _fail(
        self, number: int, request: EpisodeRequest, environment: Environment, error: Exception
    ) -> None:
        """Count the episode out; its environment is not used again."""
        cause = f"{type(error).__name__}: {error}"
        try:
            environment.close()
        except Exception as second:  # a broken environment may break in closing too
            cause += f"; in close: {type(second).__name__}: {second}"
        self.failed[number] = EpisodeFailure(request.task, request.index, "environment", cause)


def _turn_of(
    episode: _Episode, completion: Completion, action: str, step: Step, valid: bool
) -> Turn:
    before, conversation = episode.observation, episode.conversation
    return Turn(
        observation=before.text,
        context_ids=conversation.context_ids,
        extends=conversation.extends,
        action_ids=completion.ids,
        logprobs=completion.logprobs,
        action=action,
        valid=valid,
        truncated=completion.truncated,
        reward=step.observation.progress - before.progress,
        state_key=before.state_key,
    )
