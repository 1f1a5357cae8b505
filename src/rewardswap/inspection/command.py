"""The command `rewardswap check`."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from rewardswap.adapters.named import maker_of, world_of
from rewardswap.help.showing import HELP, show_help
from rewardswap.inspection.check import check_environment
from rewardswap.inspection.walks import heard
from rewardswap.options import UsageError, checked, leading, parse


@dataclass(frozen=True)
class CheckSettings:
    """How an environment is looked at."""

    tasks: int = 8
    """Tasks that are played at random, from the first of the split on."""
    turns: int | None = None
    """Most turns of an episode, in turns; none: the environment's turn limit."""
    actions: tuple[str, ...] = ()
    """What is said at random; none: the admissible commands that the environment tells."""
    seed: int = 0
    """Seed of the random actions, and of the model."""
    splits: tuple[str, ...] = ("train", "held_out")
    """Splits of a world; the first is played, and no other may share tasks with it."""
    model: Path | None = None
    """Folder for a small model of random weights that knows the words heard in 200 episodes; none:
    no model is made."""


def check(words: list[str], console: Console) -> None:
    """Say what is wrong with an environment of your own."""
    if not words or words[0] in HELP:
        show_help("rewardswap check", CheckSettings(), words=words)
        return
    first, rest = leading(words)
    settings = parse(CheckSettings, CheckSettings(), rest, "rewardswap check")
    if len(first) != 1:
        raise UsageError(
            f"check needs one environment, got {' '.join(first) or 'none'}; give MODULE:NAME of a "
            "class or function that makes one"
        )
    if settings.model is not None and settings.model.exists():
        raise UsageError(f"--model {settings.model} is there already; give a new folder")
    found = checked(
        lambda: check_environment(
            first[0],
            tasks=settings.tasks,
            turns=settings.turns,
            actions=settings.actions,
            seed=settings.seed,
            splits=settings.splits,
        )
    )
    console.print(str(found), highlight=False, markup=False, emoji=False)
    if found.faults:
        raise SystemExit(1)
    if settings.model is not None:
        _make_model(first[0], settings, settings.model, console)


def _make_model(name: str, settings: CheckSettings, folder: Path, console: Console) -> None:
    """Write a small model that knows the environment's words."""
    from rewardswap.models.small_model import small_model

    world = checked(lambda: world_of(maker_of("environment", name)))
    words = checked(lambda: heard(world, seed=settings.seed, actions=settings.actions))
    model = checked(lambda: small_model(words.texts, words.commands, settings.seed))
    model.save_pretrained(folder)
    console.print(
        f"{folder}: a small model of {len(model.tokenizer)} words and {len(words.commands)} "
        f"commands. Train it:\nrewardswap train demo --env own --env.make {name} --policy.model "
        f"{folder} --policy.learning-rate 1e-4 --policy.minibatches 4 --reward.dense progress",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )
