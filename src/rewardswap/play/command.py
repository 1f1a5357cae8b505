"""The command `rewardswap play`."""

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass

from rich.console import Console

from rewardswap.env_config import environment_name
from rewardswap.env_options import ENVIRONMENT, elsewhere, environment_of_run, idle_in
from rewardswap.options import checked, parse, refuse_named, with_choices
from rewardswap.plan.settings import split_words
from rewardswap.play.board import Board
from rewardswap.play.by_hand import Oracle, play_episode
from rewardswap.play.person import Person
from rewardswap.play.settings import OF_MODELS, ORACLE, PERSON, Playing
from rewardswap.task import Task

PROGRAM = "rewardswap play"


@dataclass(frozen=True)
class _By:
    by: str = PERSON


def play(words: list[str], console: Console) -> None:
    """Play one episode: a person, the oracle or a model."""
    by = parse(_By, _By(), split_words(_By, words)[0], PROGRAM).by
    start, rest = with_choices(_start(by), words, ENVIRONMENT)
    config = parse(Playing, start, rest, PROGRAM, elsewhere())
    refuse_named({"in play": ["env.train-split"], **idle_in(config.env)}, rest)
    if config.by_model:
        _play_model(config, console)
        return
    refuse_named({f"--by {config.by}": OF_MODELS}, rest)
    _play_by_hand(config, console)


def _start(by: str) -> Playing:
    """Where the settings start from: the environment of a run's folder, where one plays."""
    env = checked(lambda: environment_of_run(by))
    return Playing() if env is None else Playing(env=env)


def _play_by_hand(config: Playing, console: Console) -> None:
    env = config.env
    world = checked(lambda: env.world("full"))
    tasks = checked(lambda: world.tasks(env.panel_split))
    task = checked(lambda: find_task(tasks, config.task))
    board = Board(console, world.turn_limit)
    _open(board, config, tasks, task, world.instructions)
    if config.by == ORACLE:
        act = checked(lambda: Oracle(world, task, board)).act
    else:
        act = Person(board).act
    with closing(world.make()) as environment:
        ending = checked(lambda: play_episode(environment, task, act, board))
    if ending is not None:
        board.ended(ending)


def _play_model(config: Playing, console: Console) -> None:
    from rewardswap.play.by_model import play_model
    from rewardswap.stage import make_stage

    stage = checked(
        lambda: make_stage(
            config.env,
            config.by,
            device=config.device,
            temperature=config.temperature,
            action_tokens=config.action_tokens,
            chat_template=config.chat_template,
        )
    )
    with closing(stage):
        tasks = stage.world.tasks(stage.env.panel_split)
        task = checked(lambda: find_task(tasks, config.task))
        board = Board(console, stage.world.turn_limit)
        _open(board, config, tasks, task, stage.world.instructions)
        board.ended(checked(lambda: play_model(stage, task, config.seed, board)))


def _open(
    board: Board, config: Playing, tasks: Sequence[Task], task: Task, instructions: str
) -> None:
    number = [other.id for other in tasks].index(task.id) + 1
    name, split = environment_name(config.env), config.env.panel_split
    board.opening(f"{name}, {split} {number} of {len(tasks)}", task, instructions)


def find_task(tasks: Sequence[Task], name: str) -> Task:
    """The task of an id, or of a number from 1 on; raises ValueError for another name."""
    named = {task.id: task for task in tasks}
    if name in named:
        return named[name]
    if name.isdecimal() and 1 <= int(name) <= len(tasks):
        return tasks[int(name) - 1]
    raise ValueError(
        f"task must be a number from 1 to {len(tasks)} or the id of a task of the split, "
        f"got {name!r}"
    )
