"""A training run from start to end: everything is built first, then it is executed."""

import time
from collections.abc import Callable, Sequence
from contextlib import closing
from dataclasses import replace
from functools import partial
from itertools import chain
from pathlib import Path
from tempfile import TemporaryDirectory

import torch

from rewardswap.assembly import (
    prepared,
    rollouts_for_reward,
    sharded,
    sharding,
    stage_of,
    trainer_of,
)
from rewardswap.checkpoints.files import Checkpoints, Found
from rewardswap.collector import Phase
from rewardswap.configuration import Run
from rewardswap.course import Course
from rewardswap.dense import DenseReward
from rewardswap.errors import RunStoppedError, StopAskedError, UnfitCheckpointError
from rewardswap.evaluation import Evaluation, Panel, assert_disjoint
from rewardswap.interrupts import Interrupts
from rewardswap.learners import algorithms_of
from rewardswap.loops.hacking import Alarm
from rewardswap.loops.loop import Loop
from rewardswap.models.adapter import merged_state
from rewardswap.models.learner import Metrics
from rewardswap.models.loading import LanguageModel, load_language_model
from rewardswap.models.pretrained import save_model
from rewardswap.models.shards import gathered
from rewardswap.monitors import warnings_of
from rewardswap.outer_loop import make_loop
from rewardswap.ranks import ALONE, Ranks, by_first
from rewardswap.recording import Recorder
from rewardswap.report import write_report
from rewardswap.rewards.features import fingerprint
from rewardswap.rewards.planted import phrase_rate
from rewardswap.rollout.placement import HERE, Placement
from rewardswap.run_folder import RunFolder, writing
from rewardswap.run_state import PARTS, RunState, fitting, found_in, given_up, settings_sha256
from rewardswap.screen import Screen
from rewardswap.settings import as_toml, write_run
from rewardswap.stage import Stage
from rewardswap.summary import summary_of
from rewardswap.trackers.config import TrackConfig
from rewardswap.trackers.tracking import Tracking
from rewardswap.trainer import Trainer
from rewardswap.types import Group, Trajectory


