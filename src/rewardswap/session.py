"""A training run from start to end: everything is built first, then it is executed."""

import copy
import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from itertools import chain
from pathlib import Path
from typing import Any

import torch

from rewardswap.accounting import Accounting
from rewardswap.algorithm import Algorithm
from rewardswap.collection import episode_requests
from rewardswap.configuration import Run
from rewardswap.errors import RunStoppedError
from rewardswap.evaluation import Evaluation, assert_disjoint
from rewardswap.learners import make_learners
from rewardswap.loops.budget import Budget
from rewardswap.loops.dense_credit import RewardToGo
from rewardswap.loops.on_policy import on_policy
from rewardswap.loops.replay_credit import replay_credit
from rewardswap.loops.rspo import Rspo
from rewardswap.methods import method_name
from rewardswap.models.adapter import add_adapter, merged_state
from rewardswap.models.learner import Metrics
from rewardswap.models.loading import LanguageModel, load_language_model
from rewardswap.models.precision import round_weights
from rewardswap.report import write_report
from rewardswap.rewards.base import RewardSource
from rewardswap.rewards.combined import AddedRewards
from rewardswap.rewards.novelty import NoveltyReward
from rewardswap.rewards.online import refit
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.planted import phrase_rate
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.run_folder import RunFolder
from rewardswap.screen import Screen
from rewardswap.settings import write_run
from rewardswap.stage import Stage, make_stage
from rewardswap.task_stream import TaskStream, derived_seed
from rewardswap.trainer import Phase, Trainer
from rewardswap.types import Group, Trajectory


