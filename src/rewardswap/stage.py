"""What playing needs, put together: a world, a panel of its tasks, and a model."""

import copy
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

from rewardswap.engines import Precision, make_engine, ready
from rewardswap.env_config import model_of
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.envs.base import World
from rewardswap.evaluation import Evaluation, Panel
from rewardswap.models.loading import LanguageModel, load_language_model, model_folder
from rewardswap.ranks import ALONE, Ranks
from rewardswap.rollout.ahead import Background
from rewardswap.rollout.config import RolloutConfig
from rewardswap.rollout.engine import RolloutEngine, SamplingParams
from rewardswap.rollout.environments import ListedWorld
from rewardswap.rollout.episodes import EpisodeRequest, Played, play
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.rollout.placement import HERE, Placement
from rewardswap.rollout.prompting import Context, make_context
from rewardswap.rollout.shared import own_requests, play_shared
from rewardswap.rollout.workers import WorkerEnvironments
from rewardswap.task_stream import derived_seed


@dataclass(frozen=True)
class Stage:
    """A world, a panel of its tasks, and a model that can play them."""

    env: EnvironmentConfig
    """The settings that made the world, none of them left open."""
    model: str
    """Name or folder of the model."""
    world: World
    panel: Panel
    language_model: LanguageModel
    engine: RolloutEngine
    context: Context
    sampling: SamplingParams
    rollout: RolloutConfig
    environments: WorkerEnvironments | None = None
    """The worker processes that play the world; none: this one."""
    ranks: Ranks = ALONE
    """Who plays: each rank its share of the groups, and all know all episodes."""
    background: Background = field(default_factory=Background)

    def play(
        self,
        requests: Sequence[EpisodeRequest],
        seed: int,
        version: int,
        temperature: float | None,
        between_turns: Callable[[], None] = lambda: None,
    ) -> Played:
        """Play episodes with the model as it is, once nothing else is played."""
        self.background.settle()
        own = partial(self._play_own, between_turns=between_turns)
        return play_shared(own, self.ranks, requests, seed, version, temperature)

    def begin(
        self, requests: Sequence[EpisodeRequest], seed: int, version: int
    ) -> Callable[[], Played]:
        """Begin to play episodes in the background, with the model as it is now.

        The engine must have weights of its own. What is returned waits for the episodes' end.
        """
        self.background.settle()
        with ready(self.engine, self.language_model.model, sleeps=False):
            own = own_requests(requests, self.ranks)
            playing = self.background.begin(
                lambda go_on: self._play_ready(own, seed, version, None, go_on)
            )
        return lambda: play_shared(
            lambda *_: playing.result(), self.ranks, requests, seed, version, None
        )

    def _play_own(
        self,
        requests: Sequence[EpisodeRequest],
        seed: int,
        version: int,
        temperature: float | None,
        between_turns: Callable[[], None],
    ) -> Played:
        with ready(self.engine, self.language_model.model, sleeps=self.rollout.sleeps):
            return self._play_ready(requests, seed, version, temperature, between_turns)

    def _play_ready(
        self,
        requests: Sequence[EpisodeRequest],
        seed: int,
        version: int,
        temperature: float | None,
        between_turns: Callable[[], None],
    ) -> Played:
        sampling = self.sampling
        if temperature is not None:
            sampling = replace(sampling, temperature=temperature)
        rollout = self.rollout
        return play(
            requests,
            self.world,
            self.engine,
            self.context,
            sampling=sampling,
            seed=seed,
            policy_version=version,
            turn_limit=self.world.turn_limit,
            slots=rollout.slots,
            cut_actions=rollout.cut_actions,
            episode_seconds=rollout.episode_seconds,
            environments=self.environments,
            between_turns=between_turns,
        )

    def apart(self) -> "Stage":
        """The same stage, with an engine over a copy of the model: the model itself is sharded, or
        learns while the engine plays."""
        engine = self.engine
        if not isinstance(engine, HuggingFaceEngine):
            return self
        model = copy.deepcopy(engine.module).requires_grad_(False)
        ends = self.language_model.end_token_ids
        return replace(self, engine=HuggingFaceEngine(model, ends, refill=engine.refill))

    def close(self) -> None:
        """Give the engine's memory and connections back, and end the worker processes."""
        self.background.close()
        self.engine.close()
        if self.environments is not None:
            self.environments.close()

    def evaluate(self, seed: int, temperature: float) -> Evaluation:
        """Play every task of the panel once, with the same random keys whatever the model."""
        requests = [EpisodeRequest(task, 0) for task in self.panel.tasks]
        played = self.play(requests, derived_seed(seed, "evaluation"), 0, temperature)
        failed = tuple(failure.task for failure in played.failures)
        sampling = replace(self.sampling, temperature=temperature)
        return Evaluation(self.panel, sampling, tuple(played.trajectories), failed)


