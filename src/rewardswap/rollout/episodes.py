"""Playing many episodes at once, turn by turn, the same whatever finishes first."""

import itertools
import time
from collections import Counter, deque
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from rewardswap.envs.base import Observation, Step, World
from rewardswap.rollout.engine import (
    Completion,
    CountsTroubles,
    Request,
    RolloutEngine,
    SamplingParams,
    random_key,
)
from rewardswap.rollout.environments import ENVIRONMENT_COUNTERS, Environments, LocalEnvironments
from rewardswap.rollout.formats import Reading
from rewardswap.rollout.host import Broken
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
    *ENVIRONMENT_COUNTERS,
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
    environments: Environments | None = None,
    between_turns: Callable[[], None] = lambda: None,
) -> Played:
    """Play every request; at most `slots` live at once (none: all), refilled in order.

    An action is sent as soon as it has ended, and the next one is asked for at once. Every sampled
    token belongs to (seed, policy version, task, index, turn), so neither slots nor the order of
    requests or of ends change a trajectory, beyond rounding in the engine. `environments` play the
    world (none: in this process, one after another); one that breaks costs its own episode only,
    whatever it does (docs/rollouts.md). An episode ends with `context_full` where
    the next prompt leaves no room for a whole action. A turn is valid
    where the environment admitted the action and what was said has the context's form; what has
    not is counted as ill-formed. Where the context finds no action to send, the turn is spent, the
    environment is not stepped, and the agent is told why. `between_turns` is called whenever
    actions have been sent, and ends everything by raising.

    Raises ValueError for two requests of the same episode, a limit below one, or a first prompt
    that does not fit the context.
    """
    if len(set(requests)) != len(requests):
        raise ValueError("two requests name the same episode; give them different indices")
    if slots is not None and slots < 1:
        raise ValueError(f"slots must be at least 1, got {slots}")
    limits = Limits(turn_limit, cut_actions, episode_seconds)
    environments = environments or LocalEnvironments(world)
    party = _Party(environments, engine, context, sampling, (seed, policy_version), limits)
    waiting = deque(enumerate(requests))
    limit = len(requests) if slots is None else slots
    ready: list[_Episode] = []
    try:
        while True:
            while waiting and len(party.live) < limit:
                free = min(limit - len(party.live), len(waiting))
                ready += party.start([waiting.popleft() for _ in range(free)])
            if not party.live:
                break
            party.ask(ready)
            ready = party.hear()
            between_turns()
    finally:
        party.leave()
    ordered = [party.done[number] for number in sorted(party.done)]
    failures = [party.failed[number] for number in sorted(party.failed)]
    party.counters["failed_episodes"] = len(failures)
    if isinstance(engine, CountsTroubles):
        party.counters.update(engine.counted())
    counters = {name: float(n) for name, n in party.counters.items()}
    return Played(ordered, failures, counters, sampling.truncates)


class _Party:
    """The live episodes' common ground: environments, engine, counters, and what is finished."""

    def __init__(
        self,
        environments: Environments,
        engine: RolloutEngine,
        context: Context,
        sampling: SamplingParams,
        stream: tuple[int, int],
        limits: Limits,
    ) -> None:
        self.environments, self.engine, self.context = environments, engine, context
        self.sampling, self.stream, self.limits = sampling, stream, limits
        self.play_number = next(_plays)
        self.live: dict[str, _Episode] = {}
        self.done: dict[int, Trajectory] = {}
        self.failed: dict[int, EpisodeFailure] = {}
        self.counters: Counter[str] = Counter(dict.fromkeys(COUNTERS, 0))

    def start(self, batch: Sequence[tuple[int, EpisodeRequest]]) -> list[_Episode]:
        """Live episodes of the requests, but for those whose environment breaks in reset."""
        found = self.environments.reset({number: request.task for number, request in batch})
        started = time.monotonic()
        begun: list[_Episode] = []
        for number, request in batch:
            observation = found[number]
            if isinstance(observation, Broken):
                self._fail(number, request, observation.cause)
                continue
            conversation = self.context.conversation(observation)
            self._check_fits(request.task, conversation)
            session = f"{self.play_number}-{number}"
            episode = _Episode(number, request, session, observation, conversation, started)
            self.live[session] = episode
            begun.append(episode)
        return begun

    def ask(self, episodes: Sequence[_Episode]) -> None:
        """Ask for the next action of each."""
        self.engine.submit([self._request(episode) for episode in episodes], self.sampling)

    def hear(self) -> list[_Episode]:
        """Send the actions that have ended, all at once; their episodes that go on."""
        heard = [(self.live[c.session], c, self.context.read(c.ids)) for c in self.engine.wait()]
        steps = self.environments.step(
            {e.number: r.action for e, c, r in heard if not self._unsent(c, r)}
        )
        going_on: list[_Episode] = []
        for episode, completion, reading in heard:
            if self._act(episode, completion, reading, steps.get(episode.number)):
                going_on.append(episode)
            else:
                del self.live[completion.session]
                self.engine.release([completion.session])
        return going_on

    def leave(self) -> None:
        """Give everything back, also when something raised."""
        try:
            self.counters.update(self.environments.end())
        finally:
            self.engine.release(list(self.live))

    def _request(self, episode: _Episode) -> Request:
        seed, version = self.stream
        request, conversation = episode.request, episode.conversation
        key = random_key(seed, version, request.task.id, request.index, len(episode.turns))
        self.counters["prompt_tokens"] += len(conversation.context_ids)
        self.counters.update(conversation.counted)
        return Request(episode.session, conversation.context_ids, conversation.extends, key)

    def _act(
        self,
        episode: _Episode,
        completion: Completion,
        reading: Reading,
        step: Step | Broken | None,
    ) -> bool:
        """Take in what an action led to (none: it was not sent); whether the episode goes on."""
        self.counters["generated_tokens"] += len(completion.ids)
        self.counters["truncated_turns"] += completion.truncated
        if isinstance(step, Broken):
            self._fail(episode.number, episode.request, step.cause)
            return False
        self.counters["unsent_actions" if step is None else "environment_steps"] += 1
        if step is None:
            told = replace(episode.observation, text=self._unsent(completion, reading))
            step = Step(told, valid=False, terminated=False, success=False, outcome=0.0)
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

    def _unsent(self, completion: Completion, reading: Reading) -> str:
        """Why an action is not sent: the world stays, and the agent is told this instead."""
        cut = completion.truncated and self.limits.cut_actions == "end"
        return reading.error or (CUT if cut else "")

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

    def _check_fits(self, task: Task, conversation: Conversation) -> None:
        if not self._fits(conversation):
            raise ValueError(
                f"the first prompt of task {task.id!r} has {conversation.token_count} "
                f"tokens; with an action it does not fit the context of "
                f"{self.engine.context_limit} tokens; take fewer action "
                "tokens or a model with a longer context"
            )

    def _finish(self, episode: _Episode, step: Step, stop: StopReason) -> None:
        self.environments.release(episode.number)
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

    def _fail(self, number: int, request: EpisodeRequest, cause: str) -> None:
        """Count the episode out."""
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