class Training:
    """A training run: everything is built and checked before the run folder is made."""

    def __init__(self, run: Run, load: Callable[..., LanguageModel] = load_language_model) -> None:
        torch.set_num_threads(run.threads)
        torch.manual_seed(run.seed)
        policy = run.policy
        self.stage = make_stage(
            run.env,
            policy.model,
            device=policy.device,
            temperature=policy.temperature,
            action_tokens=policy.action_tokens,
            rollout=run.rollout,
            precision=policy.precision,
            chat_template=policy.chat_template,
            load=load,
        )
        output = run.output or Path("runs") / f"{run.recipe}-{time.strftime('%Y%m%d-%H%M%S')}"
        self.run = run = _resolved(run, self.stage, output)
        world, panel = self.stage.world, self.stage.panel
        self.tasks = world.tasks(run.env.train_split)
        assert_disjoint(self.tasks, panel, may_share_origins=run.env.shares_origins)
        self.remarks = {
            run.env.train_split: world.remarks(run.env.train_split),
            panel.split: panel.remarks,
        }
        """What a reader of the run must know of its splits."""
        self.algorithm, self.explorer_algorithm = _algorithms(run)
        model = self.stage.language_model.model
        if policy.precision == "bfloat16":
            round_weights(model)
        self.start_model = copy.deepcopy(model).requires_grad_(False) if self._needs_start else None
        if policy.lora_rank is not None:
            add_adapter(model, policy.lora_rank, policy.lora_alpha, policy.lora_targets)
        self.accounting = Accounting()
        """What is played beside training: evaluations, and rollouts for the process reward."""
        self.process_reward = self._trained_before()
        self.novelty = NoveltyReward() if run.reward.dense == "novelty" else None
        self.dense = self._dense() if run.uses_dense_reward and not run.reward.fitted else None
        self.folder = RunFolder(output)

    @property
    def _needs_start(self) -> bool:
        """Whether a copy of the start policy is needed later, as reward backbone or as reference.

        With an adapter the reference is the policy itself, its adapter off.
        """
        copied = self.algorithm.needs_reference and self.run.policy.lora_rank is None
        return copied or (self.run.uses_dense_reward and self.run.reward.learned)

    def _trained_before(self) -> ProcessRewardModel | None:
        """The process reward model of `reward.folder`, none without one."""
        folder = self.run.reward.folder
        if folder is None or self.start_model is None:
            return None
        return ProcessRewardModel.from_pretrained(folder, copy.deepcopy(self.start_model))

    def _dense(self) -> RewardSource:
        """The dense reward as its settings say, with the process reward model if it is learned."""
        seed = derived_seed(self.run.seed, "reward noise")
        base = self.process_reward or self.novelty
        return self.run.reward.source(self.stage.world.turn_limit, seed, base)

    def _before_scoring(self, groups: Sequence[Group]) -> None:
        """Novelty counts the states of a batch of the explorer before it is scored."""
        if self.novelty is not None:
            self.novelty.count(groups)

    def _after_loop(self, groups: Sequence[Group]) -> None:
        """The online process reward model is refitted on what a loop saw."""
        if not self.run.reward.online or self.process_reward is None:
            return
        found = refit(self.process_reward, [t for group in groups for t in group.trajectories])
        self.folder.add_refit(self.process_reward.version, found.accepted, found.after.as_dict())

    def execute(self, screen: Screen) -> Path:
        """Evaluate, fit the process reward, train, evaluate, report; the path of the report."""
        started = time.monotonic()
        with closing(self.stage), closing(self.folder), closing(screen):
            before, after, trainer = self._evaluate_and_train(screen)
            seconds = time.monotonic() - started
            phases = {**self.accounting.as_dict(), **trainer.accounting.as_dict()}
            summary = {**_summary(self.run, trainer, before, after, seconds), "phases": phases}
            self.folder.write("summary.json", summary)
        report = write_report(self.folder.path)
        screen.finish(before, after, summary["seconds"], report)
        return report

    def rehearse(self, screen: Screen) -> Trainer:
        """Fit the process reward and train, with no evaluation and no checkpoint."""
        dense = self._dense_reward(screen)
        trainer = self._trainer(screen, dense)
        self._loop(trainer, dense)
        return trainer

    def _evaluate_and_train(self, screen: Screen) -> tuple[Evaluation, Evaluation, Trainer]:
        run, folder = self.run, self.folder
        write_run(run, folder.path / "config.toml")
        folder.write_environment()
        folder.write("remarks.json", {split: list(said) for split, said in self.remarks.items()})
        remarks = chain.from_iterable(self.remarks.values())
        screen.start(run, folder.path, self.stage.panel, len(self.tasks), remarks)
        before = self._evaluate()
        screen.evaluated("before", before)
        dense = self._dense_reward(screen)
        folder.write_evaluation("before", before, _process_rewards(dense, before.trajectories))
        trainer = self._trainer(screen, dense)
        try:
            self._loop(trainer, dense)
            if not trainer.agent_updates:
                raise RunStoppedError(
                    f"the budget of {run.budget} {run.budget_unit} was spent before the agent's "
                    "first update; set `budget` higher, or swap.explore_steps lower"
                )
        except RunStoppedError:
            self._save()
            raise
        after = self._evaluate()
        screen.evaluated("after", after)
        folder.write_evaluation("after", after, _process_rewards(dense, after.trajectories))
        self._save()
        return before, after, trainer

    def _evaluate(self) -> Evaluation:
        found = self.stage.evaluate(self.run.seed, self.run.evaluation_temperature)
        self._account("evaluate", found.trajectories)
        return found

    def _account(self, phase: str, trajectories: Sequence[Trajectory]) -> None:
        self.accounting.add(
            phase,
            environment_steps=sum(len(t.turns) for t in trajectories),
            generated_tokens=sum(t.action_token_count for t in trajectories),
        )
        self.accounting.end(phase)

    def _dense_reward(self, screen: Screen) -> RewardSource | None:
        """The dense reward, fitted here if it is to be; none where nothing learns under it."""
        if self.run.uses_dense_reward and self.run.reward.fitted and self.process_reward is None:
            self.process_reward = self._fitted(screen)
            self.dense = self._dense()
        return self.dense

    def _fitted(self, screen: Screen) -> ProcessRewardModel:
        """A process reward model, fitted on rollouts of the start policy."""
        run = self.run
        trajectories = self._collect_for_reward(screen)
        if self.start_model is None:
            raise ValueError("a process reward model needs a copy of the start policy")
        reward = ProcessRewardModel(copy.deepcopy(self.start_model), run.reward.model)
        try:
            quality = reward.fit(trajectories)
        except ValueError as error:
            raise RunStoppedError(
                f"the process reward model cannot be fitted: {error}; "
                "`--reward.dense progress` needs none"
            ) from error
        self._account("process_reward", trajectories)
        self.folder.write("prm.json", quality.as_dict())
        screen.fitted(quality)
        return reward

    def _collect_for_reward(self, screen: Screen) -> list[Trajectory]:
        """Rollouts of the start policy at several temperatures, whole groups of a task at each."""
        config = self.run.reward
        seed = derived_seed(self.run.seed, "reward")
        stream = TaskStream(self.tasks, seed)
        shares = len(config.temperatures)
        count = max(1, config.trajectories // (config.group_size * shares))
        trajectories: list[Trajectory] = []
        for number, temperature in enumerate(config.temperatures):
            requests = episode_requests(stream.draw(count), config.group_size)
            played = self.stage.play(requests, derived_seed(seed, number), 0, temperature)
            trajectories += played.trajectories
        screen.collected(trajectories)
        return trajectories

    def _trainer(self, screen: Screen, dense: RewardSource | None) -> Trainer:
        run = self.run

        def linear(updates: int) -> float:
            return run.policy.learning_rate * (1 - updates / run.budget)

        def record(metrics: Metrics, phase: Phase, groups: Sequence[Group]) -> None:
            if run.reward.planted_phrase is not None:
                played = (t for group in groups for t in group.trajectories)
                metrics["planted_share"] = phrase_rate(played, run.reward.planted_phrase)
            self.folder.add_metrics({"phase": phase, **metrics})
            self.folder.add_trajectories(groups[:1], phase, dense.name if dense else "outcome")
            screen.updated(metrics, phase)

        model = self.stage.language_model.model
        learners = make_learners(run.policy, model, self.start_model, self.algorithm)
        return Trainer(
            policy=learners.policy,
            play=self.stage.play,
            algorithm=self.algorithm,
            explorer_algorithm=self.explorer_algorithm,
            explorer_minibatches=run.swap.explorer_minibatches,
            critic=learners.critic,
            training_tasks=self.tasks,
            seed=run.seed,
            minibatches=run.policy.minibatches,
            reference=learners.reference,
            on_failed_reward=run.reward.on_failure,
            learning_rate=linear if run.policy.decay == "linear" else None,
            report=record,
        )

    def _loop(self, trainer: Trainer, dense: RewardSource | None) -> None:
        run, outcome = self.run, OutcomeReward()
        budget = Budget(run.budget, run.budget_unit)
        if dense is not None and run.reward.add_outcome:
            dense = AddedRewards(dense, outcome)
        if run.loop != "rspo":
            reward = dense if run.loop == "dense" and dense is not None else outcome
            tasks, size = run.batch.tasks, run.batch.group_size
            on_policy(
                trainer,
                budget=budget,
                tasks=tasks,
                group_size=size,
                reward=reward,
                before_scoring=self._before_scoring,
            )
            return
        swap = run.swap
        Rspo(
            trainer,
            swap,
            run.batch,
            budget=budget,
            dense=dense or outcome,
            outcome=outcome,
            buffer=swap.buffer(derived_seed(run.seed, "replay")),
            before_scoring=self._before_scoring,
            after_loop=self._after_loop,
        ).run()

    def _save(self) -> None:
        """The trained policy as an ordinary Hugging Face folder, and the process reward model."""
        language_model = self.stage.language_model
        model = language_model.model
        model.save_pretrained(self.folder.path / "checkpoint", state_dict=merged_state(model))
        language_model.tokenizer.save_pretrained(self.folder.path / "checkpoint")
        if self.process_reward is not None:
            self.process_reward.save_pretrained(self.folder.path / "process-reward")


def _resolved(run: Run, stage: Stage, output: Path) -> Run:
    """The run with every setting that was left open as it was decided."""
    policy = replace(run.policy, model=stage.model, action_tokens=stage.sampling.max_tokens)
    return replace(run, env=stage.env, policy=policy, output=output)


def _algorithms(run: Run) -> tuple[Algorithm, Algorithm]:
    """The agent's and the explorer's: the run's method with the swap's credit of rewards."""
    method = run.method.algorithm()
    if run.loop == "on_policy":
        return method, method
    explorer = method
    if run.reward.dense_credit == "reward_to_go":
        explorer = replace(method, advantage=RewardToGo(run.reward.dense_discount))
    if run.loop == "dense":
        return explorer, explorer
    credit = replay_credit(method.advantage, run.swap.replay_advantage)
    return replace(method, advantage=credit), explorer


def _process_rewards(
    dense: RewardSource | None, trajectories: Sequence[Trajectory]
) -> list[list[float]] | None:
    """Turn rewards for the reader of the report."""
    if dense is None:
        return None
    groups = [Group(trajectory.task, (trajectory,)) for trajectory in trajectories]
    return [dense.score(group)[0].tolist() for group in groups]


def _summary(
    run: Run, trainer: Trainer, before: Evaluation, after: Evaluation, seconds: float
) -> dict[str, Any]:
    counters = trainer.counters
    return {
        "recipe": run.recipe,
        "method": method_name(run.method),
        "loop": run.loop,
        "seed": run.seed,
        "tasks": before.total.tasks,
        "panel_hash": before.panel.hash,
        "success_before": before.total.success,
        "success_before_interval": list(before.total.interval),
        "task_score_before": before.total.task_score,
        "success_after": after.total.success,
        "success_after_interval": list(after.total.interval),
        "task_score_after": after.total.task_score,
        "seconds": seconds,
        "agent_updates": trainer.agent_updates,
        "all_updates": trainer.counters["all_updates"],
        "environment_steps": counters["environment_steps"],
        "generated_tokens": counters["generated_tokens"],
        "trained_tokens": counters["trained_tokens"],
        "failed_episodes": counters["failed_episodes"],
        "dropped_rewards": counters["dropped_rewards"],
    }