def make_stage(
    env: EnvironmentConfig,
    model: str | None,
    *,
    device: str,
    temperature: float,
    action_tokens: int | None,
    rollout: RolloutConfig | None = None,
    precision: Precision = "float32",
    load: Callable[..., LanguageModel] = load_language_model,
    chat_template: Path | None = None,
    ranks: Ranks = ALONE,
    placement: Placement = HERE,
) -> Stage:
    """Everything that playing needs, with the environment's small agent where `model` is none.

    `load` makes the model of a name on a device. Raises ValueError naming what is missing and the
    way out.
    """
    model = model_of(env, model)
    language_model = load(model, device, chat_template=chat_template)
    world = ListedWorld(env.world(language_model.wording))
    context = make_context(
        language_model.tokenizer,
        world,
        env.prompt,
        language_model.end_token_ids,
        window=env.window,
        thinking=env.thinking,
        action_format=env.action_format,
    )
    tasks = world.tasks(env.panel_split)
    panel = Panel(
        env.panel_split,
        tuple(tasks[: env.evaluation_tasks]),
        (*world.remarks(env.panel_split), *context.remarks, *language_model.remarks),
        env.origin,
        env.scored,
    )
    if env.evaluation_tasks is not None and len(panel.tasks) < env.evaluation_tasks:
        raise ValueError(
            f"env.evaluation_tasks is {env.evaluation_tasks}, but split {env.panel_split!r} has "
            f"{len(panel.tasks)} tasks"
        )
    sampling = SamplingParams(
        temperature=temperature,
        max_tokens=language_model.action_tokens if action_tokens is None else action_tokens,
    )
    rollout = rollout or RolloutConfig()
    recipe = partial(env.world, language_model.wording)
    environments = _workers(recipe, world.listed, rollout, placement)
    engine = make_engine(
        rollout, language_model, model_folder(model), precision, placement.servers, ranks
    )
    if sampling.max_tokens >= engine.context_limit:
        raise ValueError(
            f"an action of {sampling.max_tokens} tokens leaves no room for a prompt in the "
            f"model's context of {engine.context_limit}; set action_tokens lower"
        )
    return Stage(
        env=replace(env.decided(language_model.wording), evaluation_tasks=len(panel.tasks)),
        model=model,
        world=world,
        panel=panel,
        language_model=language_model,
        engine=engine,
        context=context,
        sampling=sampling,
        rollout=rollout,
        environments=environments,
        ranks=ranks,
    )


def _workers(
    recipe: Callable[[], World],
    splits: Sequence[str],
    rollout: RolloutConfig,
    placement: Placement,
) -> WorkerEnvironments | None:
    if not rollout.workers:
        return None
    return WorkerEnvironments(
        recipe,
        rollout.workers,
        splits=splits,
        step_seconds=rollout.step_seconds,
        restart_seconds=rollout.restart_seconds,
        restarts=rollout.restarts,
        start=placement.start_worker,
    )
