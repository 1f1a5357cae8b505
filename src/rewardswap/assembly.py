"""What a run is made of, made from its settings: for a run with its record, and by hand."""

import copy
from collections.abc import Callable, Sequence

from torch import Tensor, nn

from rewardswap.algorithm import Algorithm
from rewardswap.collector import Phase, Play
from rewardswap.configuration import Run
from rewardswap.learners import make_learners
from rewardswap.models.adapter import add_adapter
from rewardswap.models.batching import Batch
from rewardswap.models.learner import Metrics
from rewardswap.models.loading import LanguageModel, load_language_model
from rewardswap.models.precision import round_weights
from rewardswap.prm.collection import collect_for_reward
from rewardswap.ranks import ALONE, Ranks
from rewardswap.rollout.placement import HERE, Placement
from rewardswap.stage import Stage, make_stage
from rewardswap.task_stream import derived_seed
from rewardswap.trainer import Trainer
from rewardswap.types import Group, Task, Trajectory


def stage_of(
    run: Run,
    load: Callable[..., LanguageModel] = load_language_model,
    ranks: Ranks = ALONE,
    placement: Placement = HERE,
) -> Stage:
    """The stage of a run; raises ValueError naming what is missing and the way out."""
    policy = run.policy
    return make_stage(
        run.env,
        policy.model,
        device=policy.device,
        temperature=policy.temperature,
        action_tokens=policy.action_tokens,
        rollout=run.rollout,
        precision=policy.precision,
        chat_template=policy.chat_template,
        load=load,
        ranks=ranks,
        placement=placement,
    )


def sharded(run: Run, ranks: Ranks) -> bool:
    """Whether several ranks divide the weights."""
    return run.policy.sharded and ranks.size > 1


def sharding(run: Run, ranks: Ranks) -> Callable[[nn.Module], None] | None:
    """What divides the weights of a model among the ranks, where that is asked."""
    if not sharded(run, ranks):
        return None
    from rewardswap.distributed.sharding import shard

    return shard


def prepared(run: Run, stage: Stage, algorithm: Algorithm) -> tuple[Stage, nn.Module | None]:
    """The stage with its model as it learns, and a copy of the start policy where it is needed.

    The model gets its precision and its adapter. The copy is the backbone of a learned reward, or
    the reference; with an adapter that is the policy itself, its adapter off.
    """
    model, policy = stage.language_model.model, run.policy
    if policy.precision == "bfloat16":
        round_weights(model)
    if sharded(run, stage.ranks) or run.rollout.one_step_off:
        stage = stage.apart()
    learned = run.uses_dense_reward and run.reward.learned
    needed = learned or (algorithm.needs_reference and policy.lora_rank is None)
    start_model = copy.deepcopy(model).requires_grad_(False) if needed else None
    if policy.lora_rank is not None:
        add_adapter(model, policy.lora_rank, policy.lora_alpha, policy.lora_targets)
    return stage, start_model


def rollouts_for_reward(run: Run, stage: Stage, tasks: Sequence[Task]) -> list[Trajectory]:
    """Rollouts of the start policy that the process reward model is fitted on."""
    return collect_for_reward(
        stage.play,
        tasks,
        seed=derived_seed(run.seed, "reward"),
        trajectories=run.reward.trajectories,
        group_size=run.reward.group_size,
        temperatures=run.reward.temperatures,
    )


def trainer_of(
    run: Run,
    stage: Stage,
    tasks: Sequence[Task],
    algorithms: Sequence[Algorithm],
    start_model: nn.Module | None,
    *,
    play: Play,
    report: Callable[[Metrics, Phase, Sequence[Group]], None],
    learned: Callable[[Sequence[Group], Batch, Tensor], None] = lambda *_: None,
) -> Trainer:
    """The trainer of a run; `algorithms` are the agent's and the explorer's. See `Trainer`."""
    agents, explorers = algorithms
    shard = sharding(run, stage.ranks)
    model = stage.language_model.model
    learners = make_learners(run.policy, model, start_model, agents, ranks=stage.ranks, shard=shard)

    def linear(updates: int) -> float:
        return run.policy.learning_rate * (1 - updates / run.budget)

    return Trainer(
        policy=learners.policy,
        play=play,
        begin=stage.begin if run.rollout.one_step_off else None,
        algorithm=agents,
        explorer_algorithm=explorers,
        explorer_minibatches=run.swap.explorer_minibatches,
        critic=learners.critic,
        training_tasks=tasks,
        seed=run.seed,
        minibatches=run.policy.minibatches,
        reference=learners.reference,
        on_failed_reward=run.reward.on_failure,
        failure_limit=run.rollout.failure_limit,
        most_skipped=run.checkpoint.most_skipped,
        learning_rate=linear if run.policy.decay == "linear" else None,
        report=report,
        learned=learned,
    )
