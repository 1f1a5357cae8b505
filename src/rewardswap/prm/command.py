"""The command `rewardswap prm`: process reward models on their own."""

from collections.abc import Callable

from rich.console import Console

from rewardswap.help.showing import HELP, show_help
from rewardswap.names import unknown
from rewardswap.options import UsageError


def prm(words: list[str], console: Console) -> None:
    """Collect rollouts for process reward models, train them, judge them."""
    if not words or words[0] in HELP:
        show_help("rewardswap prm")
        return
    if words[0] not in COMMANDS:
        raise UsageError(unknown("prm command", words[0], COMMANDS))
    COMMANDS[words[0]](words[1:], console)


def _collect(words: list[str], console: Console) -> None:
    from rewardswap.prm.collect_command import collect

    collect(words, console)


def _train(words: list[str], console: Console) -> None:
    from rewardswap.prm.train_command import train

    train(words, console)


def _evaluate(words: list[str], console: Console) -> None:
    from rewardswap.prm.eval_command import evaluate

    evaluate(words, console)


COMMANDS: dict[str, Callable[[list[str], Console], None]] = {
    "collect": _collect,
    "train": _train,
    "eval": _evaluate,
}
