"""Dense rewards by name: rules, controls, functions, bonus, noise, and what happens on failure."""

from dataclasses import replace
from types import ModuleType
from typing import Any

import pytest
import torch

from made import made_trajectory
from rewardswap.errors import RunStoppedError
from rewardswap.rewards.calling import CallableReward, named_function
from rewardswap.rewards.checked import RewardFailedError, label, label_all
from rewardswap.rewards.gains import ProgressGains
from rewardswap.rewards.noise import NoisyReward
from rewardswap.rewards.outcome import OutcomeReward
from rewardswap.rewards.planted import PlantedBonus, phrase_rate
from rewardswap.rewards.sources import RULES, RewardConfig
from rewardswap.rewards.uninformative import ConstantReward, SilentReward, TurnCounter
from rewardswap.types import Group, Task, Trajectory


def rewarded(index: int, rewards: tuple[float, ...], actions: tuple[str, ...] = ()) -> Trajectory:
    """A trajectory of task a whose turns have these rewards of the environment."""
    made = made_trajectory("a", index, [(2, 1)] * len(rewards), 0.0)
    said = actions or ("look",) * len(rewards)
    turns = [
        replace(turn, reward=reward, action=action)
        for turn, reward, action in zip(made.turns, rewards, said, strict=True)
    ]
    return replace(made, turns=tuple(turns))


GROUP = Group(
    Task("a", "family"),
    (
        rewarded(0, (0.5, -0.5, 0.5), ("take mug", "put mug", "take mug")),
        rewarded(1, (-0.25, 0.25), ("open box", "look")),
        rewarded(2, (1.0,), ("take all",)),
    ),
)
Z = 0.0


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        (ProgressGains(), [[0.5, 0.0, 0.5], [0.0, 0.25, Z], [1.0, Z, Z]]),
        (ConstantReward(), [[0.0, 0.0, 1.0], [0.0, 1.0, Z], [1.0, Z, Z]]),
        (TurnCounter(4), [[-0.25, -0.25, -0.25], [-0.25, -0.25, Z], [-0.25, Z, Z]]),
        (SilentReward(), [[Z, Z, Z], [Z, Z, Z], [Z, Z, Z]]),
        (
            PlantedBonus(ProgressGains(), "take", 0.3),
            [[0.8, 0.0, 0.8], [0.0, 0.25, Z], [1.3, Z, Z]],
        ),
        (
            CallableReward(lambda t: [float(len(u.action)) for u in t.turns]),
            [[8.0, 7.0, 8.0], [8.0, 4.0, Z], [8.0, Z, Z]],
        ),
    ],
)
def test_rewards_by_hand(source: Any, expected: list[list[float]]) -> None:
    torch.testing.assert_close(source.score(GROUP), torch.tensor(expected))


def test_undoing_and_redoing_pays_where_losses_are_not_charged() -> None:
    plain = RewardConfig(dense="progress").source(12, 0).score(GROUP).sum(dim=1)
    gains = RewardConfig(dense="progress_gains").source(12, 0).score(GROUP).sum(dim=1)
    assert plain.tolist() == [0.5, 0.0, 1.0]
    assert gains.tolist() == [1.0, 0.25, 1.0]


def test_noise_has_its_deviation_and_belongs_to_the_turn() -> None:
    members = [rewarded(n, (0.0,) * 5) for n in range(400)]
    group = Group(Task("a", "family"), tuple(members))
    noisy = NoisyReward(SilentReward(), 0.3, seed=1)
    drawn = noisy.score(group)
    assert abs(float(drawn.mean())) < 0.03  # its standard error is .3 / sqrt(2000) = .0067
    assert abs(float(drawn.std()) - 0.3) < 0.03
    alone = noisy.score(Group(Task("a", "family"), (members[7],)))
    assert torch.equal(alone[0], drawn[7])
    assert not torch.equal(NoisyReward(SilentReward(), 0.3, seed=2).score(group), drawn)
    later = noisy.score(Group(Task("a", "family"), (replace(members[7], policy_version=9),)))
    assert not torch.equal(later, alone)


def test_noise_stays_where_turns_are() -> None:
    scores = NoisyReward(ProgressGains(), 1.0, 0).score(GROUP)
    assert (scores[~GROUP.turn_mask] == 0).all()


def test_the_share_of_turns_with_a_phrase() -> None:
    assert phrase_rate(GROUP.trajectories, "take") == pytest.approx(3 / 6)
    assert phrase_rate([], "take") == 0.0


@pytest.mark.parametrize("name", [name for name in RULES if name != "novelty"])
def test_every_rule_is_made_by_its_name(name: str) -> None:
    config = RewardConfig(dense=name, noise=0.5 if name == "noise" else 0.0)
    assert config.source(12, 0).name == name
    assert not config.learned


def test_bonus_and_noise_lie_on_any_reward() -> None:
    config = RewardConfig(dense="progress", planted_phrase="take", planted_bonus=2.0, noise=0.1)
    source = config.source(12, 5)
    assert isinstance(source, NoisyReward)
    assert isinstance(source.source, PlantedBonus)
    assert source.name == "progress"
    model = OutcomeReward("process")
    assert RewardConfig().source(12, 5, model) is model
    with pytest.raises(ValueError, match="'novelty' cannot be made from its name alone"):
        RewardConfig(dense="novelty").source(12, 5)


def test_functions_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    module = ModuleType("own_rewards")
    module.zero = lambda trajectory: [0.0] * len(trajectory.turns)  # type: ignore[attr-defined]
    module.number = 3  # type: ignore[attr-defined]
    monkeypatch.setitem(__import__("sys").modules, "own_rewards", module)
    source = RewardConfig(dense="own_rewards:zero").source(12, 0)
    assert source.name == "zero"
    assert not source.score(GROUP).any()
    with pytest.raises(ValueError, match="is 3, not a function"):
        named_function("own_rewards:number")
    with pytest.raises(ValueError, match="'own_rewards:none' cannot be imported"):
        named_function("own_rewards:none")
    with pytest.raises(ValueError, match="cannot be imported"):
        named_function("no_such_module:x")


def fails_on(*indices: int, how: str = "raise") -> CallableReward:
    def function(trajectory: Trajectory) -> list[float]:
        if trajectory.index in indices:
            if how == "raise":
                raise KeyError("broken")
            return [float("nan")] * (len(trajectory.turns) + (how == "length"))
        return [0.5] * len(trajectory.turns)

    return CallableReward(function, "mine")


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("raise", "'mine' of task 'a' raised KeyError"),
        ("nan", "'mine' of task 'a' is not finite in episode 1"),
        ("length", "one number per turn"),
    ],
)
def test_a_reward_that_fails_names_the_task(how: str, said: str) -> None:
    with pytest.raises(RewardFailedError, match=said):
        label(GROUP, fails_on(1, how=how))
    with pytest.raises(RunStoppedError, match=r"start a run with --reward\.on-failure drop"):
        label_all([GROUP], fails_on(1, how=how), "stop")
    (rest,), dropped = label_all([GROUP], fails_on(1, how=how), "drop")
    assert dropped == 1
    assert [t.index for t in rest.trajectories] == [0, 2]
    assert rest.reward_in_force.tolist() == [[0.5, 0.5, 0.5], [0.5, 0.0, 0.0]]


def test_what_is_left_keeps_its_other_rewards_and_its_selection() -> None:
    group = replace(label(GROUP, OutcomeReward()), selected=(True, False, True))
    (rest,), dropped = label_all([group], fails_on(0), "drop")
    assert dropped == 1
    assert rest.selected == (False, True)
    assert rest.turn_count == 2
    assert rest.rewards["outcome"].shape == (2, 2)


def test_a_group_of_fewer_than_two_is_left_out_and_counted() -> None:
    single = Group(GROUP.task, GROUP.trajectories[:1])
    kept, dropped = label_all([GROUP, single], fails_on(0, 2), "drop")
    assert (kept, dropped) == ([], 4)
    kept, dropped = label_all([single], fails_on(2), "drop")
    assert (len(kept), dropped) == (1, 0)


def test_a_source_of_the_wrong_shape_is_refused() -> None:
    class Wrong:
        name = "wrong"

        def score(self, group: Group) -> Any:
            return torch.zeros(1)

    with pytest.raises(RewardFailedError, match=r"has shape \[1\], not \[3, 3\]"):
        label(GROUP, Wrong())  # type: ignore[arg-type]


def test_a_run_that_stops_by_itself_is_not_a_failed_reward() -> None:
    class Stops:
        name = "stops"

        def score(self, group: Group) -> Any:
            raise RunStoppedError("enough")

    with pytest.raises(RunStoppedError, match=r"^enough$"):
        label_all([GROUP], Stops(), "drop")  # type: ignore[arg-type]


def test_a_function_may_give_tensors_with_a_gradient() -> None:
    def function(trajectory: Trajectory) -> torch.Tensor:
        return torch.ones(len(trajectory.turns), requires_grad=True) * 2

    source = CallableReward(function, "mine")  # type: ignore[arg-type]
    assert not source.score(GROUP).requires_grad


def test_a_function_that_ends_the_program_is_a_reward_that_fails() -> None:
    def function(trajectory: Trajectory) -> list[float]:
        raise SystemExit(0)

    with pytest.raises(RunStoppedError, match="'mine' of task 'a' raised SystemExit"):
        label_all([GROUP], CallableReward(function, "mine"), "stop")


@pytest.mark.parametrize(
    "above", [lambda s: NoisyReward(s, 1.0, 0), lambda s: PlantedBonus(s, "take", 1.0)]
)
def test_what_lies_on_a_reward_leaves_its_numbers_alone(above: Any) -> None:
    kept = torch.zeros(3, 3)

    class Remembers:
        name = "remembers"

        def score(self, group: Group) -> torch.Tensor:
            return kept

    assert above(Remembers()).score(GROUP).any()
    assert not kept.any()
