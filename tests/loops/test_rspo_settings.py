"""What each setting of the swap changes, through the trainer and the loop themselves."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest
import torch

from made import MadePlay, made_group
from rewardswap.errors import RunStoppedError
from rewardswap.loops.budget import Budget
from rewardswap.loops.dense_credit import RewardToGo
from rewardswap.loops.settings import Batch, RewardSwap
from rewardswap.methods.dapo import DAPO
from rewardswap.methods.gigpo import GiGPO
from rewardswap.methods.grpo import GRPO
from rewardswap.methods.ppo import PPO
from rewardswap.models.batching import collate, uncollate
from rewardswap.models.learner import Snapshot
from rewardswap.replay import ReplayBuffer
from rewardswap.rewards.combined import AddedRewards
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.rule import ProgressReward
from rewardswap.rollout.episodes import EpisodeRequest, Played
from rewardswap.task_stream import derived_seed
from rewardswap.trainer import Trainer
from rewardswap.types import Group
from training import (
    SEED,
    ChangedPlay,
    Record,
    by_index,
    on_policy,
    parameters,
    read_batches,
    run_rspo,
    same_snapshot,
    trainer_of,
)

AGENT = derived_seed(SEED, "agent", 0)
SIZES = Batch(4, 4)
METHODS = [GRPO(), GiGPO(), PPO(), DAPO()]


class Watched(MadePlay):
    """Looks at the trainer whenever episodes are played: the moment that makes them."""

    def __init__(self) -> None:
        super().__init__()
        self.trainer: Trainer | None = None
        self.policies: list[Snapshot] = []
        self.critics: list[Snapshot] = []
        self.logprob: dict[int, torch.Tensor] = {}
        """By identity of the trajectory: log-probs under the policy that played it."""

    def __call__(
        self, requests: Sequence[EpisodeRequest], seed: int, version: int, temperature: float | None
    ) -> Played:
        played = super().__call__(requests, seed, version, temperature)
        assert self.trainer is not None
        self.policies.append(self.trainer.policy.snapshot())
        if self.trainer.critic is not None:
            self.critics.append(self.trainer.critic.snapshot())
        alone = [Group(trajectory.task, (trajectory,)) for trajectory in played.trajectories]
        for group, logprob in zip(alone, scored(self.trainer, alone), strict=True):
            self.logprob[id(group.trajectories[0])] = logprob
        return played

    @property
    def by_explorer(self) -> list[bool]:
        return [seed != AGENT for _, seed, _ in self.calls]


class KeptBuffer(ReplayBuffer):
    """Remembers what was ever added."""

    def __init__(self) -> None:
        super().__init__(512, seed=5)
        self.added: list[list[Group]] = []

    def add(self, groups: Sequence[Group]) -> None:
        self.added.append(list(groups))
        super().add(groups)


def scored(trainer: Trainer, groups: Sequence[Group]) -> list[torch.Tensor]:
    """log-probs of each group's action tokens under the trainer's policy of now, joined."""
    found = uncollate(groups, trainer.policy.score(collate(groups)).logprob)
    return [logprob[group.token_mask] for group, logprob in zip(groups, found, strict=True)]


def watched_run(
    swap: RewardSwap, updates: int, **settings: Any
) -> tuple[Trainer, Watched, KeptBuffer]:
    play, buffer = Watched(), KeptBuffer()
    trainer = play.trainer = trainer_of(play, **settings)
    run_rspo(trainer, swap, SIZES, updates, buffer=buffer)
    return trainer, play, buffer


@pytest.mark.parametrize("method", METHODS, ids=lambda m: type(m).__name__)
def test_alpha_zero_without_exploring_is_every_base_method_to_the_bit(method: Any) -> None:
    records, passes = (Record(), Record()), ([], [])
    trainers = []
    for record, seen in zip(records, passes, strict=True):
        trainer = trainer_of(MadePlay(), record, algorithm=method.algorithm(), minibatches=2)
        trainer.policy.score = _counted(trainer.policy.score, seen)
        trainers.append(trainer)
    plain, swapped = trainers
    on_policy(plain, budget=Budget(3), tasks=3, group_size=4, reward=OutcomeReward())
    run_rspo(swapped, RewardSwap(explore_steps=0, alpha=0.0), Batch(3, 4), updates=3)
    assert torch.equal(parameters(plain), parameters(swapped))
    assert same_snapshot(plain.policy.snapshot(), swapped.policy.snapshot())
    if plain.critic is not None and swapped.critic is not None:
        assert same_snapshot(plain.critic.snapshot(), swapped.critic.snapshot())
    assert plain.collector.play.calls == swapped.collector.play.calls
    assert passes[0] == passes[1]  # neither a harvest nor a replay forward pass
    quiet = {"seconds", "rollout_seconds", "update_seconds", "loop", "missing_replay"}
    for (_, one, _), (_, other, _) in zip(records[0].rows, records[1].rows, strict=True):
        names = (set(one) | set(other)) - quiet
        assert {n: one[n] for n in names} == {n: other[n] for n in names}


def _counted(score: Any, seen: list[int]) -> Any:
    def watched(batch: Any) -> Any:
        seen.append(len(batch))
        return score(batch)

    return watched


def test_the_explorer_is_branched_off_and_thrown_away_with_its_critic() -> None:
    after: list[tuple[Snapshot, Snapshot]] = []
    harvested: list[tuple[torch.Tensor, torch.Tensor]] = []
    play = Watched()

    def report(metrics: Any, phase: str, groups: Any) -> None:
        assert trainer.critic is not None
        if phase == "learn":
            after.append((trainer.policy.snapshot(), trainer.critic.snapshot()))
        if phase == "harvest":
            harvested.append((parameters(trainer), parameters(trainer.critic)))

    trainer = play.trainer = trainer_of(play, algorithm=PPO().algorithm())
    trainer.report = report
    assert trainer.critic is not None
    start = (trainer.policy.snapshot(), trainer.critic.snapshot())
    run_rspo(trainer, RewardSwap(2, 1, 1 / 4), SIZES, updates=2)
    learn = [n for n, explorer in enumerate(play.by_explorer) if not explorer]
    assert len(learn) == len(harvested) == 2
    for n, before, moved in zip(learn, [start, *after[:-1]], harvested, strict=True):
        # where phase 2 begins, agent and critic are what they were where phase 1 began
        assert same_snapshot(play.policies[n], before[0])
        assert same_snapshot(play.critics[n], before[1])
        assert not torch.equal(moved[0], _joined(before[0]))
        assert not torch.equal(moved[1], _joined(before[1]))


def _joined(snapshot: Snapshot) -> torch.Tensor:
    """Parameters in the order of the model; tied ones stand once in these models."""
    return torch.cat([value.flatten() for value in snapshot.model.values()])


def test_the_agent_comes_back_when_phase_one_breaks() -> None:
    play = Watched()
    trainer = play.trainer = trainer_of(play, algorithm=PPO().algorithm())
    assert trainer.critic is not None
    before = (trainer.policy.snapshot(), trainer.critic.snapshot())

    class Broken(ProgressReward):
        def score(self, group: Group) -> torch.Tensor:
            if trainer.policy.version > 0:
                raise RunStoppedError("the reward broke")
            return super().score(group)

    with pytest.raises(RunStoppedError):
        run_rspo(trainer, RewardSwap(2, 1, 1 / 4), SIZES, updates=1, dense=Broken())
    assert not torch.equal(_joined(play.policies[1]), _joined(before[0]))
    assert same_snapshot(trainer.policy.snapshot(), before[0])
    assert same_snapshot(trainer.critic.snapshot(), before[1])


@pytest.mark.parametrize("start", ["fresh", "copy"])
def test_the_explorers_optimizer_starts_without_moments_or_with_the_agents(start: Any) -> None:
    _, play, _ = watched_run(
        RewardSwap(1, 1, 1 / 4, explorer_optimizer=start), 2, algorithm=PPO().algorithm()
    )
    # explore, harvest, learn, then the explorer of the second loop
    assert play.by_explorer[:4] == [True, True, False, True]
    for seen in (play.policies, play.critics):
        moments, agents = seen[3].optimizer["state"], seen[5].optimizer["state"]
        assert agents  # the agent has some, and has them again in phase 2
        if start == "fresh":
            assert not moments
        else:
            assert same_snapshot(seen[3], seen[5])


@pytest.mark.parametrize("optimizer", ["fresh", "copy"])
def test_the_explorers_learning_rate_is_its_own(optimizer: Any) -> None:
    swap = RewardSwap(1, 1, 1 / 4, explorer_learning_rate=0.5, explorer_optimizer=optimizer)
    record = Record()
    run_rspo(trainer_of(MadePlay(), record), swap, SIZES, updates=2)
    rates = [(phase, metrics["learning_rate"]) for phase, metrics, _ in record.rows]
    assert rates == [("explore", 0.5), ("harvest", 0.5), ("learn", 0.01)] * 2


def test_a_copied_optimizer_explores_at_the_constant_rate_though_the_agents_decays() -> None:
    record = Record()
    trainer = trainer_of(MadePlay(), record, learning_rate=lambda n: 0.01 / (1 + n))
    swap = RewardSwap(1, 2, 1 / 4, explorer_optimizer="copy")
    run_rspo(trainer, swap, SIZES, updates=4)
    assert record.metric("learning_rate", "explore") == [0.01, 0.01]
    assert record.metric("learning_rate") == pytest.approx([0.01, 0.005, 0.01 / 3, 0.0025])


@pytest.mark.parametrize("start", ["copy", "fresh"])
def test_the_explorers_critic_starts_as_the_agents_or_as_at_the_start(start: Any) -> None:
    _, play, _ = watched_run(
        RewardSwap(1, 1, 1 / 4, explorer_critic=start), 2, algorithm=PPO().algorithm()
    )
    first, explorers, agents = (play.critics[n] for n in (0, 3, 5))
    expected, other = (agents, first) if start == "copy" else (first, agents)
    assert torch.equal(_joined(explorers), _joined(expected))
    assert not torch.equal(_joined(explorers), _joined(other))


def test_the_explorer_takes_optimizer_steps_of_its_own_number() -> None:
    trainer = trainer_of(MadePlay(), minibatches=2, explorer_minibatches=5)
    steps = read_batches(trainer.policy)
    taken: list[tuple[str, int]] = []
    trainer.report = lambda metrics, phase, groups: taken.append((phase, len(steps)))
    run_rspo(trainer, RewardSwap(2, 2, 1 / 4), SIZES, updates=2)
    phases = [("explore", 5), ("explore", 10), ("harvest", 10), ("learn", 12), ("learn", 14)]
    assert taken == phases


@pytest.mark.parametrize(
    ("harvest", "rollouts"),
    [("final", [2]), ("during", [0, 1]), ("both", [0, 1, 2])],
)
def test_what_is_stored_has_the_log_probs_of_the_policy_that_made_it(
    harvest: Any, rollouts: list[int]
) -> None:
    trainer, play, buffer = watched_run(RewardSwap(2, 1, 1 / 4, harvest=harvest), 1)
    # k rollouts to learn from, and one more only where the last explorer's are stored
    assert play.by_explorer == [True] * (2 if harvest == "during" else 3) + [False]
    (stored,) = buffer.added
    keys = [(t.task.id, t.index) for group in stored for t in group.trajectories]
    assert keys == [key for n in rollouts for key in play.calls[n][0]]
    versions = torch.tensor([n for n in rollouts for _ in range(3)])
    far = []
    for group, version in zip(stored, versions.tolist(), strict=True):
        found = group.columns["behavior_logprob"][group.token_mask]
        expected = torch.cat([play.logprob[id(t)] for t in group.trajectories])
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)
        trainer.policy.restore(play.policies[0 if version else 1])
        far.append(float((scored(trainer, [group])[0] - found).abs().max()))
    assert min(far) > 0.05  # another policy's would have been found
    assert all(group.returns.tolist() == group.outcomes.tolist() for group in stored)


def test_without_exploring_the_harvest_is_the_agents_own() -> None:
    trainer, play, buffer = watched_run(RewardSwap(0, 1, 1 / 4), 1)
    assert play.by_explorer == [True, False]
    (stored,) = buffer.added
    for group in stored:
        trainer.policy.restore(play.policies[1])
        found = group.columns["behavior_logprob"][group.token_mask]
        (expected,) = scored(trainer, [group])
        torch.testing.assert_close(found, expected, atol=1e-5, rtol=0)


SETTINGS = [
    {"harvest": "during"},
    {"harvest": "both", "replay_by": "uniform"},
    {"explore_steps": 0},
    {"explore_steps": 2},
    {"explorer_optimizer": "copy", "explorer_learning_rate": 0.3},
    {"explorer_minibatches": 3, "replay_unit": "group"},
    {"replay_capacity": 5, "replay_by": "variance"},
]


def test_the_agents_episodes_do_not_depend_on_harvest_or_explorer() -> None:
    calls = []
    for changed in [{}, *SETTINGS]:
        play = MadePlay()
        swap = replace(RewardSwap(1, 1, 1 / 4), **changed)
        run_rspo(trainer_of(play, algorithm=DAPO().algorithm()), swap, SIZES, updates=2)
        calls.append([call for call in play.calls if call[1] == AGENT])
    assert len(calls[0]) >= 2
    assert all(found == calls[0] for found in calls)


def test_the_explorer_runs_its_own_algorithm_and_the_agent_the_methods() -> None:
    asked: list[str] = []

    class Asked:
        def __init__(self, name: str) -> None:
            self.name = name

        def __call__(self, groups: Sequence[Group]) -> list[torch.Tensor]:
            asked.append(self.name)
            found: list[torch.Tensor] = method.advantage(groups)
            return found

    method = GRPO().algorithm()
    trainer = trainer_of(
        MadePlay(),
        algorithm=replace(method, advantage=Asked("agent")),
        explorer_algorithm=replace(method, advantage=Asked("explorer")),
    )
    run_rspo(trainer, RewardSwap(2, 1, 1 / 4), SIZES, updates=2)
    assert asked == ["explorer", "explorer", "agent"] * 2


def test_reward_to_go_by_hand() -> None:
    group = made_group(outcomes=(0.0, 1.0))
    group = group.with_rewards({}, torch.tensor([[1.0, 2.0], [4.0, 0.0]]))
    (advantage,) = RewardToGo(discount=0.5)([group])
    # returns 1 + .5 x 2 = 2, 2 and 4: mean 8 / 3, unbiased standard deviation sqrt(4 / 3)
    mean, std = 8 / 3, (4 / 3) ** 0.5
    expected = [[(2 - mean) / std, (2 - mean) / std], [(4 - mean) / std, 0.0]]
    torch.testing.assert_close(advantage, torch.tensor(expected), atol=1e-4, rtol=0)


def test_reward_to_go_without_discounting_is_the_turns_own_reward() -> None:
    group = made_group(outcomes=(0.0, 1.0))
    group = group.with_rewards({}, torch.tensor([[1.0, 2.0], [3.0, 0.0]]))
    (advantage,) = RewardToGo(discount=0.0)([group])
    expected = torch.tensor([[-1.0, 0.0], [1.0, 0.0]])
    torch.testing.assert_close(advantage, expected, atol=1e-4, rtol=0)
    (equal,) = RewardToGo(0.9)([group.with_rewards({}, torch.zeros(2, 2))])
    assert not equal.any()


def test_reward_to_go_credits_the_turns_of_one_trajectory_apart() -> None:
    advantages = []
    for advantage in (GRPO().algorithm().advantage, RewardToGo(0.9)):
        explorer = replace(GRPO().algorithm(), advantage=advantage)
        trainer = trainer_of(MadePlay(), explorer_algorithm=explorer)
        batches = read_batches(trainer.policy)
        trainer.update(trainer.collect("explore", 4, 4), ProgressReward(), "explore")
        trainer.update(trainer.collect("learn", 4, 4), OutcomeReward(), "learn")
        advantages.append([batch.column("advantage") for batch in batches])
    spread = [[_spread(a) for a in found] for found in advantages]
    assert spread[0] == [0.0, 0.0]
    assert spread[1][0] > 0.1
    assert spread[1][1] == 0.0  # the agent's credit is its method's


def _spread(advantage: torch.Tensor) -> float:
    """How much the credit differs inside a row, at most."""
    rows = [row[row != 0] for row in advantage]
    return max(float(row.max() - row.min()) for row in rows if len(row))


def test_added_outcome_rewards_the_explorer_alone() -> None:
    record = Record()
    dense = AddedRewards(ProgressReward(), OutcomeReward())
    run_rspo(
        trainer_of(ChangedPlay(by_index), record),
        RewardSwap(1, 1, 1 / 4),
        SIZES,
        updates=1,
        dense=dense,
    )
    explored, _, learned = (groups for _, _, groups in record.rows)
    assert any(group.outcomes.any() for group in explored)
    for group in explored:
        expected = ProgressReward().score(group) + OutcomeReward().score(group)
        assert torch.equal(group.reward_in_force, expected)
        assert list(group.rewards) == ["progress"]
    for group in learned:
        assert torch.equal(group.reward_in_force, OutcomeReward().score(group))


def test_gigpos_replayed_rows_keep_both_parts_of_their_whole_group() -> None:
    """Whatever is selected beside it, a replayed turn has the advantage of its full group."""
    trainer = trainer_of(MadePlay(), algorithm=GiGPO().algorithm())
    harvested = trainer.harvest(trainer.collect("harvest", 4, 6), OutcomeReward())
    group = next(g for g in harvested if 1 <= g.outcomes.sum() <= 4)
    best = int(group.outcomes.argmax())
    fresh = trainer.collect("learn", 2, 4)
    whole = GiGPO().algorithm().advantage([group])[0]
    episode = GRPO().algorithm().advantage([group])[0]
    assert not torch.allclose(whole[best], episode[best])  # there is a step part
    seen = []
    for others in ((), (0, 1, 2, 3, 4, 5)):
        chosen = tuple(n == best or n in others for n in range(6))
        trainer = trainer_of(MadePlay(), algorithm=GiGPO().algorithm())
        batches = read_batches(trainer.policy)
        stored = replace(group, selected=chosen, replayed=True)
        trainer.update(fresh, OutcomeReward(), "learn", [stored], 0.25)
        (batch,) = batches
        rows = batch.take(torch.nonzero(batch.replayed)[:, 0])
        tokens = {row.tobytes(): n for n, row in enumerate(rows.tokens.numpy())}
        alone = collate([replace(stored, selected=tuple(n == best for n in range(6)))])
        width = rows.tokens.shape[1]
        padded = torch.nn.functional.pad(alone.tokens, (0, width - alone.tokens.shape[1]))
        place = tokens[padded[0].numpy().tobytes()]
        seen.append(rows.column("advantage")[place][rows.action_mask[place]])
    expected = whole[best][group.turn_mask[best]].repeat_interleave(2)
    assert torch.equal(seen[0], expected)
    assert torch.equal(seen[1], expected)