class Training:
    """A training run: everything is built and checked before the run folder is made."""

    def __init__(
        self,
        run: Run,
        load: Callable[..., LanguageModel] = load_language_model,
        *,
        resume: bool = False,
        ranks: Ranks = ALONE,
        placement: Placement = HERE,
    ) -> None:
        """With `resume` the run goes on from the last checkpoint in its folder, `run.output`.

        Raises ValueError saying what is wrong with a setting, or with what is to be gone on from.
        """
        self.ranks = ranks
        torch.set_num_threads(run.threads)
        torch.manual_seed(run.seed)
        self.stage = stage_of(run, load, ranks, placement)
        output = run.output or Path("runs") / f"{run.recipe}-{time.strftime('%Y%m%d-%H%M%S')}"
        if not self.keeps:
            self._aside = TemporaryDirectory(prefix="rewardswap-rank-")
            output = Path(self._aside.name)
        self.run = run = _resolved(run, self.stage, output)
        world, panel = self.stage.world, self.stage.panel
        self.tasks = world.tasks(run.env.train_split)
        assert_disjoint(self.tasks, panel, may_share_origins=run.env.shares_origins)
        self.remarks = {
            run.env.train_split: world.remarks(run.env.train_split),
            panel.split: panel.remarks,
        }
        """What a reader of the run must know of its splits."""
        self.algorithm, self.explorer_algorithm = algorithms_of(run)
        start_sha256 = fingerprint(self.stage.language_model.model)
        self.stage, self.start_model = prepared(run, self.stage, self.algorithm)
        self.dense = DenseReward(
            run, world.turn_limit, self.start_model, ranks, sharding(run, ranks)
        )
        self.interrupts = Interrupts(ranks)
        self.known = RunState(
            {
                "panel": panel.hash,
                "training_tasks": Panel(run.env.train_split, tuple(self.tasks)).hash,
                "start_policy": start_sha256,
                "settings": settings_sha256(run),
            },
            self.dense,
        )
        track = run.track if self.keeps else TrackConfig()
        self.tracking = Tracking(track, output, as_toml(run))
        folder = (output if ranks.size == 1 else ranks.first(output.absolute())) / "checkpoints"
        self.checkpoints = Checkpoints(folder, run.checkpoint.keep, PARTS, ranks)
        by_first(ranks, lambda: self._open(output, resume=resume))
        if not self.keeps:
            self._open(output, resume=False)
        self.resumed: Found | None = None
        with given_up(self.folder, self.stage):
            if sharded(run, ranks) and run.checkpoint.every:
                from rewardswap.distributed.parts import refuse_unseen

                refuse_unseen(folder.parent, ranks)
            if resume:
                self.resumed = found_in(self.folder, self.checkpoints, self.known.identity)

    def _open(self, output: Path, *, resume: bool) -> None:
        self.folder = RunFolder(output, resume=resume)

    @property
    def keeps(self) -> bool:
        """Whether this process keeps the record of the run: it is alone, or rank 0."""
        return self.ranks.rank == 0

    def execute(self, screen: Screen) -> Path:
        """Evaluate, fit the process reward, train, evaluate, report; the path of the report."""
        with (
            closing(self.stage),
            closing(self.folder),
            closing(screen),
            self.tracking.told(screen.warn),
            writing(self.folder.path),
        ):
            before, after, trainer = self._evaluate_and_train(screen)
            seconds = self.known.seconds
            phases = {**self.known.accounting.as_dict(), **trainer.accounting.as_dict()}
            summary = {
                **summary_of(self.run, trainer, before, after, seconds),
                "warnings": dict(self.known.warned),
                "phases": phases,
            }
            self.folder.write("summary.json", summary)
            report = write_report(self.folder.path) if self.keeps else self.folder.path
            self.checkpoints.clear()
        screen.finish(before, after, summary["seconds"], report)
        return report

    def rehearse(self, screen: Screen) -> Trainer:
        """Fit the process reward and train, with no evaluation and no checkpoint."""
        self._fit_dense_reward(screen)
        trainer = self._trainer(screen)
        self._loop(trainer, screen).run()
        return trainer

    def _evaluate_and_train(self, screen: Screen) -> tuple[Evaluation, Evaluation, Trainer]:
        remarks = chain.from_iterable(self.remarks.values())
        screen.start(self.run, self.folder.path, self.stage.panel, len(self.tasks), remarks)
        try:
            before = self._start(screen) if self.resumed is None else self._before(self.resumed)
            trainer = self._trainer(screen)
            course = Course(
                trainer, self._loop(trainer, screen), self.known, self.folder, self.checkpoints
            )
            course.run(self.run, self.interrupts, screen, self._take_resumed())
        except UnfitCheckpointError:
            raise
        except (Exception, StopAskedError) as error:
            if sharded(self.run, self.ranks) and not isinstance(error, StopAskedError):
                raise  # it may be this rank's alone, and all are needed for the weights
            try:
                self._save()
            except RunStoppedError as second:
                error.add_note(str(second))
            raise
        self._save()
        after = self._evaluate()
        screen.evaluated("after", after)
        self._record("after", after)
        return before, after, trainer

    def _start(self, screen: Screen) -> Evaluation:
        """Write what the run is, evaluate the start policy and fit the process reward."""
        run, folder = self.run, self.folder
        folder.cut({})  # a run that goes on may not have come to its first checkpoint
        write_run(run, folder.path / "config.toml")
        folder.write_environment()
        folder.write("remarks.json", {split: list(said) for split, said in self.remarks.items()})
        before = self.known.before = self._evaluate()
        screen.evaluated("before", before)
        try:
            self._fit_dense_reward(screen)
        except RunStoppedError:
            self._record("before", before)
            raise
        self._record("before", before)
        return before

    def _take_resumed(self) -> Found | None:
        """The checkpoint to go on from, for the last time: its tensors are to be freed."""
        found, self.resumed = self.resumed, None
        return found

    def _before(self, found: Found) -> Evaluation:
        """Bring back what the run knows beside trainer and loop; the start policy's evaluation."""
        with fitting(found.number):
            self.known.restore(found.state, self.stage, self.run.evaluation_temperature)
        assert self.known.before is not None
        return self.known.before

    def _evaluate(self) -> Evaluation:
        self.known.accounting.begin()
        found = self.stage.evaluate(self.run.seed, self.run.evaluation_temperature)
        self._account("evaluate", found.trajectories)
        return found

    def _record(self, name: str, evaluation: Evaluation) -> None:
        """Write an evaluation; it is kept where the dense reward stops the run on it."""
        try:
            scores = self.dense.scores(evaluation.trajectories)
        except RunStoppedError:
            self.folder.write_evaluation(name, evaluation, None)
            raise
        self.folder.write_evaluation(name, evaluation, scores)

    def _account(self, phase: str, trajectories: Sequence[Trajectory]) -> None:
        self.known.accounting.add(
            phase,
            environment_steps=sum(len(t.turns) for t in trajectories),
            generated_tokens=sum(t.action_token_count for t in trajectories),
        )
        self.known.accounting.end(phase)

    def _fit_dense_reward(self, screen: Screen) -> None:
        """Fit the process reward model, if there is one to fit, on rollouts of the start policy."""
        if not self.dense.to_fit:
            return
        self.known.accounting.begin()
        trajectories = rollouts_for_reward(self.run, self.stage, self.tasks)
        screen.collected(trajectories)
        quality = self.dense.fit(trajectories)
        self._account("process_reward", trajectories)
        self.folder.write("prm.json", quality.as_dict())
        screen.fitted(quality)

    def _warn(self, screen: Screen, kind: str, words: str, update: float) -> None:
        """Record a warning, and show the first of its kind."""
        self.folder.add_warning(kind, words, update)
        if not self.known.warned[kind]:
            screen.warn(words)
        self.known.warned[kind] += 1

    def _trainer(self, screen: Screen) -> Trainer:
        run = self.run
        source = self.dense.source
        tokenizer = self.stage.language_model.tokenizer
        recorder = Recorder(run.record, tokenizer, source.name if source else "outcome")

        def record(metrics: Metrics, phase: Phase, groups: Sequence[Group]) -> None:
            if run.reward.planted_phrase is not None:
                played = (t for group in groups for t in group.trajectories)
                metrics["planted_share"] = phrase_rate(played, run.reward.planted_phrase)
            self.folder.add_metrics({"phase": phase, **metrics})
            self.tracking.add(metrics, phase)
            self.folder.add_trajectories(recorder.records(metrics, phase, groups))
            screen.updated(metrics, phase)
            for kind, words in warnings_of(metrics).items():
                self._warn(screen, kind, words, metrics["update"])

        return trainer_of(
            run,
            self.stage,
            self.tasks,
            (self.algorithm, self.explorer_algorithm),
            self.start_model,
            play=partial(self.stage.play, between_turns=self.interrupts.check),
            report=record,
            learned=recorder.learned,
        )

    def _loop(self, trainer: Trainer, screen: Screen) -> Loop:
        def alarmed(alarm: Alarm) -> None:
            trainer.note(hacking_alarm=1.0)
            words = f"the dense reward may be hacked: {alarm.words}"
            self._warn(screen, "hacking", words, trainer.agent_updates)

        def refit(groups: Sequence[Group]) -> None:
            self._after_loop(groups, screen, float(trainer.agent_updates))

        return make_loop(self.run, trainer, self.dense, alarmed=alarmed, refit=refit)

    def _after_loop(self, groups: Sequence[Group], screen: Screen, update: float) -> None:
        """Refit an online process reward; one that a loop cannot teach stays, and that is said."""
        try:
            found = self.dense.refit(groups)
        except ValueError as error:
            self._warn(
                screen, "not_refitted", f"the process reward was not refitted: {error}", update
            )
            return
        if found is not None:
            self.folder.add_refit(found.accepted, found.after.as_dict())

    def _save(self) -> None:
        """The trained policy as an ordinary Hugging Face folder, and the process reward model.

        Raises RunStoppedError where they cannot be written.
        """
        path, language_model = self.folder.path, self.stage.language_model
        model = language_model.model
        weights = {name: gathered(weight) for name, weight in merged_state(model).items()}
        if not self.keeps:
            return
        try:
            save_model(model, path / "checkpoint", language_model.tokenizer, weights=weights)
            self.dense.save(path / "process-reward")
        except OSError as error:
            raise RunStoppedError(f"the policy was not kept: {error}") from error


def _resolved(run: Run, stage: Stage, output: Path) -> Run:
    """The run with every setting that was left open as it was decided."""
    policy = replace(run.policy, model=stage.model, action_tokens=stage.sampling.max_tokens)
    return replace(run, env=stage.env, policy=policy, output=output)
