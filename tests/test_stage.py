"""Settings of prompts, from the environment's value to the prompts that are played."""

import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from rewardswap import engines
from rewardswap.env_config.alfworld import Alfworld
from rewardswap.env_config.base import EnvironmentConfig
from rewardswap.env_config.webshop import WebShop
from rewardswap.models.loading import model_folder
from rewardswap.rollout.config import RolloutConfig
from rewardswap.rollout.context import ChatContext
from rewardswap.rollout.episodes import EpisodeRequest
from rewardswap.rollout.formats import TagFormat, TextFormat
from rewardswap.rollout.hf import HuggingFaceEngine
from rewardswap.rollout.window import WindowContext
from rewardswap.stage import Stage, make_stage

SMALL: dict[str, Any] = {"generated_games": 20, "evaluation_tasks": 5}


def stage_of(env: EnvironmentConfig, model: Path | None = None) -> Stage:
    folder = str(model or model_folder("base-agent"))
    return make_stage(env, folder, device="cpu", temperature=1.0, action_tokens=None)


def test_a_chats_settings_reach_its_context() -> None:
    plain = stage_of(Alfworld(**SMALL)).context
    assert isinstance(plain, ChatContext)
    assert plain.thinking == "template" and isinstance(plain.format, TextFormat)
    chosen = stage_of(Alfworld(thinking="stripped", action_format="tags", **SMALL)).context
    assert isinstance(chosen, ChatContext)
    assert (chosen.thinking, chosen.format) == ("stripped", TagFormat())
    forbidden = stage_of(Alfworld(thinking="forbidden", action_format="tags", **SMALL)).context
    assert isinstance(forbidden, ChatContext)
    assert forbidden.format == TagFormat(thinking=False)


@pytest.mark.parametrize("slots", [None, 2])
def test_slots_bound_the_episodes_that_live_at_once(slots: int | None) -> None:
    folder, config = str(model_folder("base-agent")), RolloutConfig(slots=slots, refill=0.5)
    stage = make_stage(
        Alfworld(**SMALL, turn_limit=3),
        folder,
        device="cpu",
        temperature=1.0,
        action_tokens=None,
        rollout=config,
    )
    assert isinstance(stage.engine, HuggingFaceEngine) and stage.engine.refill == 0.5
    live, most = set[str](), 0
    submit, release = stage.engine.submit, stage.engine.release

    def asked(requests: Any, sampling: Any) -> None:
        nonlocal most
        live.update(request.session for request in requests)
        most = max(most, len(live))
        submit(requests, sampling)

    def released(sessions: Any) -> None:
        live.difference_update(sessions)
        release(sessions)

    stage.engine.submit, stage.engine.release = asked, released  # type: ignore[method-assign]
    assert len(stage.evaluate(0, 1.0).trajectories) == 5
    assert most == (slots or 5)


@pytest.mark.parametrize(("least", "refill"), [(10**9, 1.0), (0, 0.25)])
def test_refilling_goes_by_size_where_nothing_is_set(
    least: int, refill: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(engines, "SMALL", least)
    engine = stage_of(Alfworld(**SMALL)).engine
    assert isinstance(engine, HuggingFaceEngine)
    assert engine.refill == refill


def test_an_evaluation_says_how_it_was_sampled() -> None:
    stage = stage_of(Alfworld(**SMALL, turn_limit=2))
    stage = replace(stage, sampling=replace(stage.sampling, top_k=1))
    evaluation = stage.evaluate(0, 0.5)
    assert evaluation.sampling.text == "temperature 0.5, top_k 1"
    record = evaluation.as_dict()
    assert (record["temperature"], record["top_k"], record["top_p"]) == (0.5, 1, 1.0)
    # of one token there is no choice: every log-prob is that of certainty
    turns = [turn for t in evaluation.trajectories for turn in t.turns]
    assert all((turn.logprobs == 0).all() for turn in turns)
    requests = [EpisodeRequest(task, 0) for task in stage.panel.tasks]
    assert stage.play(requests, 0, 0, None).truncating
    assert (
        not replace(stage, sampling=replace(stage.sampling, top_k=0))
        .play(requests, 0, 0, None)
        .truncating
    )


@pytest.mark.parametrize("settings", [{}, {"window": 5}], ids=str)
def test_the_window_reaches_its_context(settings: dict[str, int]) -> None:
    env = WebShop(products=60, evaluation_tasks=2, mode="text", prompt="verl_agent", **settings)
    context = stage_of(env).context
    assert isinstance(context, WindowContext)
    assert context.window == settings.get("window", 2)


def test_what_a_template_does_to_a_chat_is_a_remark_of_the_panel(tmp_path: Path) -> None:
    said = "The chat template rewrites its history: every turn is a row of its own."
    assert said not in stage_of(Alfworld(**SMALL)).panel.remarks
    folder = tmp_path / "forgetful"
    shutil.copytree(model_folder("base-agent"), folder)
    template = folder / "chat_template.jinja"
    template.write_text(template.read_text().replace("in messages", "in messages[-2:]"))
    assert said in stage_of(Alfworld(**SMALL), folder).panel.remarks
