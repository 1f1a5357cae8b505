"""The settings of every command, whatever method and environment are chosen."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, get_args, get_origin

from rewardswap.help.settings import sections
from rewardswap.options import option_types


@dataclass(frozen=True)
class Key:
    """One key of a command."""

    hint: Any
    """The type of what it takes."""
    text: str
    """What it is, in one line."""
    choices: tuple[str, ...] = ()
    """All words that it takes, where these are few."""


def keys_of(settings: Iterable[tuple[str, Any]]) -> dict[str, Key]:
    """All keys of settings, each with what its keys begin with; of one key, all choices."""
    found: dict[str, Key] = {}
    for start, one in settings:
        texts = {line.key: line.text for part in sections(one, start) for line in part.lines}
        for key, hint in option_types(one, f"--{start}").items():
            before = found[key].choices if key in found else ()
            choices = tuple(dict.fromkeys([*before, *_choices(hint)]))
            found[key] = Key(hint, texts[key], choices)
    return found


def _choices(hint: Any) -> Sequence[str]:
    if hint is bool:
        return ("true", "false")
    if get_origin(hint) is Literal:
        return [str(choice) for choice in get_args(hint)]
    return [choice for inner in get_args(hint) if inner is not hint for choice in _choices(inner)]


def command_keys() -> Mapping[str, Mapping[str, Key]]:
    """The keys of each command that has some, by its words."""
    from rewardswap.cluster.settings import ClusterSettings
    from rewardswap.comparison.command import ReportSettings
    from rewardswap.configuration import Run
    from rewardswap.data import GenerateWebShop, PrepareWebShop
    from rewardswap.diagnosis.command import DiagnoseSettings
    from rewardswap.doctor.command import Examination
    from rewardswap.env_config import ENVIRONMENTS
    from rewardswap.evaluation_command import EvaluationRun
    from rewardswap.experiments.command import ExperimentSettings
    from rewardswap.export_command import ExportSettings
    from rewardswap.inspection.command import CheckSettings
    from rewardswap.methods import METHODS
    from rewardswap.model_fetch.command import Fetch
    from rewardswap.plan.settings import DryRunSettings, PlanSettings
    from rewardswap.play.settings import Playing
    from rewardswap.prm.collect_settings import Collecting
    from rewardswap.prm.eval_command import Judging
    from rewardswap.prm.train_command import Fitting
    from rewardswap.sft import LESSONS, BaseAgentConfig
    from rewardswap.view.command import ViewSettings

    methods = [("method.", kind()) for kind in METHODS.values()]
    worlds = [("env.", kind()) for kind in ENVIRONMENTS.values()]
    lessons = [("env.", kind()) for kind in LESSONS.values()]
    run = [("", Run(recipe="name")), *methods, *worlds]
    settings: dict[str, list[tuple[str, Any]]] = {
        "train": [*run, ("", DryRunSettings()), ("", ClusterSettings())],
        "demo": [*run, ("", DryRunSettings()), ("", ClusterSettings())],
        "plan": [*run, ("", PlanSettings())],
        "eval": [("", EvaluationRun()), *worlds],
        "play": [("", Playing()), *worlds],
        "doctor": [("", Examination()), *worlds],
        "sft": [("", BaseAgentConfig()), *lessons],
        "export": [("", ExportSettings)],
        "prm collect": [("", Collecting()), *worlds],
        "prm train": [("", Fitting())],
        "prm eval": [("", Judging())],
        "experiment": [("", ExperimentSettings())],
        "report": [("", ReportSettings())],
        "diagnose": [("", DiagnoseSettings())],
        "view": [("", ViewSettings())],
        "check": [("", CheckSettings())],
        "model fetch": [("", Fetch())],
        "data prepare webshop": [("", PrepareWebShop)],
        "data generate webshop": [("", GenerateWebShop)],
    }
    return {name: keys_of(each) for name, each in settings.items()}
