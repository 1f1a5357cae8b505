"""What is wrong with an environment is found, and nothing in one that is sound."""

import re
from collections.abc import Sequence
from functools import partial

import pytest

from inspection import faulty_environments as faulty
from rewardswap.adapters.seeded import SeededWorld
from rewardswap.envs.alfworld.generator import GeneratedWorld
from rewardswap.envs.base import Step
from rewardswap.envs.corridor import CorridorEnvironment, CorridorWorld
from rewardswap.envs.faulty import Fault, FaultyWorld
from rewardswap.envs.webshop import ShopWorld
from rewardswap.envs.webshop.synthetic import synthetic_catalogue
from rewardswap.inspection.check import check_environment
from rewardswap.inspection.findings import Finding
from rewardswap.inspection.walks import heard
from rewardswap.types import Task


def named(found: Sequence[Finding], name: str) -> Finding:
    """The finding of this name."""
    matching = [finding for finding in found if finding.name == name]
    assert len(matching) == 1, [str(finding) for finding in found]
    return matching[0]


@pytest.mark.parametrize("make", [faulty.Sound, f"{faulty.__name__}:Sound"])
def test_in_a_sound_one_nothing_is_found_but_what_is_shared(make: object) -> None:
    found = check_environment(make)  # type: ignore[arg-type]
    assert found.faults == ()
    assert [finding.name for finding in found] == ["tasks"]  # so few tasks that splits share some
    assert "held-out seeds begin exactly as one of the first 100 training seeds" in str(found)


def test_hidden_goals_are_no_fault() -> None:
    assert check_environment(faulty.Guess).faults == ()


@pytest.mark.parametrize("name", faulty.FAULTS)
def test_every_fault_is_found_alone(name: str) -> None:
    found = check_environment(faulty.FAULTS[name], turns=8)
    fault = named(found.faults, name)
    assert len(found.faults) == 1, str(found)
    assert fault.said and fault.way_out


@pytest.mark.parametrize("name", faulty.REMARKS)
def test_every_remark_is_made_and_is_no_fault(name: str) -> None:
    found = check_environment(faulty.REMARKS[name])
    assert found.faults == ()
    named(list(found), name)
    also = {"always won": {"reward after the end"}, "commands": {"no end"}}.get(name, set())
    assert {finding.name for finding in found} == {"tasks", name, *also}, str(found)


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (faulty.Raises, r"in turn 2 of task '\w{16}' raised KeyError: 'door' \(. of 8 episodes br"),
        (faulty.Four, r"ValueError: step must return \(observation, reward, terminated, truncated"),
        (faulty.Rich, r"sum to 3, outside return_range \(0, 1\); set the environment's attribute"),
    ],
)
def test_what_is_raised_is_said_with_its_place(make: type, said: str) -> None:
    raised = named(check_environment(make).faults, "raises")
    assert re.search(said, raised.said), raised.said


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (faulty.Locked, "KeyError: 'no such level'"),
        (faulty.Wordless, "ValueError: the observation of reset must be a text, got None"),
        (faulty.Unseeded, "TypeError: Unseeded.reset() got an unexpected keyword argument 'seed'"),
    ],
)
def test_a_reset_that_raises_is_one_fault(make: type, said: str) -> None:
    found = check_environment(make)
    assert [fault.name for fault in found.faults] == ["raises"], str(found)
    assert "reset of task" in found.faults[0].said and said in found.faults[0].said
    assert "seeds that were looked at could not be begun" in str(found)


def test_one_cause_is_one_fault() -> None:
    for make in (faulty.Four, faulty.Rich, faulty.Numbers):
        assert [fault.name for fault in check_environment(make).faults] == ["raises"], make


def test_a_name_that_leads_nowhere_is_a_mistake_of_the_caller() -> None:
    with pytest.raises(ValueError, match="'nothing:Here' cannot be imported"):
        check_environment("nothing:Here")
    with pytest.raises(ValueError, match="environment must be MODULE:NAME, got 'Here'"):
        check_environment("Here")


