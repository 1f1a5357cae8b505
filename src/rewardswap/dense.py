"""The dense reward of a run: made from its settings, fitted or loaded, asked and refitted."""

import copy
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from torch import nn

from rewardswap.configuration import Run
from rewardswap.errors import RunStoppedError
from rewardswap.prm.loading import write_seen_tasks
from rewardswap.ranks import ALONE, Ranks
from rewardswap.rewards.base import RewardSource
from rewardswap.rewards.checked import label_all
from rewardswap.rewards.combined import AddedRewards
from rewardswap.rewards.novelty import NoveltyReward
from rewardswap.rewards.online import Refit
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.process import ProcessRewardModel
from rewardswap.rewards.quality import ProcessRewardQuality
from rewardswap.rewards.saving import SETTINGS
from rewardswap.task_stream import derived_seed
from rewardswap.types import Group, Trajectory
from rewardswap.whole import written_whole


class DenseReward:
    """What the explorer, or loop `dense`, learns under; nothing where nothing does."""

    def __init__(
        self,
        run: Run,
        turn_limit: int,
        start_model: nn.Module | None,
        ranks: Ranks = ALONE,
        shard: Callable[[nn.Module], None] | None = None,
    ) -> None:
        """`start_model` is the backbone of a learned one, which `ranks` read together; `shard`
        divides its weights among them.

        Raises ValueError for a function that cannot be imported, and a folder that holds no process
        reward model of this backbone.
        """
        self.config = run.reward
        self.turn_limit = turn_limit
        self.start_model = start_model
        self.ranks, self.shard = ranks, shard
        self.noise_seed = derived_seed(run.seed, "reward noise")
        self.process_model: ProcessRewardModel | None = None
        self.novelty = NoveltyReward() if run.reward.dense == "novelty" else None
        self.source: RewardSource | None = None
        self.to_fit = run.uses_dense_reward and run.reward.fitted
        if run.uses_dense_reward and not self.to_fit:
            if run.reward.folder is not None:
                self.process_model = self._loaded(run.reward.folder)
            self.source = self._source()

    def fit(self, trajectories: Sequence[Trajectory]) -> ProcessRewardQuality:
        """Fit the process reward model on rollouts of the start policy.

        Raises RunStoppedError where they cannot teach it anything.
        """
        model = self._unfitted()
        try:
            quality = model.fit(trajectories)
        except ValueError as error:
            raise RunStoppedError(
                f"the process reward model cannot be fitted: {error}; "
                "`--reward.dense progress` needs none"
            ) from error
        self.process_model = model
        self.source = self._source()
        return quality

    @property
    def in_force(self) -> RewardSource | None:
        """What is learned under: the source, with the outcome added where that is asked."""
        if self.source is None or not self.config.add_outcome:
            return self.source
        return AddedRewards(self.source, OutcomeReward())

    def before_scoring(self, groups: Sequence[Group]) -> None:
        """Novelty counts the states of a batch before it is scored."""
        if self.novelty is not None:
            self.novelty.count(groups)

    @property
    def refitted(self) -> bool:
        """Whether it is fitted again on what every loop saw."""
        return self.config.online and self.process_model is not None

    def refit(self, groups: Sequence[Group]) -> Refit | None:
        """Refit an online process reward model on what a loop saw; none where it is not online."""
        if self.process_model is None or not self.refitted:
            return None
        return self.process_model.refit([t for group in groups for t in group.trajectories])

    def scores(self, trajectories: Sequence[Trajectory]) -> list[list[float] | None] | None:
        """Turn rewards for a reader; none for a trajectory that cannot be scored and is to be
        dropped, and none at all without a dense reward."""
        if self.source is None:
            return None
        found: list[list[float] | None] = []
        for trajectory in trajectories:
            group = Group(trajectory.task, (trajectory,))
            labelled, _ = label_all([group], self.source, self.config.on_failure)
            found.append(labelled[0].reward_in_force[0].tolist() if labelled else None)
        return found

    def save(self, folder: Path) -> None:
        """Write the process reward model, if there is one, and which tasks fitting saw."""
        if self.process_model is not None:
            with written_whole(folder, over=SETTINGS) as beside:
                self.process_model.save_pretrained(beside)
                write_seen_tasks(beside, self.process_model)

    def state(self) -> dict[str, Any]:
        """What the run has taught the reward; a model's trajectories only where it is refitted."""
        model = None if self.process_model is None else self.process_model.state()
        if model is not None and not self.config.online:
            model["collected"] = replace(model["collected"], portions=())
        return {"model": model, "novelty": None if self.novelty is None else self.novelty.state()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go on from a `state`; nothing is fitted again."""
        if state["novelty"] is not None and self.novelty is not None:
            self.novelty.restore(state["novelty"])
        if state["model"] is not None:
            if self.process_model is None:
                self.process_model = self._unfitted()
            self.process_model.restore(state["model"])
            self.source = self._source()

    def _source(self) -> RewardSource:
        base = self.process_model or self.novelty
        return self.config.source(self.turn_limit, self.noise_seed, base)

    def _loaded(self, folder: Path) -> ProcessRewardModel:
        return self._divided(ProcessRewardModel.from_pretrained(folder, self._backbone()))

    def _unfitted(self) -> ProcessRewardModel:
        return self._divided(ProcessRewardModel(self._backbone(), self.config.model))

    def _divided(self, model: ProcessRewardModel) -> ProcessRewardModel:
        model.divide(self.ranks, self.shard)
        return model

    def _backbone(self) -> nn.Module:
        if self.start_model is None:
            raise ValueError("a process reward model needs a copy of the start policy")
        return copy.deepcopy(self.start_model)
