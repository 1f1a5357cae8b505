"""The command `rewardswap eval`."""

from contextlib import closing
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from rich.console import Console

from rewardswap.checks import at_least
from rewardswap.env_config import environment_name
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.env_options import ENVIRONMENT, elsewhere, environment_of_run, idle_in
from rewardswap.evaluation import Evaluation
from rewardswap.options import checked, parse, refuse_named, with_choices
from rewardswap.plan.settings import split_words
from rewardswap.rollout.config import RolloutConfig
from rewardswap.rollout.engine import SamplingParams
from rewardswap.whole import refuse_no_file, write_json


@dataclass(frozen=True)
class EvaluationRun:
    """One evaluation of one model on one panel."""

    model: str | None = None
    """A folder of a Hugging Face causal LM, such as a run's checkpoint folder, or a name of
    `rewardswap model list`; none: the small agent that ships for the environment."""
    chat_template: Path | None = None
    """File of a Jinja chat template that takes the place of the model folder's; none: the
    folder's."""
    seed: int = 0
    """Seed of every sampled token."""
    temperature: float = 1.0
    """Sampling temperature; 0 is greedy."""
    top_p: float = 1.0
    """Only the most probable tokens whose probabilities add up to this; 1: all."""
    top_k: int = 0
    """Only this many most probable tokens; 0: all."""
    min_p: float = 0.0
    """Only tokens that have at least this share of the most probable one's probability; 0: all."""
    action_tokens: int | None = None
    """Most tokens of one action; none: what the model's generation_config.json says, else 512."""
    device: str = "cpu"
    """Torch device of the model."""
    output: Path | None = None
    """File for the table as JSON; none: the screen only."""
    rollout: RolloutConfig = field(default_factory=RolloutConfig)
    env: EnvironmentConfig = field(default_factory=Alfworld)


@dataclass(frozen=True)
class _Model:
    model: str | None = None


def _start(words: list[str], console: Console) -> EvaluationRun:
    """Where the settings start from: the environment of a run whose policy is evaluated.

    Words that speak of an environment say which one themselves.
    """
    mine = split_words(_Model, words)[0]
    model = parse(_Model, _Model(), mine, "rewardswap eval").model
    spoken = any(word.startswith("--env") for word in words)
    env = None if spoken else checked(lambda: environment_of_run(model))
    if env is None:
        return EvaluationRun()
    console.print(
        f"in the environment of {model}, {environment_name(env)}: --env NAME takes another",
        highlight=False,
        markup=False,
        emoji=False,
        soft_wrap=True,
    )
    return EvaluationRun(env=env)


def evaluate(words: list[str], console: Console) -> None:
    """Evaluate a model on a fixed panel of tasks."""
    start, rest = with_choices(_start(words, console), words, ENVIRONMENT)
    run = parse(EvaluationRun, start, rest, "rewardswap eval", elsewhere())
    refuse_named({"in an evaluation": ["env.train-split"], **idle_in(run.env)}, rest)
    from rewardswap.screen import print_evaluation, print_remarks
    from rewardswap.stage import make_stage

    truncation: dict[str, Any] = {"top_p": run.top_p, "top_k": run.top_k, "min_p": run.min_p}
    checked(lambda: SamplingParams(run.temperature, **truncation))
    checked(
        lambda: at_least(1, action_tokens=1 if run.action_tokens is None else run.action_tokens)
    )
    if output := run.output:
        checked(lambda: refuse_no_file(output))
    stage = checked(
        lambda: make_stage(
            run.env,
            run.model,
            device=run.device,
            temperature=1.0,
            action_tokens=run.action_tokens,
            rollout=run.rollout,
            chat_template=run.chat_template,
        )
    )
    stage = replace(stage, sampling=replace(stage.sampling, **truncation))
    print_remarks(console, stage.panel.remarks)
    with closing(stage):
        evaluation: Evaluation = stage.evaluate(run.seed, run.temperature)
    print_evaluation(console, stage.model, evaluation)
    if output:
        write_json(output, evaluation.as_dict())