def test_an_empty_observation_is_a_fault() -> None:
    assert "observations are empty" in named(check_environment(faulty.Silent).faults, "text").said


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (faulty.iterate, "gave generator, which has no `reset`"),
        (lambda: 1 / 0, "raised ZeroDivisionError: division by zero"),
    ],
)
def test_without_an_environment_that_is_the_finding(make: object, said: str) -> None:
    found = check_environment(make)  # type: ignore[arg-type]
    assert said in named(found.faults, "maker").said and found.episodes == 0


def test_a_maker_that_workers_cannot_get_is_a_remark() -> None:
    found = check_environment(lambda: faulty.Sound())
    assert not named(list(found), "no workers").fault


def test_the_worlds_of_the_package_have_no_fault() -> None:
    shop = ShopWorld(synthetic_catalogue(seed=0, products=40), mode="short")
    rooms = GeneratedWorld(seed=0, train=6, held_out=6, style="short", turn_limit=8)
    for world in (CorridorWorld(), rooms):
        assert check_environment(world).faults == ()
    assert check_environment(shop, tasks=3, splits=("train", "valid", "test")).faults == ()


@pytest.mark.parametrize(
    ("kind", "name", "said"),
    [
        ("raises", "raises", "raised RuntimeError"),
        ("nan", "raises", r"must be a number in [0, 1], got nan"),
    ],
)
def test_faults_of_worlds_are_found(kind: str, name: str, said: str) -> None:
    found = check_environment(FaultyWorld(CorridorWorld(), [Fault(kind)]))  # type: ignore[arg-type]
    assert said in named(found.faults, name).said


class Lax(CorridorWorld):
    """Lists a task twice, trains on what it holds out, and goes on behind the end."""

    def tasks(self, split: str) -> list[Task]:
        tasks = list(super().tasks("train"))
        return [*tasks[:2], *tasks[:1]] if split == "train" else tasks[:1]

    def make(self) -> "LaxEnvironment":
        return LaxEnvironment(self._games)


class LaxEnvironment(CorridorEnvironment):
    """Answers for ever."""

    def step(self, action: str) -> Step:
        try:
            return super().step(action)
        except ValueError:
            assert self._game is not None
            return Step(self._observe(self._game), False, True, True, 1.0)


def test_tasks_and_ends_of_a_world_are_looked_at() -> None:
    found = check_environment(Lax())
    said = " ".join(finding.said for finding in found if finding.name == "tasks")
    assert "lists task" in said and "splits 'train' and 'held_out' share 1 tasks" in said
    assert named(list(found), "after the end").said == "a step behind the end is answered"
    missing = check_environment(CorridorWorld(), splits=("moon",))
    assert "split 'moon' cannot be listed" in named(missing.faults, "tasks").said


def test_findings_are_printed_faults_first_and_escapes_are_seen() -> None:
    lines = str(check_environment(faulty.Coloured)).splitlines()
    assert lines[0].startswith("Coloured: 8 episodes at random, ")
    assert lines[0].endswith(" 49 turns, 4 won; 1 fault, 1 remark")
    assert lines[1].startswith("- FAULT, text: an observation holds characters that are not seen")
    assert lines[2].startswith("- remark, tasks: ")
    assert "\x1b" not in "".join(lines)


def test_actions_are_played_where_they_are_given() -> None:
    found = check_environment(faulty.Untold, actions=["up", "down"])
    assert found.faults == () and found.turns < 8 * 8  # guesses would never end an episode


def test_the_words_of_a_world() -> None:
    words = heard(SeededWorld(faulty.Sound), tasks=5)
    assert words.commands == ("up", "down")
    assert all(text.startswith("you are at") for text in words.texts if text)
    with pytest.raises(ValueError, match="raised KeyError"):
        heard(SeededWorld(partial(faulty.Raises)))
